/**
 * What a repository may not do (spec section 2; S section 12.3 rows 1 to 3, 12.4).
 *
 * Project, imported and plugin entries are somebody else's text. They may not reach for the user's environment, not
 * loosen a switch, not point anywhere outside the workspace, and not declare themselves trusted. What `local`,
 * `cli` and `dynamic` entries say counts as the user's own word.
 */
import { hasPluginRoot, pluginRoot, variablesOf } from "./Expansion.ts"
import type { Scope, ServerDeclaration, Trust } from "./ServerDeclaration.ts"
import type { FieldReader } from "./Fields.ts"

/** Fields that only the user may write: grants and the switches of S section 12.4. */
export const userOnlyFields = [
  "inherit_env",
  "public_env",
  "env_mode",
  "missing_env",
  "plugin_env_allow",
  "project_remote",
  "plugin_remote",
  "project_walk",
  "inject_instructions",
  "skills",
  "stdout_noise",
  "on_timeout",
  "restart",
  "allow_http",
  "oauth_auto",
  "oauth_store",
  "protocol",
  "elicitation_url",
  "trace_propagation",
  "tool_search",
  "tool_search_keep_loaded",
  "compat"
] as const

/** Whether entries of this scope are a repository's text. */
export const isForeign = (scope: Scope): boolean => scope === "project" || scope === "imported" || scope === "plugin"

/** What the user allows plugins (S section 12.4). */
export interface PluginRules {
  /** `[mcp] plugin_remote = "allow"`. */
  readonly remote: boolean
  /** `[mcp] plugin_env_allow`: variables that templates of plugins may read. */
  readonly envAllow: ReadonlyArray<string>
  /** Whether a command as written stays in the plugin's directory; so do bare names and absolute paths. */
  readonly ownCommand: (command: string) => boolean
}

/** Fields that hand variables of the user to a server (R section 1.10). */
const grants: ReadonlySet<string> = new Set(["inherit_env", "public_env"])

/** Where a user may declare what a repository may not. */
export interface ScopeRules {
  readonly scope: Scope
  /** What plugins may do; nothing of it when absent. */
  readonly plugin?: PluginRules
  /** `[mcp] project_remote = "approved"` in the user's own settings. */
  readonly projectRemote: boolean
  /** Path of the user's sigil.toml, for messages. */
  readonly userFile: string
  /** Whether a `cwd` as written lies inside the workspace, links resolved. */
  readonly insideWorkspace: (cwd: string) => boolean
}

/** Refuses fields that this scope may not write; even an empty value refuses the entry (R section 1.10). */
export const refuseUserFields = (reader: FieldReader, rules: ScopeRules): void => {
  if (!isForeign(rules.scope)) return
  for (const name of userOnlyFields) {
    if (!reader.has(name)) continue
    const property = reader.take(name)
    if (property === undefined) continue
    const grant = rules.scope === "plugin" && grants.has(name)
    const text = grant
      ? "a plugin's server may not be granted environment variables"
      : `an entry of scope ${rules.scope} may not set this`
    reader.add(reader.pathOf(property), property.at, text, {
      code: "SIGIL_SCOPE_REFUSED",
      reason: grant ? "plugin_mcp_environment_grant_not_supported" : "scope_refused",
      fix: `Remove the field, or declare the server in ${rules.userFile}.`
    })
  }
}

/** Refuses a remote server of a repository or plugin unless the user allows them (S section 12.3 row 3). */
export const refuseRemote = (reader: FieldReader, rules: ScopeRules): void => {
  const plugin = rules.scope === "plugin"
  if (!isForeign(rules.scope) || (plugin ? (rules.plugin?.remote ?? false) : rules.projectRemote)) return
  const property = reader.object.properties.find(({ key }) => key === "url") ?? reader.object.properties[0]
  reader.add(
    property === undefined ? reader.path : reader.pathOf(property),
    property?.at ?? reader.object.at,
    `an entry of scope ${rules.scope} may not declare a remote server`,
    {
      code: "SIGIL_SCOPE_REFUSED",
      reason: plugin ? "plugin_remote_mcp_not_supported" : "scope_refused",
      fix: `Declare the server in ${rules.userFile}, or write [mcp] ${plugin ? 'plugin_remote = "allow"' : 'project_remote = "approved"'} there.`
    }
  )
}

/** Refuses templates of a plugin that read variables which the user did not allow plugins (S section 12.3 row 2). */
export const refuseVariables = (
  reader: FieldReader,
  endpoint: ServerDeclaration["endpoint"],
  rules: ScopeRules
): void => {
  if (rules.scope !== "plugin") return
  const allowed = rules.plugin?.envAllow ?? []
  const refused = variablesOf({ endpoint }).filter(
    ({ name, field }) => !allowed.includes(name) && !(name === pluginRoot && hasPluginRoot(field))
  )
  for (const { name, field } of refused) {
    const written = field.split(/[.[]/)[0] ?? field
    const property = reader.object.properties.find(({ key }) => key === written)
    reader.add(
      `${reader.path}.${field}`,
      property?.value.at ?? reader.object.at,
      `a plugin's server may not read the variable ${name}`,
      {
        code: "SIGIL_SCOPE_REFUSED",
        reason: "plugin_mcp_environment_grant_not_supported",
        fix: `Declare the server in ${rules.userFile}, or write [mcp] plugin_env_allow = ["${name}"] there.`
      }
    )
  }
}

/** Refuses a working directory outside the workspace for entries of a repository, outside its own for a plugin's. */
export const refuseOutsideCwd = (reader: FieldReader, cwd: string | undefined, rules: ScopeRules): void => {
  if (cwd === undefined || !isForeign(rules.scope) || rules.insideWorkspace(cwd)) return
  refuseOutside(
    reader,
    "cwd",
    rules.scope === "plugin"
      ? "the working directory of a plugin's server must lie inside the plugin's directory"
      : "the working directory of an entry of a project must lie inside the workspace",
    `Use a directory inside it, or declare the server in ${rules.userFile}.`
  )
}

/** Refuses a program that a plugin names by a path from its directory which leads out of it (R section 1.10). */
export const refuseOutsideCommand = (reader: FieldReader, command: string | undefined, rules: ScopeRules): void => {
  if (command === undefined || rules.scope !== "plugin" || (rules.plugin?.ownCommand(command) ?? true)) return
  refuseOutside(
    reader,
    "command",
    "the program that a plugin names by a path from its directory must lie inside that directory",
    `Keep the program in the plugin's directory, or declare the server in ${rules.userFile}.`
  )
}

const refuseOutside = (reader: FieldReader, field: "command" | "cwd", text: string, fix: string): void => {
  const property = reader.object.properties.find(({ key }) => key === field)
  reader.add(
    property === undefined ? reader.path : reader.pathOf(property),
    property?.value.at ?? reader.object.at,
    text,
    { code: "SIGIL_SCOPE_REFUSED", reason: "scope_refused", fix }
  )
}

/** Defaults of `[mcp_servers.trust]` (R section 1.5). */
export const defaultTrust: Trust = {
  trustClass: "self_hosted",
  approvalDefault: "ask",
  egressLogging: true,
  allowSecrets: false,
  pinVersion: false
}

/** A trust table after the scope had its say. */
export interface ScopedTrust {
  readonly trust: Trust
  /** Whether something looser than the default was asked for and ignored. */
  readonly looser: boolean
  readonly warnings: ReadonlyArray<string>
}

/** In a repository's entry trust may only tighten; what is looser falls back to the default with a warning. */
export const tightenTrust = (scope: Scope, trust: Trust): ScopedTrust => {
  if (!isForeign(scope)) return { trust, looser: false, warnings: [] }
  const looser: Array<string> = []
  let { trustClass, approvalDefault, egressLogging, allowSecrets } = trust
  if (trustClass === "official") {
    trustClass = defaultTrust.trustClass
    looser.push('trust_class = "official"')
  }
  if (approvalDefault === "allow") {
    approvalDefault = defaultTrust.approvalDefault
    looser.push('approval_default = "allow"')
  }
  if (!egressLogging) {
    egressLogging = true
    looser.push("egress_logging = false")
  }
  if (allowSecrets) {
    allowSecrets = false
    looser.push("allow_secrets = true")
  }
  return {
    trust: { ...trust, trustClass, approvalDefault, egressLogging, allowSecrets },
    looser: looser.length > 0,
    warnings: looser.map(
      (text) => `trust: ${text} is ignored, because an entry of scope ${scope} may only tighten trust`
    )
  }
}

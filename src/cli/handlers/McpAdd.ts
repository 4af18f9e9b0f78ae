/** `sigil mcp add`: declares a server in the file of its scope. Nothing is started. */
import * as Effect from "effect/Effect"
import type { JsonObject } from "../../base/Json.ts"
import { addServer, addToWebLists, type EditTarget, targetOf } from "../../config/Edit.ts"
import { isSensitiveHeader } from "../../config/DecodeRemote.ts"
import { transportOfUrl } from "../../config/EndpointUrl.ts"
import { Locations } from "../../config/Locations.ts"
import { accessLines, lackingAccess, loopbackHost } from "../../config/LoopbackAccess.ts"
import { type Entry, nameOf, type Scope } from "../../config/ServerDeclaration.ts"
import type { WebSettings } from "../../config/WebSettings.ts"
import { HostEnvironment } from "../../platform/HostEnvironment.ts"
import * as Declarations from "../../runtime/Declarations.ts"
import { grantedSecrets } from "../../server/GrantedSecrets.ts"
import type { Input } from "../commands/McpAdd.ts"
import { spokenFault } from "../AddFault.ts"
import { refusalNote, schemeNote } from "../AddressNotes.ts"
import type { Handler } from "../Handler.ts"
import { Output } from "../Output.ts"
import { quoted } from "../ServerRow.ts"
import { runtimeOptions, snapshot } from "../Session.ts"
import { usage, type UsageError } from "../UsageError.ts"

const path = ["mcp", "add"]
const isUrl = (text: string): boolean => /^(?:https?|wss?):\/\//i.test(text)
/** How a command or URL is spoken to. */
const spokenTo = ({ args, options }: Input, url: boolean): string =>
  options.transport ?? (url ? transportOfUrl(args.command) : "stdio")

/** `KEY=VALUE` options as an object. */
const pairs = (option: string, given: ReadonlyArray<string>): Effect.Effect<JsonObject, UsageError> =>
  Effect.gen(function* () {
    const found: Array<readonly [string, string]> = []
    for (const text of given) {
      const split = text.indexOf("=")
      if (split <= 0) return yield* usage(path, `--${option} takes KEY=VALUE, not '${text.split("=")[0] ?? ""}'.`)
      found.push([text.slice(0, split).trim(), text.slice(split + 1)])
    }
    return Object.fromEntries(found)
  })

const nonEmpty = <A extends object>(value: A): A | undefined => (Object.keys(value).length === 0 ? undefined : value)

/** Nothing that `[web]` would have to say. */
const noAccess = { allowed_private_hosts: [], allowed_private_cidrs: [] }

/** Whether the entry sends something secret; never without encryption. */
const withCredentials = ({ options }: Input): boolean =>
  options.oauth ||
  options["bearer-token-env-var"] !== undefined ||
  options["env-header"].length > 0 ||
  options.header.some((text) => isSensitiveHeader(text.split("=")[0]?.trim() ?? ""))

/** Options that make sense for one kind of server only. */
const misplaced = (input: Input, url: boolean): string | undefined => {
  const { options } = input
  const only = url
    ? ([
        ["env", options.env.length > 0],
        ["inherit-env", options["inherit-env"].length > 0]
      ] as const)
    : ([
        ["header", options.header.length > 0],
        ["env-header", options["env-header"].length > 0],
        ["bearer-token-env-var", options["bearer-token-env-var"] !== undefined],
        ["oauth", options.oauth],
        ["allow-loopback", options["allow-loopback"]]
      ] as const)
  const wrong = only.find(([, given]) => given)
  return wrong === undefined
    ? undefined
    : `--${wrong[0]} goes with a ${url ? "command" : "URL"}, not with a ${url ? "URL" : "command"}.`
}

/** The entry in the spelling of the file it goes to. */
const entryOf = (input: Input, target: EditTarget, url: boolean): Effect.Effect<JsonObject, UsageError> =>
  Effect.gen(function* () {
    const { args, options, tail } = input
    const toml = target.kind === "sigil.toml"
    const transport = spokenTo(input, url)
    const tomlTransports: { readonly [name: string]: string } = { http: "streamable_http", "http-json": "http_json" }
    const trust = {
      // A server that somebody else runs is not trusted like one's own (R section 11.2).
      ...(options.trust !== undefined ? { trust_class: options.trust } : url ? { trust_class: "third_party" } : {}),
      ...(options.approval === undefined ? {} : { approval_default: options.approval })
    }
    const headers = yield* pairs("header", options.header)
    const envHeaders = yield* pairs("env-header", options["env-header"])
    const env = nonEmpty(yield* pairs("env", options.env))
    const inherit = options["inherit-env"].length > 0 ? options["inherit-env"] : undefined
    const seconds = options.timeout
    const named =
      transport === "streamable_http" && !toml ? "http" : toml ? (tomlTransports[transport] ?? transport) : transport
    // `.mcp.json` is shared with other hosts, whose readers infer the transport of a command.
    const written = toml || url || target.kind === "settings.json" || options.transport !== undefined
    return {
      transport: written ? named : undefined,
      ...(url
        ? {
            url: args.command,
            ...(toml
              ? { http_headers: nonEmpty(headers), env_http_headers: nonEmpty(envHeaders) }
              : { headers: nonEmpty({ ...headers, ...templates(envHeaders) }) }),
            [toml ? "bearer_token_env_var" : "bearerTokenEnvVar"]: options["bearer-token-env-var"],
            oauth: options.oauth ? {} : undefined
          }
        : {
            command: args.command,
            args: tail.length === 0 && !toml ? undefined : tail,
            env,
            [toml ? "inherit_env" : "inheritEnv"]: inherit
          }),
      startup: options.startup,
      // In TOML an entry is required unless it says otherwise (R section 1.2).
      required: toml ? options.required : options.required || undefined,
      [toml ? "tool_timeout_secs" : "toolTimeoutSecs"]: seconds,
      trust: nonEmpty(trust)
    }
  })

const templates = (names: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(names).map(([header, name]) => [header, `\${${String(name)}}`]))

/** Where another scope already declares the name. */
const declaredIn = (entry: Entry): { readonly scope: Scope; readonly file: string } =>
  entry._tag === "Valid"
    ? { scope: entry.declaration.scope, file: entry.declaration.source.file }
    : { scope: entry.broken.scope, file: entry.broken.source.file }

/** The handler. */
export const handler: Handler<Input> = (input) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    return yield* Effect.gen(function* () {
      const output = yield* Output
      const locations = yield* Locations
      const host = yield* HostEnvironment
      const { args, options } = input
      const url = isUrl(args.command) && !input.dashes && options.transport !== "stdio"
      const wrong = misplaced(input, url)
      if (wrong !== undefined) return yield* usage(path, wrong)
      if (options.settings && options.scope !== undefined && options.scope !== "user") {
        return yield* usage(path, "--settings goes with scope user.")
      }
      if (!url && /^[a-z][a-z0-9+.-]*:\/\//i.test(args.command) && !input.dashes) {
        return yield* usage(path, `'${args.command}' is neither a command nor an http, https, ws or wss URL.`)
      }
      const loopback = url ? loopbackHost(args.command) : undefined
      if (options["allow-loopback"] && loopback === undefined) {
        return yield* usage(path, "--allow-loopback goes with a URL of this machine: localhost, 127.0.0.1 or [::1].")
      }
      const facts = yield* snapshot
      const scope = options.scope ?? (url || options.settings ? "user" : "project")
      if (scope === "project" && options["inherit-env"].length > 0) {
        return yield* usage(path, "A project entry cannot grant variables of yours: the file is shared.", {
          fix: "Add --scope user, or --scope local for this project only."
        })
      }
      if (scope === "project" && (options.approval === "allow" || options.trust === "official")) {
        return yield* usage(path, "A project entry cannot loosen trust: the file is shared.", {
          fix: "Add --scope user, or --scope local for this project only."
        })
      }
      const wanted = targetOf(scope, locations, { ...facts, settings: options.settings })
      const existing = facts.servers.find((entry) => nameOf(entry) === args.name)
      const elsewhere = existing === undefined ? undefined : declaredIn(existing)
      // `--force` edits the file that declares the entry, unless a scope was asked for (spec section 1).
      const target =
        options.force && options.scope === undefined && elsewhere !== undefined
          ? (writable(elsewhere, locations, facts) ?? wanted)
          : wanted
      yield* addServer(
        target,
        { name: args.name, fields: yield* entryOf(input, target, url) },
        { force: options.force, secretOf: grantedSecrets(facts.servers, host.get) }
      ).pipe(Effect.mapError((error) => (error._tag === "ConfigError" ? spokenFault(error) : error)))
      const { web } = facts.settings
      const access = yield* loopbackAccess(loopback, web, options["allow-loopback"])
      const address = url
        ? yield* refusalNote(args.command, {
            credentials: withCredentials(input),
            web,
            granted: loopback === undefined ? noAccess : lackingAccess(web, loopback),
            get: host.get
          })
        : input.dashes
          ? []
          : yield* schemeNote(args.command, host)
      const notes = [
        ...(options.scope === undefined && url
          ? ["A URL is declared for you (scope user); --scope says otherwise."]
          : []),
        ...(target.scope === "project"
          ? [`It is pending: 'sigil mcp approve ${quoted(args.name)}' allows it to start here.`]
          : []),
        ...(elsewhere !== undefined && elsewhere.file !== target.file
          ? [`The name is also declared in ${elsewhere.file} (scope ${elsewhere.scope}); the higher scope counts.`]
          : []),
        ...(target.scope === "project" && url && facts.settings.mcp.projectRemote !== "approved"
          ? [
              `Remote servers of a project are refused until [mcp] project_remote = "approved" stands in ${locations.sigilToml}.`
            ]
          : []),
        ...address,
        ...access
      ]
      yield* output.document("change", {
        schema: "sigil.mcp.change/1",
        action: "add",
        name: args.name,
        scope: target.scope,
        file: target.file,
        effective: "next_start",
        notes
      })
      const kind = spokenTo(input, url)
      yield* output.text([
        `Added '${args.name}' to scope ${target.scope} (${kind}): ${target.file}`,
        ...notes.flatMap((note) => note.split("\n")),
        "It takes effect at the next start."
      ])
      return 0
    }).pipe(Effect.provide(Declarations.layer(run)))
  })

/** Admits a server of this machine, or says which lines would (spec section 6). The notes for people. */
const loopbackAccess = (host: string | undefined, web: WebSettings, write: boolean) =>
  Effect.gen(function* () {
    if (host === undefined) return []
    const { sigilToml } = yield* Locations
    const lacking = lackingAccess(web, host)
    const { allowed_private_cidrs: cidrs, allowed_private_hosts: hosts } = lacking
    if (hosts.length + cidrs.length === 0) return []
    const lines = accessLines(web, lacking)
    if (!write)
      return [
        [
          `It listens on this machine, which is not called until ${sigilToml} allows it (--allow-loopback writes this):`,
          ...lines.map((line) => `  ${line}`)
        ].join("\n")
      ]
    yield* addToWebLists(sigilToml, { allowed_private_hosts: hosts, allowed_private_cidrs: cidrs })
    return [`Calls to ${host} are allowed now; ${sigilToml} says:\n${lines.map((line) => `  ${line}`).join("\n")}`]
  })

/** The writable file among those that declare servers. */
const writable = (
  declared: { readonly scope: Scope; readonly file: string },
  locations: Parameters<typeof targetOf>[1],
  facts: { readonly launchDirectory: string; readonly projectIdentity: string }
): EditTarget | undefined => {
  if (declared.scope !== "project" && declared.scope !== "user" && declared.scope !== "local") return undefined
  const settings = declared.file === locations.settingsJson
  return { ...targetOf(declared.scope, locations, { ...facts, settings }), file: declared.file }
}

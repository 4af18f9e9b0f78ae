/**
 * The environment a stdio server sees: a small baseline, what was granted, what its entry sets.
 *
 * The parent's environment is not inherited; HOME, SSH_AUTH_SOCK, proxies, provider keys and cloud credentials
 * reach a server only by name (R sections 3.1 and 3.2, spec section 3).
 */
import * as Either from "effect/Either"
import type * as Context from "effect/Context"
import { expand, pluginRoot, variablesOf } from "../config/Expansion.ts"
import { grantsOf, type ServerDeclaration, type StdioEndpoint } from "../config/ServerDeclaration.ts"
import type { HostEnvironment } from "../platform/HostEnvironment.ts"
import { AdmissionError } from "./ServerError.ts"

/** Names copied from the parent when present (R section 3.1). */
export const baselineNames = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TMP", "TEMP"] as const
const windowsNames = ["SystemRoot", "WINDIR", "ComSpec", "PATHEXT"] as const
const defaultPath = "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
const defaultWindowsPath = "C:\\Windows\\System32;C:\\Windows"

/** Granted names whose values are not secrets (spec section 3). */
const publicNames = new Set([
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "LANG",
  "DISPLAY",
  "TERM",
  "CI",
  "NODE_ENV",
  "PATH",
  "TZ",
  "TMPDIR",
  "TMP",
  "TEMP"
])
const proxyNames = new Set(["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"])

/** Whether the value of a variable is no secret: by its name, or because the entry lists it in `public_env`. */
export const isPublic = (name: string, value: string, declared: ReadonlyArray<string>): boolean =>
  declared.includes(name) ||
  publicNames.has(name) ||
  name.startsWith("LC_") ||
  name.startsWith("XDG_") ||
  (proxyNames.has(name.toUpperCase()) && !/^[a-z+]+:\/\/[^/@]*@/i.test(value))

/** What a child gets. */
export interface ChildEnvironment {
  readonly variables: { readonly [name: string]: string }
  /** Values that must never be shown or sent on. */
  readonly secrets: ReadonlyArray<string>
  readonly grants: ReadonlyArray<string>
}

/** The endpoint after expansion, and the values that expansion took from variables. */
export interface Inputs {
  readonly server: string
  readonly endpoint: StdioEndpoint
  readonly variableValues: ReadonlyArray<{ readonly name: string; readonly value: string }>
}

/** Builds the environment; all missing or broken grants are reported together, by name only. */
export const build = (
  inputs: Inputs,
  host: Context.Tag.Service<typeof HostEnvironment>
): Either.Either<ChildEnvironment, AdmissionError> => {
  const { endpoint, server } = inputs
  // A null prototype: names come from outside.
  const variables: { [name: string]: string } = Object.create(null)
  const windows = host.platform === "win32"
  for (const name of windows ? [...baselineNames, ...windowsNames] : baselineNames) {
    const value = host.get(name)
    if (value !== undefined) variables[name] = value
  }
  variables["PATH"] ??= windows ? defaultWindowsPath : defaultPath

  const grants = grantsOf(endpoint)
  const missing = grants.filter((name) => host.get(name) === undefined)
  const broken = grants.filter((name) => !host.isUtf8(name))
  if (missing.length > 0 || broken.length > 0) {
    const parts = [
      ...(missing.length > 0 ? [`not set: ${missing.join(", ")}`] : []),
      ...(broken.length > 0 ? [`not valid UTF-8: ${broken.join(", ")}`] : [])
    ]
    return Either.left(
      new AdmissionError({
        code: "SIGIL_MISSING_GRANT",
        reason: "configuration_invalid",
        text: `The server '${server}' is granted environment variables that cannot be passed: ${parts.join("; ")}.`,
        fix: `Set ${[...missing, ...broken].join(", ")} before starting, or drop the grant from inherit_env.`,
        where: { server, field: "inherit_env", operation: "grants" },
        details: { missing, invalid_utf8: broken }
      })
    )
  }
  const secrets: Array<string> = []
  for (const name of grants) {
    const value = host.get(name) ?? ""
    variables[name] = value
    if (value !== "" && !isPublic(name, value, endpoint.publicEnv)) secrets.push(value)
  }
  for (const [name, value] of Object.entries(endpoint.env)) variables[name] = value
  for (const { name, value } of inputs.variableValues) {
    if (value !== "" && !isPublic(name, value, endpoint.publicEnv)) secrets.push(value)
  }
  for (const [name, value] of Object.entries(endpoint.env)) {
    if (looksSecret(name) && value !== "" && !endpoint.publicEnv.includes(name)) secrets.push(value)
  }
  return Either.right({ variables, secrets: [...new Set(secrets)], grants })
}

/** A literal value under such a name is treated as a secret even when it was written into the file. */
export const looksSecret = (name: string): boolean => /key|token|secret|passw|credential|auth/i.test(name)

/** The value of a header, and what it says after the name of a scheme such as `Bearer`. */
export const credentialOf = (header: string): ReadonlyArray<string> => {
  const said = /^[A-Za-z-]+ +(\S+)$/.exec(header)?.[1]
  return said === undefined ? [header] : [header, said]
}

/**
 * Every secret that an entry names, whether or not it can be started: values of its grants, of variables in its
 * templates and headers, and what it writes under a name of a credential. Reads the environment and nothing else.
 */
export const secretsOf = (
  declaration: Pick<ServerDeclaration, "name" | "source" | "endpoint" | "plugin">,
  host: Pick<Context.Tag.Service<typeof HostEnvironment>, "get">
): ReadonlyArray<string> => {
  const { endpoint, plugin } = declaration
  const stdio = endpoint._tag === "stdio"
  const shown = stdio ? endpoint.publicEnv : []
  const uses = variablesOf(declaration)
  const used = uses.map(({ name }) => name)
  // The host of a URL is written in small letters wherever it is sent or shown.
  const folded = new Set(uses.flatMap(({ field, name }) => (field === "url" ? [name] : [])))
  const names = new Set([...(stdio ? endpoint.inheritEnv : []), ...used])
  if (plugin !== undefined) names.delete(pluginRoot)
  const values = [...names].flatMap((name) => {
    const value = host.get(name)
    if (value === undefined || isPublic(name, value, shown)) return []
    return folded.has(name) ? [value, value.toLowerCase()] : [value]
  })
  const filled = expand(declaration, host.get, "literal")
  if (Either.isRight(filled)) {
    const { endpoint: used } = filled.right
    const written = Object.entries(used._tag === "stdio" ? used.env : used.headers)
    const kept = written.filter(([name]) => (looksSecret(name) || /^cookie$/i.test(name)) && !shown.includes(name))
    values.push(...kept.flatMap(([, value]) => (used._tag === "stdio" ? [value] : credentialOf(value))))
  }
  return [...new Set(values)].filter((value) => value !== "")
}

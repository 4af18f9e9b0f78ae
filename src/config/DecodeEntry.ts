/**
 * Decodes one server entry into a `ServerDeclaration`, whatever its spelling.
 *
 * The rules are those of R sections 1.2 to 1.5 and S sections 1.2, 1.3 and 12.1; the two formats differ in how keys
 * are spelled, in units, in defaults and in what an unknown key means. What a format decides itself comes in
 * through `EntryFormat`. An entry with any fault is `Broken`: it claims its name and is never started.
 */
import { DAY_MS, SECOND_MS } from "../base/Units.ts"
import { decodeRemote } from "./DecodeRemote.ts"
import { decodeTrust } from "./DecodeTrust.ts"
import { environmentName, FieldReader, type Spelling } from "./Fields.ts"
import { childPath, deepDuplicate, type LocatedObject, objectToJson, type Position, record } from "./Located.ts"
import { type Issues, toError } from "./Problem.ts"
import {
  refuseOutsideCommand,
  refuseOutsideCwd,
  refuseRemote,
  refuseUserFields,
  refuseVariables,
  type ScopeRules,
  tightenTrust
} from "./Scopes.ts"
import type { Entry, RemoteTransport, ServerDeclaration, StdioEndpoint } from "./ServerDeclaration.ts"
import { unsupportedOf } from "./Unsupported.ts"

/** Start budget of launchers that may download first, ms (spec section 7). */
const LAUNCHER_STARTUP_MS = 60 * SECOND_MS
/** Call deadline that 0 or a negative value stands for, ms. */
const ZERO_DEADLINE_MS = 30 * SECOND_MS
/** Default and largest grace between the steps of termination, ms (spec section 7). */
const GRACE_MS = 500
const MAX_GRACE_MS = 10 * SECOND_MS
/** Extra attempts when the entry says nothing (S section 1.2). */
const DEFAULT_RETRIES = 2
const launchers = new Set(["npx", "uvx", "bunx", "pipx", "docker", "podman"])
/** The variable that marks sigil's own processes; nobody else may set it (spec section 3). */
const MARKER = "SIGIL_GENERATION"

/** Revisions an entry may ask for by name (spec section 6). */
export const protocols = ["auto", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] as const

/** What the user's `[mcp]` and `[agent]` tables say for entries that say nothing themselves. */
export interface EntryDefaults {
  /** Call deadline of TOML entries, ms (`[agent] tool_timeout_secs`, R section 1.7). */
  readonly tomlToolTimeoutMs?: number
  readonly stdoutNoise?: ServerDeclaration["stdoutNoise"]
  readonly onTimeout?: ServerDeclaration["onTimeout"]
  readonly restart?: ServerDeclaration["restart"]
  readonly envMode?: ServerDeclaration["envMode"]
  readonly protocol?: string
}

/** What decoding needs to know about the source. */
export interface DecodeContext extends ScopeRules {
  readonly file: string
  readonly defaults: EntryDefaults
}

/** Transport as the format finds it, or why there is none. */
export type TransportChoice = "stdio" | RemoteTransport | undefined

/** What the two formats decide differently. */
export interface EntryFormat {
  readonly spelling: Spelling
  /** Reads the transport; records a fault and returns `undefined` when it cannot be known. */
  readonly transport: (reader: FieldReader) => TransportChoice
  readonly startupMs: number
  readonly callMs: number
  readonly required: boolean
  /** Whether keys that do not belong there refuse the entry; otherwise they are warnings. */
  readonly strictKeys: boolean
}

const stdioFields = [
  "command",
  "args",
  "cwd",
  "inherit_env",
  "public_env",
  "env",
  "env_mode",
  "isolation",
  "stdout_noise"
]
const remoteFields = [
  "url",
  "http_headers",
  "headers",
  "env_http_headers",
  "bearer_token_env_var",
  "oauth",
  "auth",
  "client_capabilities"
]

/** What is wrong with a server's name (R section 1.2); `undefined` when it is fine. */
export const nameFault = (name: string): string | undefined => {
  if (name.trim() === "") return "the name is blank"
  if (name.trim() !== name) return "the name begins or ends with white space"
  if (name.startsWith("builtin:")) return 'names that begin with "builtin:" are reserved'
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(name)) return "the name holds a control character"
  return undefined
}

/** The program's own name: without directories and Windows' suffixes. */
const programName = (command: string): string =>
  (command.split(/[\\/]/).at(-1) ?? command).toLowerCase().replace(/\.(?:exe|cmd|bat|ps1)$/, "")

const refuseOther = (
  reader: FieldReader,
  names: ReadonlyArray<string>,
  transport: string,
  format: EntryFormat,
  warnings: Array<string>
): void => {
  for (const name of names) {
    if (!reader.has(name)) continue
    const property = reader.take(name)
    if (property === undefined) continue
    const text = `this field does not belong to a server with transport "${transport}"`
    // A credential that would silently not be sent is no matter for a warning (S section 1.3).
    if (format.strictKeys || name === "auth") reader.add(reader.pathOf(property), property.at, text)
    else warnings.push(`${reader.pathOf(property)} is ignored: ${text}`)
  }
}

const decodeStdio = (reader: FieldReader, context: DecodeContext): StdioEndpoint => {
  const command = reader.text("command")
  if (command === undefined && !reader.has("command"))
    reader.add(reader.missingPath("command"), reader.object.at, 'a server with transport "stdio" needs a command')
  refuseOutsideCommand(reader, command, context)
  const args = reader.strings("args") ?? []
  const cwd = reader.text("cwd")
  refuseOutsideCwd(reader, cwd, context)
  const inheritEnv = reader.variableNames("inherit_env") ?? []
  const publicEnv = reader.variableNames("public_env") ?? []
  for (const [field, names] of [
    ["inherit_env", inheritEnv],
    ["public_env", publicEnv]
  ] as const)
    if (names.includes(MARKER))
      reader.add(reader.missingPath(field), reader.object.at, `${MARKER} is set by sigil itself`)
  const env = reader.stringMap("env")
  for (const name of Object.keys(env?.map ?? {})) {
    if (env === undefined) break
    const field = childPath(reader.pathOf(env.property), name)
    const inner = env.property.value.kind === "object" ? env.property.value.properties : []
    const at: Position = inner.find(({ key }) => key === name)?.at ?? env.property.at
    if (name === MARKER) reader.add(field, at, `${MARKER} is set by sigil itself`)
    else if (name === "" || /[=\0\s]/.test(name) || (!environmentName.test(name) && !/^[\w().-]+$/.test(name)))
      reader.add(field, at, "expected the name of an environment variable")
  }
  return {
    _tag: "stdio",
    command: command ?? "",
    args,
    ...(cwd === undefined ? {} : { cwd }),
    inheritEnv,
    publicEnv,
    env: env?.map ?? record([])
  }
}

const capped = (ms: number): number => Math.min(Math.max(1, Math.floor(ms)), DAY_MS)
const callDeadline = (ms: number): number => (ms > 0 ? capped(ms) : ZERO_DEADLINE_MS)

const anyNumber = (unit: string) => ({ min: -Infinity, max: Infinity, integer: false, unit })

interface Deadlines {
  readonly startupTimeoutMs: number
  readonly toolTimeoutMs: number
  readonly toolTimeoutsMs: { readonly [tool: string]: number }
  readonly toolTimeoutMaxMs: number | undefined
}

const decodeDeadlines = (
  reader: FieldReader,
  format: EntryFormat,
  command: string | undefined,
  warnings: Array<string>
): Deadlines => {
  const launcher = command !== undefined && launchers.has(programName(command))
  // One value in milliseconds for both deadlines (S section 1.2; spec section 7).
  const both = format.spelling === "json" ? reader.number("timeout", anyNumber("milliseconds")) : undefined
  const startup = reader.number("startup_timeout_secs", { min: 1, max: Infinity, integer: true, unit: "seconds" })
  const tool = reader.number("tool_timeout_secs", anyNumber("seconds"))
  const maximum = reader.number("tool_timeout_max_secs", { min: 1, max: Infinity, integer: false, unit: "seconds" })
  const toolTimeoutMs =
    tool !== undefined ? callDeadline(tool * SECOND_MS) : both !== undefined ? callDeadline(both) : format.callMs
  const startupTimeoutMs =
    startup !== undefined
      ? capped(startup * SECOND_MS)
      : both !== undefined && both > 0
        ? capped(both)
        : launcher
          ? LAUNCHER_STARTUP_MS
          : format.startupMs
  return {
    startupTimeoutMs,
    toolTimeoutMs,
    toolTimeoutsMs: decodeToolTimeouts(reader, format, warnings),
    toolTimeoutMaxMs: maximum === undefined ? undefined : capped(maximum * SECOND_MS)
  }
}

/** Tool names are exact; the unit follows the file: seconds in TOML, milliseconds in JSON as its `timeout`. */
const decodeToolTimeouts = (
  reader: FieldReader,
  format: EntryFormat,
  warnings: Array<string>
): { readonly [tool: string]: number } => {
  const property = reader.take("tool_timeouts")
  const inner = property === undefined ? undefined : reader.innerObject(property)
  if (property === undefined || inner === undefined) return record([])
  const unit = format.spelling === "toml" ? SECOND_MS : 1
  return record(
    inner.properties.flatMap(({ key, value }) => {
      const field = childPath(reader.pathOf(property), key)
      const number = reader.numberIn(value, field, anyNumber(unit === 1 ? "milliseconds" : "seconds"))
      if (number === undefined) return []
      if (unit === 1 && number > 0 && number < SECOND_MS)
        warnings.push(`${field} is counted in milliseconds: ${number} ms`)
      return [[key, callDeadline(number * unit)] as const]
    })
  )
}

const warnUnused = (reader: FieldReader, warnings: Array<string>): void => {
  for (const name of ["alwaysAllow", "autoApprove"]) {
    const property = reader.takeExact(name)
    if (property !== undefined)
      warnings.push(`${reader.pathOf(property)} is ignored: calls are allowed by [permission] rules only`)
  }
  const unknown = reader.unused().map(({ key }) => key)
  if (unknown.length > 0)
    warnings.push(`unknown keys are ignored: ${unknown.map((key) => JSON.stringify(key)).join(", ")}`)
}

/**
 * Decodes one entry. `path` is its path in the file (`mcp_servers[2]`, `mcpServers.fs`); `nameKey` is the key that
 * holds the name inside the entry, if it does.
 */
export const decodeEntry = (
  object: LocatedObject,
  facts: { readonly name: string; readonly at: Position; readonly path: string; readonly nameKey?: string },
  format: EntryFormat,
  context: DecodeContext
): Entry => {
  const issues: Issues = []
  const warnings: Array<string> = []
  const reader = new FieldReader(object, facts.path, format.spelling, issues)
  const { name } = facts
  const source = { file: context.file, line: facts.at.line, column: facts.at.column }

  const twice = deepDuplicate(object, facts.path)
  if (twice !== undefined) reader.add(twice.path, twice.at, "this key is written twice; keep one of them")
  if (facts.nameKey !== undefined) reader.takeExact(facts.nameKey)
  const badName = nameFault(name)
  if (badName !== undefined) {
    const property = object.properties.find(({ key }) => key === facts.nameKey)
    reader.add(
      facts.nameKey === undefined ? facts.path : childPath(facts.path, facts.nameKey),
      property?.value.at ?? facts.at,
      badName
    )
  }
  refuseUserFields(reader, context)

  const transport = format.transport(reader)
  if (transport !== undefined && transport !== "stdio") refuseRemote(reader, context)
  const endpoint =
    transport === undefined
      ? undefined
      : transport === "stdio"
        ? decodeStdio(reader, context)
        : decodeRemote(reader, transport, context.scope, warnings)
  if (endpoint !== undefined) refuseVariables(reader, endpoint, context)
  if (endpoint !== undefined)
    refuseOther(reader, endpoint._tag === "stdio" ? remoteFields : stdioFields, transport ?? "", format, warnings)
  else for (const field of [...stdioFields, ...remoteFields]) reader.take(field)

  const scoped = tightenTrust(context.scope, decodeTrust(reader))
  warnings.push(...scoped.warnings)
  const enabled = reader.bool("enabled") ?? true
  const disabled = reader.bool("disabled") ?? false
  const { defaults } = context
  const decoded = {
    name,
    scope: context.scope,
    source,
    format: format.spelling,
    raw: objectToJson(object, facts.nameKey),
    enabled: enabled && !disabled,
    startup: reader.choice("startup", ["eager", "lazy"]) ?? "eager",
    required: reader.bool("required") ?? format.required,
    trust: scoped.trust,
    ...decodeDeadlines(reader, format, endpoint?._tag === "stdio" ? endpoint.command : undefined, warnings),
    tracePropagation: reader.bool("trace_propagation") ?? false,
    timeoutMode: reader.choice("timeout_mode", ["total", "idle"]) ?? "total",
    onTimeout:
      reader.choice("on_timeout", ["close", "keep"]) ??
      defaults.onTimeout ??
      (endpoint?._tag === "remote" ? "keep" : "close"),
    restart: reader.choice("restart", ["on_failure", "never"]) ?? defaults.restart ?? "on_failure",
    refresh: reader.choice("refresh", ["overlap", "exclusive"]) ?? "overlap",
    shutdownGraceMs:
      reader.number("shutdown_grace_ms", { min: 0, max: MAX_GRACE_MS, integer: true, unit: "milliseconds" }) ??
      GRACE_MS,
    stdoutNoise: reader.choice("stdout_noise", ["refuse", "skip"]) ?? defaults.stdoutNoise ?? "refuse",
    protocol: reader.choice("protocol", protocols) ?? defaults.protocol ?? "auto",
    isolation: reader.choice("isolation", ["none", "pidns"]) ?? "none",
    share: reader.choice("share", ["all", "per_client"]) ?? "all",
    envMode: reader.choice("env_mode", ["isolated", "inherit_all"]) ?? defaults.envMode ?? "isolated",
    retries: reader.number("retries", { min: 0, max: 100, integer: true, unit: "" }) ?? DEFAULT_RETRIES,
    includeTools: reader.strings("include_tools") ?? [],
    excludeTools: reader.strings("exclude_tools") ?? [],
    ...(scoped.looser ? { looserTrust: true } : {}),
    warnings
  } as const
  if (format.strictKeys) reader.refuseUnused("a server entry")
  else warnUnused(reader, warnings)

  const [first, ...further] = issues
  if (first !== undefined || endpoint === undefined) {
    const issue = first ?? { field: facts.path, at: facts.at, text: "the entry names no transport" }
    return {
      _tag: "Broken",
      broken: {
        name,
        scope: context.scope,
        source,
        error: toError(issue, { file: context.file, server: name, further })
      }
    }
  }
  const declaration = { ...decoded, endpoint }
  return { _tag: "Valid", declaration: { ...declaration, unsupported: unsupportedOf(declaration) } }
}

/**
 * One declared server, whatever file and spelling it came from.
 *
 * R section 1 (TOML) and S section 1 (JSON) decode into this one model (S section 12.1). Values are as written:
 * `${VAR}` templates are expanded only at use (`Expansion.ts`), never stored. `raw` keeps the entry's keys as
 * written for fingerprints and for `mcp get`.
 */
import type { ConfigError } from "./ConfigError.ts"
import type { JsonObject } from "../base/Json.ts"

/** Sources of declarations in the order of precedence (spec section 2). */
export const scopes = ["cli", "dynamic", "user", "local", "project", "imported", "plugin"] as const
/** Where a declaration came from. */
export type Scope = (typeof scopes)[number]

/** Position of an entry. Lines and columns start at 1. `file` is `--mcp-config` for an inline value. */
export interface Source {
  readonly file: string
  readonly line: number
  readonly column: number
}

/** A child process that speaks MCP on its standard streams. */
export interface StdioEndpoint {
  readonly _tag: "stdio"
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** Working directory as written, relative to the declaring file's directory; absent = the workspace. */
  readonly cwd?: string
  /** Variables of the parent that the child may see; sorted, unique. */
  readonly inheritEnv: ReadonlyArray<string>
  /** Granted names whose values are not secrets. */
  readonly publicEnv: ReadonlyArray<string>
  /** Literal or `${VAR}` values set for the child. */
  readonly env: { readonly [name: string]: string }
}

/** Remote transports (S section 1.2; TOML spells the first one `streamable_http`). */
export type RemoteTransport = "streamable_http" | "sse" | "ws" | "http-json"

/** A server behind a URL. */
export interface RemoteEndpoint {
  readonly _tag: "remote"
  readonly transport: RemoteTransport
  readonly url: string
  /** Header values, literal or `${VAR}`. */
  readonly headers: { readonly [name: string]: string }
  /** Header name to environment variable name. */
  readonly envHeaders: { readonly [name: string]: string }
  readonly bearerTokenEnvVar?: string
  readonly oauth?: JsonObject
  readonly auth?: "backend"
  readonly clientCapabilities: ReadonlyArray<"roots" | "elicitation">
}

/** `[mcp_servers.trust]` (R section 1.5). */
export interface Trust {
  readonly trustClass: "official" | "self_hosted" | "third_party"
  readonly approvalDefault: "allow" | "ask" | "deny"
  readonly egressLogging: boolean
  readonly allowSecrets: boolean
  readonly pinVersion: boolean
  readonly pinned?: {
    readonly transportFingerprint: string
    readonly protocolVersion: string
    readonly serverName: string
    readonly serverVersion: string
  }
}

/** The plugin that brought an entry. */
export interface PluginOrigin {
  readonly id: string
  /** `workspace`: a repository's own, so it needs approval; `user`: from `$SIGIL_HOME/plugins`. */
  readonly from: "workspace" | "user"
  /** The plugin's directory, links resolved: its servers run there, and relative commands count from there. */
  readonly root: string
  /** Digest of the manifest's bytes as they were read, `sha256:` and hex. */
  readonly manifest: string
}

/** A field that is decoded but whose feature this build lacks. `safety` refuses every start, `feature` this server. */
export interface Unsupported {
  readonly field: string
  readonly kind: "feature" | "safety"
}

/** One server entry of a source. */
export interface ServerDeclaration {
  readonly name: string
  readonly scope: Scope
  readonly source: Source
  /** Which spelling the entry uses; decides the default deadlines. */
  readonly format: "toml" | "json"
  /** The entry's keys as written, without the name. */
  readonly raw: JsonObject
  readonly endpoint: StdioEndpoint | RemoteEndpoint
  readonly enabled: boolean
  readonly startup: "eager" | "lazy"
  readonly required: boolean
  readonly trust: Trust
  /** Start budget in ms: spawn, handshake and all tool pages (spec section 7). */
  readonly startupTimeoutMs: number
  /** Call deadline in ms. */
  readonly toolTimeoutMs: number
  /** Call deadline in ms of single tools, by exact tool name. */
  readonly toolTimeoutsMs: { readonly [tool: string]: number }
  readonly timeoutMode: "total" | "idle"
  /** Hard maximum of a call in idle mode, ms; ten times its deadline when absent. */
  readonly toolTimeoutMaxMs: number | undefined
  readonly onTimeout: "close" | "keep"
  readonly restart: "on_failure" | "never"
  readonly refresh: "overlap" | "exclusive"
  /** Grace between the steps of termination, ms, at most 10 s. */
  readonly shutdownGraceMs: number
  readonly stdoutNoise: "refuse" | "skip"
  /** `auto` or one exact revision. */
  readonly protocol: string
  readonly isolation: "none" | "pidns"
  readonly share: "all" | "per_client"
  readonly envMode: "isolated" | "inherit_all"
  readonly retries: number
  /** Whether W3C trace context goes to the server in `_meta` (spec section 13); never by default. */
  readonly tracePropagation: boolean
  /** Non-empty: the only tools that exist. Empty: no filter. */
  readonly includeTools: ReadonlyArray<string>
  readonly excludeTools: ReadonlyArray<string>
  readonly unsupported: ReadonlyArray<Unsupported>
  /** Set for a server that lives in this process (library); its command is then only a label. No file can say so. */
  readonly inProcess?: true
  /** Set for an entry of a plugin, and only for one. */
  readonly plugin?: PluginOrigin
  /** Set for a server that an IDE declares at run time; `policyLimits` spares it. No file can say so. */
  readonly origin?: "ide"
  /** True when a repository's entry asked for looser trust than the default; it was ignored, and `--all` never covers it. */
  readonly looserTrust?: boolean
  /** One line each, e.g. ignored keys. */
  readonly warnings: ReadonlyArray<string>
}

/** An entry that cannot be used. It still claims its name, so that a typo never activates a namesake. */
export interface BrokenDeclaration {
  readonly name: string
  readonly scope: Scope
  readonly source: Source
  readonly error: ConfigError
  /** Set for an entry of a plugin, and only for one. */
  readonly plugin?: PluginOrigin
}

/** What a source says about one name. */
export type Entry =
  | { readonly _tag: "Valid"; readonly declaration: ServerDeclaration }
  | { readonly _tag: "Broken"; readonly broken: BrokenDeclaration }

/**
 * What stands for the command of a server in this process. Never a path, so no executable can be meant by it, and
 * never a template.
 */
export const inProcessCommand = (name: string): string => `in-process:${name.replaceAll("$", "%24")}`

/** The variables whose values an entry hands to its server by name: grants, or those of headers. Sorted, unique. */
export const grantsOf = (endpoint: StdioEndpoint | RemoteEndpoint): ReadonlyArray<string> => {
  const names =
    endpoint._tag === "stdio"
      ? [...endpoint.inheritEnv, ...endpoint.publicEnv]
      : [
          ...Object.values(endpoint.envHeaders),
          ...(endpoint.bearerTokenEnvVar === undefined ? [] : [endpoint.bearerTokenEnvVar])
        ]
  return [...new Set(names)].sort()
}

/** The name of an entry. */
export const nameOf = (entry: Entry): string => (entry._tag === "Valid" ? entry.declaration.name : entry.broken.name)

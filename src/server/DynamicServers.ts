/**
 * What a program writes to declare servers without any file: scope `dynamic` (spec section 2).
 *
 * An entry has the keys of `.mcp.json`, `${NAME}` templates included, and is checked by the same decoder. These entries
 * count as the user's own word, so they need no approval; their calls still need permission.
 */
import type { JsonObject } from "../base/Json.ts"
import type { DynamicEntry } from "../config/DynamicSource.ts"
import type { MemoryServer } from "../transport/MemoryTransport.ts"

/** How far a server is trusted (R section 1.5). */
export interface TrustEntry {
  readonly trustClass?: "official" | "self_hosted" | "third_party"
  /** What calls need that no rule decides; `ask` when absent. */
  readonly approvalDefault?: "allow" | "ask" | "deny"
  /** Whether known secrets may be sent to it; `false` when absent. */
  readonly allowSecrets?: boolean
}

/** What every entry may say. */
export interface CommonEntry {
  readonly enabled?: boolean
  readonly trust?: TrustEntry
  /** Start budget: spawn, handshake and all tool pages; seconds (spec section 7). */
  readonly startupTimeoutSecs?: number
  /** Call deadline, seconds; 0 or less is 30 (spec section 7). */
  readonly toolTimeoutSecs?: number
  /** Call deadlines of single tools by exact name, milliseconds. */
  readonly toolTimeouts?: { readonly [tool: string]: number }
  /** What a call deadline does to the connection; when absent `close`, for a remote server `keep`. */
  readonly onTimeout?: "close" | "keep"
  /** The only tools that exist, by exact name. */
  readonly includeTools?: ReadonlyArray<string>
  readonly excludeTools?: ReadonlyArray<string>
  /** The one protocol revision to speak; `auto` when absent. */
  readonly protocol?: string
  /** `ide` when an IDE declares it: a company that switches MCP off spares it, `mcpPolicy` does not. */
  readonly origin?: "ide"
}

/** A server that is started as a process and speaks MCP on its standard streams. */
export interface StdioEntry extends CommonEntry {
  /** Program, as a path or a name on PATH. */
  readonly command: string
  readonly args?: ReadonlyArray<string>
  /** Working directory, relative to the workspace; the workspace when absent. */
  readonly cwd?: string
  /** Values set for the process; templates are expanded at its start. */
  readonly env?: { readonly [name: string]: string }
  /** Variables of this process that the server may see. */
  readonly inheritEnv?: ReadonlyArray<string>
  /** Variables that it may see and whose values are no secrets. */
  readonly publicEnv?: ReadonlyArray<string>
  /** Grace between the steps of its termination, ms, at most 10,000. */
  readonly shutdownGraceMs?: number
  /** Whether lines on stdout that are no MCP end the connection; `refuse` when absent. */
  readonly stdoutNoise?: "refuse" | "skip"
  /** `pidns`: a PID namespace of its own (Linux); refused where the system has none. `none` when absent. */
  readonly isolation?: "none" | "pidns"
}

/** A server behind a URL (spec section 6, "HTTP safety"). */
export interface RemoteEntry extends CommonEntry {
  /** https or wss; http and ws only to this very machine and without credentials. */
  readonly url: string
  /** How to speak to it; when absent `ws` for a ws or wss URL, else `http` (Streamable HTTP). */
  readonly transport?: "http" | "sse" | "ws" | "http-json"
  /** Headers of each request; templates are expanded at the start. */
  readonly headers?: { readonly [name: string]: string }
  /** Header name to the variable of this process that holds its value. */
  readonly envHttpHeaders?: { readonly [name: string]: string }
  /** The variable that holds the token of `Authorization: Bearer …`. */
  readonly bearerTokenEnvVar?: string
  /** What it may ask of this client; nothing when absent. */
  readonly clientCapabilities?: ReadonlyArray<"roots" | "elicitation">
}

/** A server that lives in this process. Nothing is started, and no network policy applies to its start. */
export interface InProcessEntry extends CommonEntry {
  readonly inProcess: MemoryServer
}

/** One server of a program. */
export type DynamicServer = StdioEntry | RemoteEntry | InProcessEntry

/** Servers by their exact names. */
export interface DynamicServers {
  readonly [name: string]: DynamicServer
}

/** Whether the server lives in this process. */
export const isInProcess = (entry: DynamicServer): entry is InProcessEntry =>
  isTable(entry) && "inProcess" in entry && typeof entry.inProcess === "function"

/** Whether it is what its type says, a table of keys: a program without types may hand over anything. */
const isTable = (entry: unknown): boolean => typeof entry === "object" && entry !== null && !Array.isArray(entry)

/** The entry as the decoder of JSON files takes it. */
export const entryOf = (given: DynamicServer): DynamicEntry => {
  if (!isTable(given)) return { entry: given, inProcess: false }
  const { origin, ...whole } = given
  // Only JSON by its type; whatever else a caller slips in is refused by the decoder.
  if (!isInProcess(whole)) return { entry: whole as unknown as JsonObject, inProcess: false, origin }
  const { inProcess: _, ...entry } = whole
  return { entry: entry as unknown as JsonObject, inProcess: true, origin }
}

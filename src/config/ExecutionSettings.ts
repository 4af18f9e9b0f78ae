/**
 * `[execution]` of sigil.toml (R section 1.11): whether servers run as they are or inside a sandbox.
 *
 * Decoded here, decided in the policy room. A word that nobody knows is a fault, and a fault in this table refuses
 * every start; a back end that is known and not built refuses each server with what is missing.
 */
import type { FieldReader } from "./Fields.ts"

/** Back ends that a sandbox can have by name; only `linux_bubblewrap` is built. */
export const sandboxBackends = ["linux_bubblewrap", "macos_seatbelt", "docker"] as const
/** A back end. */
export type SandboxBackend = (typeof sandboxBackends)[number]

/** `[execution]`. */
export interface ExecutionSettings {
  /** `sandbox`: every server process runs in a sandbox, or not at all. */
  readonly strategy: "local" | "sandbox"
  readonly backend: SandboxBackend
  /** Whether servers may write to the workspace. */
  readonly workspace: "writable" | "read-only"
  /** Absent: denied when the run's network mode is `deny`, else shared. */
  readonly network: "denied" | "shared" | undefined
  /** Hidden places that servers may read: absolute, or beginning with `~/`. */
  readonly readablePaths: ReadonlyArray<string>
  /** Places that servers may write to: absolute, or beginning with `~/`. */
  readonly writablePaths: ReadonlyArray<string>
}

/** What holds without an `[execution]` table. */
export const defaultExecution: ExecutionSettings = {
  strategy: "local",
  backend: "linux_bubblewrap",
  workspace: "writable",
  network: undefined,
  readablePaths: [],
  writablePaths: []
}

/** The whole file system is nobody's exception. */
const pathFault = (text: string): string | undefined => {
  if (/^\/+$/.test(text)) return "the root directory would leave nothing of the sandbox"
  return text.startsWith("/") || text === "~" || text.startsWith("~/")
    ? undefined
    : "expected an absolute path, or one that begins with ~/"
}

/** Reads `[execution]`; every fault goes to the reader's issues. */
export const decodeExecution = (reader: FieldReader): ExecutionSettings => {
  const settings = {
    strategy: reader.choice("strategy", ["local", "sandbox"]) ?? defaultExecution.strategy,
    backend: reader.choice("backend", sandboxBackends) ?? defaultExecution.backend,
    workspace: reader.choice("workspace", ["writable", "read-only"]) ?? defaultExecution.workspace,
    network: reader.choice("network", ["denied", "shared"]),
    readablePaths: reader.strings("readable_paths", pathFault) ?? [],
    writablePaths: reader.strings("writable_paths", pathFault) ?? []
  }
  reader.refuseUnused("execution")
  return settings
}

/** Whether the sandbox of this run has a network. */
export const networkOf = (execution: ExecutionSettings, mode: "allow" | "ask" | "deny"): "denied" | "shared" =>
  execution.network ?? (mode === "deny" ? "denied" : "shared")

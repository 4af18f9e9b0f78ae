/**
 * How bytes reach one server: the tag every face is tested through with a fake.
 *
 * A transport opens a `Wire` in a scope. The wire delivers whole messages to one receiver and says once how it
 * ended. Closing the scope closes the wire; `close` does the same and returns the evidence. A transport knows
 * nothing of requests, ids or tools.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { GenerationId } from "../base/Ids.ts"
import type { CleanupReport } from "../platform/CleanupReport.ts"
import type { Launcher } from "../platform/Launcher.ts"
import type { ExitStatus } from "../platform/ProcessTree.ts"
import type { TransportError } from "./TransportError.ts"

/** A resolved stdio launch: what admission hands over after its gates. */
export interface StdioPlan {
  readonly _tag: "stdio"
  /** Absolute path of the executable. */
  readonly file: string
  /** The command as the user wrote it; becomes argv[0]. */
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly cwd: string
  /** The whole environment of the child but for the generation marker. */
  readonly env: { readonly [name: string]: string }
  readonly graceMs: number
  /** Runs the server in a PID namespace of its own, or in a sandbox. */
  readonly launcher?: Launcher
}

/** What to open. */
export interface OpenRequest {
  readonly server: string
  readonly generation: GenerationId
  readonly plan: StdioPlan
}

/** Why a wire ended, as the transport saw it. The first cause wins (R section 4.5). */
export interface WireEnd {
  /** A reason of R section 4.3, e.g. `stream_closed`, `frame_too_large`, `stderr_limit`. */
  readonly reason: string
  /** One sentence. */
  readonly text: string
  /** How the process ended, when it did. */
  readonly exit?: ExitStatus
  readonly details?: { readonly [key: string]: unknown }
}

/** What the server wrote to its stderr, as far as it was kept. */
export interface StderrView {
  /** Kept text; a gap between head and tail is marked with its size. */
  readonly text: string
  readonly totalBytes: number
}

/** Takes what arrives. Called on the event loop, never concurrently. */
export interface Receiver {
  /** One whole message as text, with its size on the wire. Return false to stop reading. */
  readonly message: (text: string, bytes: number) => boolean
  /** The wire ended; called once. */
  readonly end: (end: WireEnd) => void
}

/** One open connection. */
export interface Wire {
  /** Starts delivery; messages that came before are kept. Called once. */
  readonly listen: (receiver: Receiver) => void
  /** Queues one message. False when the wire is closed. Larger than a frame may be: the caller checks. */
  readonly send: (text: string) => boolean
  /** Bytes queued and not yet taken by the peer. */
  readonly backlogBytes: () => number
  /** Completes when the backlog is gone or the wire has ended. */
  readonly drained: Effect.Effect<void>
  /** Ends the wire and everything behind it; idempotent, bounded, never fails. */
  readonly close: Effect.Effect<CleanupReport>
  readonly stderr: () => StderrView
  /** Calls the listener with stderr text as it comes; returns what stops it. */
  readonly onStderr: (listener: (text: string) => void) => () => void
  /** Begins a new window of the stderr budget: an operation started. */
  readonly openWindow: () => void
  readonly pid?: number
}

/** Opens wires. */
export class Transport extends Context.Tag("sigil/transport/Transport")<
  Transport,
  {
    /** Opens one wire; its scope owns everything the wire needs. */
    readonly open: (request: OpenRequest) => Effect.Effect<Wire, TransportError, Scope.Scope>
  }
>() {}

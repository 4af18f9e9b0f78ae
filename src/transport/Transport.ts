/**
 * How bytes reach one server: the tag every face is tested through with a fake.
 *
 * A transport opens a `Wire` in a scope. The wire delivers whole messages to one receiver and says once how it
 * ended. Closing the scope closes the wire; `close` does the same and returns the evidence. A transport knows
 * nothing of requests, ids or tools.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { Code } from "../base/Codes.ts"
import type { GenerationId } from "../base/Ids.ts"
import type { RemoteTransport } from "../config/ServerDeclaration.ts"
import type { DestinationRules } from "../net/DestinationRules.ts"
import type { CleanupReport } from "../platform/CleanupReport.ts"
import type { Launcher } from "../platform/Launcher.ts"
import type { ExitStatus } from "../platform/ProcessTree.ts"
import type { ErrorObject, Id } from "../protocol/JsonRpc.ts"
import type { Revision } from "../protocol/Revision.ts"
import { TransportError } from "./TransportError.ts"

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

/** A resolved remote endpoint: what admission hands over after its gates. Nothing was resolved or dialled yet. */
export interface RemotePlan {
  readonly _tag: "remote"
  readonly transport: RemoteTransport
  /** The expanded URL. */
  readonly url: string
  /** Scheme, host and port as they may be shown and recorded: variables by their names. */
  readonly shown: string
  /** Headers of the entry with their values; names as written. */
  readonly headers: ReadonlyArray<{
    readonly name: string
    readonly value: Redacted.Redacted<string>
    /** Whether the value is a credential: it then travels to its own origin only, and never unencrypted. */
    readonly credential: boolean
  }>
  readonly rules: DestinationRules
  readonly proxyMode: "environment" | "direct"
  readonly connectTimeoutMs: number
}

/** How one server is reached. */
export type Plan = StdioPlan | RemotePlan

/** What to open. */
export interface OpenRequest {
  readonly server: string
  readonly generation: GenerationId
  readonly plan: Plan
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

/** What a transport with a request of its own per message needs to know of one; streams ignore it. */
export interface Outgoing {
  /** Id of the request, or of the server's request that this answers; absent for a notification. */
  readonly id?: Id
  /** Absent for an answer. */
  readonly method?: string
  /** The method of the server's request that this answers. */
  readonly answers?: string
  /** Headers that belong to this message, e.g. `Mcp-Method`. */
  readonly headers?: { readonly [name: string]: string }
}

/** Why one request got no answer although the wire lives on. */
export interface DeliveryFault {
  readonly code: Code
  readonly reason: string
  /** One sentence, safe to show; it never repeats what a remote side wrote. */
  readonly text: string
  readonly fix?: string
  /** `no`: it provably was not processed, so it may be sent again. */
  readonly delivered: "no" | "unknown"
  /** HTTP status, where one came. */
  readonly status?: number
  /** How long the server asks to be left alone. */
  readonly retryAfterMs?: number
  /** The JSON-RPC error of the body, where it was one. */
  readonly error?: ErrorObject
  readonly details?: { readonly [key: string]: unknown }
}

/** Takes what arrives. Called on the event loop, never concurrently. */
export interface Receiver {
  /**
   * One whole message as text, with its size on the wire. `about`: the request whose own answer carried it, where
   * requests have one. Return false to stop reading.
   */
  readonly message: (text: string, bytes: number, about?: Id) => boolean
  /** Whether a request still waits for its answer. */
  readonly waits?: (id: Id) => boolean
  /** One request will get no answer; the wire lives on. Only transports with a request of their own per message. */
  readonly failed?: (id: Id, fault: DeliveryFault) => void
  /** What the server said by itself may have been lost for a while; the wire lives on. */
  readonly missed?: (() => void) | undefined
  /** The wire ended; called once. */
  readonly end: (end: WireEnd) => void
}

/** One open connection. */
export interface Wire {
  /** Starts delivery; messages that came before are kept. Called once. */
  readonly listen: (receiver: Receiver) => void
  /** Queues one message. False when the wire is closed. Larger than a frame may be: the caller checks. */
  readonly send: (text: string, about?: Outgoing) => boolean
  /**
   * Nobody waits for the answer to this request any more: ends what would carry it. Absent where requests share one
   * stream.
   */
  readonly abandon?: (id: Id) => void
  /** Whether `abandon` alone tells the server so. */
  readonly cancelsByClosing?: boolean
  /** The revision is agreed on; told once, before the first message that follows from it. */
  readonly agreed?: (revision: Revision) => void
  /** The session id of HTTP, once there is one. */
  readonly session?: () => string | undefined
  /** Bytes queued and not yet taken by the peer; 0 where each message has a request of its own. */
  readonly backlogBytes: () => number
  /**
   * Completes when the backlog is gone or the wire has ended; where each message has a request of its own, when all
   * notifications were taken.
   */
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

/** The failure of a transport that is handed a plan which is not for it: the composition lacks the right one. */
export const noCarrier = (request: OpenRequest): TransportError =>
  new TransportError({
    code: "SIGIL_NOT_SUPPORTED",
    reason: "no_transport",
    text: `No transport of this composition reaches the server '${request.server}' (${
      request.plan._tag === "remote" ? request.plan.transport : "stdio"
    }).`,
    where: { server: request.server, operation: "open" }
  })

/** What one connection is made with, and what it tolerates and counts. */
import type { JsonObject } from "../base/Json.ts"
import type { Standing } from "../protocol/Stateless.ts"
import type { ConnectionFacts } from "../telemetry/Spans.ts"
import type { ServerRequestHandler } from "./Request.ts"

/** What the connection does on events that are not answers. */
export interface ConnectionOptions {
  readonly server: string
  readonly handlers: ReadonlyMap<string, ServerRequestHandler>
  /** Any notification but progress and cancelled. */
  readonly onNotification: (method: string, params: JsonObject) => void
  /** What the server announced may have been lost for a while. */
  readonly onMissed?: () => void
  /** Whether a value may go to this server as far as known secrets go. */
  readonly mayLeave: (value: JsonObject) => boolean
  /** Hides known secrets in what the server says; applied before anything is cut. */
  readonly redact: (text: string) => string
  /** The same for texts that are read one after the other; one for each request. */
  readonly redactStream: () => (text: string) => string
  readonly stdoutNoise: "refuse" | "skip"
  readonly onTimeout: "close" | "keep"
  /** The granted variable that is different now, if one is: checked before each write and each accepted message. */
  readonly changedVariable: () => string | undefined
  /** What every request says of the host where a revision wants that. */
  readonly standing: Standing
  /** What spans and measurements say of this connection. */
  readonly telemetry: ConnectionFacts
}

/** Odd things a server did that were tolerated. */
export interface Oddities {
  noiseLines: number
  /** Answers that named no open request, stray progress and cancellations, ids of the wrong type. */
  strayMessages: number
  /** Messages that came while nothing was open. */
  idleMessages: number
  readonly warnings: Set<string>
  /** Methods of the server that were answered with -32601. */
  readonly declined: Set<string>
}

/**
 * The span of one MCP call, made on the Tracer directly, and the names that all telemetry uses.
 *
 * `Effect.withSpan` on every call costs more than the call's own work. Here a span exists only when somebody
 * listens: a program that installs no tracer of its own pays one reference comparison. Names and attributes are
 * those of OpenTelemetry's semantic conventions for MCP; `sigil.*` stands only for what they do not name.
 * No attribute ever holds argument values, results, variables or command lines, and no error text: a server's
 * message may repeat any of them. A failed span carries the error's code and reason instead.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Tracer from "effect/Tracer"
import { isFailure } from "../base/Failure.ts"
import { type Meter, meterOf } from "./Metrics.ts"

/** Attribute names (OpenTelemetry semantic conventions, MCP). */
export const Attribute = {
  method: "mcp.method.name",
  tool: "gen_ai.tool.name",
  prompt: "gen_ai.prompt.name",
  operation: "gen_ai.operation.name",
  resource: "mcp.resource.uri",
  protocolVersion: "mcp.protocol.version",
  session: "mcp.session.id",
  requestId: "jsonrpc.request.id",
  statusCode: "rpc.response.status_code",
  errorType: "error.type",
  transport: "network.transport",
  protocolName: "network.protocol.name",
  pid: "process.pid",
  /** Exact name of the server as declared; the conventions know no name of a server. */
  server: "sigil.server.name",
  /** UUID of the live connection; stdio has no `mcp.session.id`. */
  generation: "sigil.generation.id",
  startKind: "sigil.start.kind",
  /** Gate that refused an admission. */
  gate: "sigil.admission.gate",
  /** Whether everything behind a closed connection is known to be gone. */
  cleanupComplete: "sigil.cleanup.complete",
  /** Why it is not. */
  cleanupReason: "sigil.cleanup.reason",
  /** Literal reason inside an error code, e.g. `frame_too_large`. */
  reason: "sigil.error.reason"
} as const

/** `error.type` of a result with `isError`, by the conventions. */
export const TOOL_ERROR = "tool_error"
/** `error.type` when nothing more is known, by the conventions. */
export const OTHER_ERROR = "_OTHER"

/** What an attribute may hold. */
export interface Attributes {
  readonly [name: string]: string | number | boolean
}

/** What a span is made with. */
export interface SpanStart {
  readonly name: string
  readonly attributes: Attributes
  /** `client` when absent: a call to a server. */
  readonly kind?: Tracer.SpanKind
  /** A span that this one belongs with but is no part of. */
  readonly link?: Tracer.AnySpan
  /** Begins a trace of its own, whatever span is around it. */
  readonly root?: true
}

/** Somebody who listens to one operation. */
export interface Listener {
  readonly span: Tracer.Span
  /** Present when the listener takes measurements too. */
  readonly meter: Meter | undefined
}

let known: Tracer.Tracer | undefined

/**
 * Whether a tracer is the one of a program that installed none. Asked of a fresh fiber, at the first use: when two
 * copies of Effect are in one process, each has a default of its own and only the first one's is in use.
 */
export const isSilent = (tracer: Tracer.Tracer): boolean => tracer === (known ??= Effect.runSync(Effect.tracer))

/** The low-cardinality class of an error: the JSON-RPC code of the server's answer, else the stable code. */
export const errorTypeOf = (error: unknown): string => {
  if (typeof error === "object" && error !== null && "rpcCode" in error && typeof error.rpcCode === "number") {
    return String(error.rpcCode)
  }
  return isFailure(error) ? error.code : OTHER_ERROR
}

/** Says on a span how an operation failed: type and reason, never a text. */
export const annotateFailure = <E>(span: Tracer.Span, cause: Cause.Cause<E>, errorType: (error: E) => string): void => {
  const failure = Cause.failureOption(cause)
  if (failure._tag === "None") {
    span.attribute(Attribute.errorType, Cause.isInterrupted(cause) ? "SIGIL_INTERRUPTED" : "SIGIL_INTERNAL")
    return
  }
  const error: unknown = failure.value
  span.attribute(Attribute.errorType, errorType(failure.value))
  if (typeof error !== "object" || error === null) return
  if ("rpcCode" in error && typeof error.rpcCode === "number") {
    span.attribute(Attribute.statusCode, String(error.rpcCode))
  }
  if (isFailure(error)) span.attribute(Attribute.reason, error.reason)
}

/** Runs an effect inside a span and tells it who listens; with no tracer installed it runs as it is. */
export const withListener = <A, E, R>(
  start: SpanStart,
  errorType: (error: E) => string,
  body: (listener: Listener | undefined) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.tracerWith((tracer) =>
    isSilent(tracer)
      ? body(undefined)
      : Effect.useSpan(
          start.name,
          {
            kind: start.kind ?? "client",
            attributes: start.attributes,
            // A stack would put paths of this machine into every failed span.
            captureStackTrace: false,
            root: start.root === true,
            ...(start.link === undefined ? {} : { links: [{ _tag: "SpanLink", span: start.link, attributes: {} }] })
          },
          (span) =>
            body({ span, meter: meterOf(tracer) }).pipe(
              Effect.onExit((exit) =>
                Exit.isFailure(exit) ? Effect.sync(() => annotateFailure(span, exit.cause, errorType)) : Effect.void
              ),
              Effect.withParentSpan(span)
            )
        )
  )

/** Runs an effect inside a client span; with no tracer installed the effect runs as it is. */
export const withCallSpan = <A, E, R>(
  start: SpanStart,
  errorType: (error: E) => string,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => withListener(start, errorType, () => effect)

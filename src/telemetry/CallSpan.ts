/**
 * The span of one MCP call, made on the Tracer directly.
 *
 * `Effect.withSpan` on every call costs more than the call's own work. Here a span exists only when somebody
 * listens: a program that installs no tracer of its own pays one reference comparison. Names and attributes are
 * those of OpenTelemetry's semantic conventions for MCP.
 */
import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Effect from "effect/Effect"
import * as Tracer from "effect/Tracer"

/** Attribute names (OpenTelemetry semantic conventions, MCP). */
export const Attribute = {
  method: "mcp.method.name",
  tool: "gen_ai.tool.name",
  operation: "gen_ai.operation.name",
  protocolVersion: "mcp.protocol.version",
  session: "mcp.session.id",
  errorType: "error.type",
  server: "sigil.server.name",
  transport: "network.transport"
} as const

/** What a span is made with. */
export interface SpanStart {
  readonly name: string
  readonly attributes: { readonly [name: string]: string | number | boolean }
}

const silent = Context.get(DefaultServices.liveServices, Tracer.Tracer)

/** Runs an effect inside a client span; with no tracer installed the effect runs as it is. */
export const withCallSpan = <A, E, R>(
  start: SpanStart,
  errorType: (error: E) => string,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.tracer, (tracer) =>
    tracer === silent
      ? effect
      : Effect.useSpan(start.name, { kind: "client", attributes: start.attributes }, (span) =>
          effect.pipe(
            Effect.tapError((error) => Effect.sync(() => span.attribute(Attribute.errorType, errorType(error)))),
            Effect.withParentSpan(span)
          )
        )
  )

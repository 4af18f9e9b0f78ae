/**
 * What a collector receives, as schemas that allow nothing else, and the ways a test starts an exporter.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import * as Random from "../../src/platform/Random.ts"
import { layer as secretsLayer } from "../../src/policy/Secrets.ts"
import { Attribute, errorTypeOf, withCallSpan } from "../../src/telemetry/CallSpan.ts"
import * as Otlp from "../../src/telemetry/Otlp.ts"
import { type Exporter, start } from "../../src/telemetry/OtlpExporter.ts"
import { read } from "../../src/telemetry/OtlpSettings.ts"
import * as Spans from "../../src/telemetry/Spans.ts"

const Value = Schema.Union(
  Schema.Struct({ stringValue: Schema.String }),
  Schema.Struct({ intValue: Schema.String.pipe(Schema.pattern(/^-?\d+$/)) }),
  Schema.Struct({ doubleValue: Schema.Union(Schema.Number, Schema.Literal("NaN", "Infinity", "-Infinity")) }),
  Schema.Struct({ boolValue: Schema.Boolean }),
  Schema.Struct({ arrayValue: Schema.Struct({ values: Schema.Array(Schema.Unknown) }) })
)
const KeyValues = Schema.Array(Schema.Struct({ key: Schema.String, value: Value }))
const Nanos = Schema.String.pipe(Schema.pattern(/^\d+$/))
const TraceId = Schema.String.pipe(Schema.pattern(/^[0-9a-f]{32}$/))
const SpanId = Schema.String.pipe(Schema.pattern(/^[0-9a-f]{16}$/))
const Resource = Schema.Struct({ attributes: KeyValues })
const InstrumentationScope = Schema.Struct({ name: Schema.String, version: Schema.String })
const SpanBody = Schema.Struct({
  traceId: TraceId,
  spanId: SpanId,
  traceState: Schema.optional(Schema.String),
  parentSpanId: Schema.optional(SpanId),
  flags: Schema.Int,
  name: Schema.NonEmptyString,
  kind: Schema.Literal(1, 2, 3, 4, 5),
  startTimeUnixNano: Nanos,
  endTimeUnixNano: Nanos,
  attributes: KeyValues,
  droppedAttributesCount: Schema.Int,
  events: Schema.Array(Schema.Struct({ timeUnixNano: Nanos, name: Schema.String, attributes: KeyValues })),
  droppedEventsCount: Schema.Int,
  links: Schema.Array(Schema.Struct({ traceId: TraceId, spanId: SpanId, attributes: KeyValues })),
  status: Schema.Struct({ code: Schema.Literal(0, 2), message: Schema.optional(Schema.String) })
})
/** The export request of traces, closed: a member that the protocol does not know is a fault. */
export const Traces = Schema.Struct({
  resourceSpans: Schema.Tuple(
    Schema.Struct({
      resource: Resource,
      scopeSpans: Schema.Tuple(Schema.Struct({ scope: InstrumentationScope, spans: Schema.Array(SpanBody) }))
    })
  )
})
const HistogramPoint = Schema.Struct({
  attributes: KeyValues,
  startTimeUnixNano: Nanos,
  timeUnixNano: Nanos,
  count: Nanos,
  sum: Schema.Number,
  min: Schema.Number,
  max: Schema.Number,
  bucketCounts: Schema.Array(Nanos),
  explicitBounds: Schema.Array(Schema.Number)
})
const MetricsBody = Schema.Struct({
  resourceMetrics: Schema.Tuple(
    Schema.Struct({
      resource: Resource,
      scopeMetrics: Schema.Tuple(
        Schema.Struct({
          scope: InstrumentationScope,
          metrics: Schema.Array(
            Schema.Struct({
              name: Schema.String,
              description: Schema.String,
              unit: Schema.Literal("s"),
              histogram: Schema.Struct({
                aggregationTemporality: Schema.Literal(1, 2),
                dataPoints: Schema.Array(HistogramPoint)
              })
            })
          )
        })
      )
    })
  )
})
const closed = { onExcessProperty: "error" } as const
export const tracesOf = (body: unknown) =>
  Schema.decodeUnknownSync(Traces)(body, closed).resourceSpans[0].scopeSpans[0].spans
export const metricsOf = (body: unknown) =>
  Schema.decodeUnknownSync(MetricsBody)(body, closed).resourceMetrics[0].scopeMetrics[0].metrics
export const valuesOf = (attributes: typeof KeyValues.Type): { readonly [key: string]: unknown } =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

export const facts: Spans.ConnectionFacts = {
  server: "files",
  generation: "g-1",
  transport: "pipe",
  protocolVersion: () => "2025-11-25",
  propagate: false
}
export const call = <E>(outcome: Effect.Effect<{ readonly isError?: boolean }, E>) =>
  withCallSpan(
    { name: "tools/call echo", attributes: { [Attribute.method]: "tools/call", [Attribute.server]: "files" } },
    errorTypeOf,
    Spans.exchange(facts, "tools/call", { name: "echo" }, (sending) => {
      sending?.sent(3)
      return outcome
    })
  )

/** The layer over given variables, with all that is logged. */
export const withVariables = (variables: { readonly [name: string]: string }, logs: Array<string> = []) => {
  const ground = Layer.mergeAll(
    HostEnvironment.layerTest({ variables }),
    Random.layer,
    secretsLayer,
    Logger.replace(
      Logger.defaultLogger,
      Logger.make(({ message, logLevel }) => void logs.push(`${logLevel.label} ${String(message)}`))
    )
  )
  return Layer.provideMerge(Otlp.layer, ground)
}

/** An exporter over variables in a scope of its own; `close` ends it. */
export const exporterOf = (variables: { readonly [name: string]: string }, flushMs?: number) =>
  Effect.gen(function* () {
    const logs: Array<string> = []
    const scope = yield* Scope.make()
    const logger = Logger.replace(
      Logger.defaultLogger,
      Logger.make(({ message }) => void logs.push(String(message)))
    )
    const exporter: Exporter = yield* start(
      read((name) => variables[name]),
      {
        uuid: () => crypto.randomUUID(),
        redact: (text) => text,
        ...(flushMs === undefined ? {} : { flushMs })
      }
    ).pipe(Scope.extend(scope), Effect.provide(logger))
    const span = (name: string): void =>
      exporter.tracer.span(name, Option.none(), Context.empty(), [], 0n, "internal").end(1n, Exit.void)
    return { ...exporter, logs, span, close: Effect.provide(Scope.close(scope, Exit.void), logger) }
  })

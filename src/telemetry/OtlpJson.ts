/**
 * Spans and histograms as OTLP JSON (OTLP 1.10, JSON Protobuf encoding), pure.
 *
 * 64-bit integers are decimal strings, ids are hexadecimal, enumerations are numbers. Every text passes
 * `redact`, names and keys included, at the moment it is encoded: secrets that became known after a span ended
 * are hidden too. Exceptions are not encoded: their texts and stacks may hold anything.
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import { isFailure } from "../base/Failure.ts"
import type { Json, JsonObject } from "../base/Json.ts"
import { VERSION } from "../base/Version.ts"
import { Attribute } from "./CallSpan.ts"
import type { Histogram } from "./Metrics.ts"
import type { RecordedSpan } from "./RecordingTracer.ts"
import { stateOf } from "./TraceContext.ts"

/** Name of the instrumentation scope. */
const SCOPE = "sigil"
/** `SpanKind` of the protocol. */
const kinds = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const
const STATUS_UNSET = 0
const STATUS_ERROR = 2
/** `SpanFlags`: sampled, "it is known whether the parent is remote", "it is". */
const SAMPLED = 0x1
const HAS_IS_REMOTE = 0x100
const IS_REMOTE = 0x200
/** `AggregationTemporality` of the protocol. */
const temporalities = { delta: 1, cumulative: 2 } as const
/** Values of one array attribute. */
const MAX_ARRAY = 128

/** Hides secrets in a text. */
export type Redact = (text: string) => string

/** A value of any kind as an `AnyValue`; objects are not looked into. */
const anyValue = (value: unknown, redact: Redact, nested = false): JsonObject => {
  switch (typeof value) {
    case "string":
      return { stringValue: redact(value) }
    case "boolean":
      return { boolValue: value }
    case "bigint":
      return { intValue: String(value) }
    case "number":
      if (Number.isSafeInteger(value)) return { intValue: String(value) }
      // JSON has no word for these; the JSON mapping of Protobuf spells them as strings.
      return { doubleValue: Number.isFinite(value) ? value : String(value) }
    default:
      return Array.isArray(value) && !nested
        ? { arrayValue: { values: value.slice(0, MAX_ARRAY).map((item: unknown) => anyValue(item, redact, true)) } }
        : { stringValue: value === null || value === undefined ? String(value) : "[object]" }
  }
}

const keyValues = (attributes: Iterable<readonly [string, unknown]>, redact: Redact): ReadonlyArray<JsonObject> =>
  Array.from(attributes, ([key, value]) => ({ key: redact(key), value: anyValue(value, redact) }))

/** A span failed when its effect did, or when it was told an error type (a tool's `isError`). */
const statusOf = (span: RecordedSpan, redact: Redact): JsonObject => {
  const exit = span.status._tag === "Ended" ? span.status.exit : Exit.void
  const type = span.attributes.get(Attribute.errorType)
  if (Exit.isSuccess(exit) && type === undefined) return { code: STATUS_UNSET }
  const failure = Exit.isFailure(exit) ? Cause.failureOption(exit.cause) : undefined
  const reason =
    failure?._tag === "Some" && isFailure(failure.value)
      ? failure.value.reason
      : typeof type === "string"
        ? type
        : undefined
  return { code: STATUS_ERROR, ...(reason === undefined ? {} : { message: redact(reason) }) }
}

const encodeSpan = (span: RecordedSpan, redact: Redact): JsonObject => {
  const parent = span.parent._tag === "Some" ? span.parent.value : undefined
  const state = stateOf(span)
  const remote = parent?._tag === "ExternalSpan" ? IS_REMOTE : 0
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    ...(state === "" ? {} : { traceState: state }),
    ...(parent === undefined ? {} : { parentSpanId: parent.spanId }),
    flags: HAS_IS_REMOTE | remote | (span.sampled ? SAMPLED : 0),
    name: redact(span.name),
    kind: kinds[span.kind],
    startTimeUnixNano: String(span.startTime),
    endTimeUnixNano: String(span.endTime),
    attributes: keyValues(span.attributes, redact),
    droppedAttributesCount: span.droppedAttributes,
    events: span.events.map((event) => ({
      timeUnixNano: String(event.time),
      name: redact(event.name),
      attributes: keyValues(Object.entries(event.attributes), redact)
    })),
    droppedEventsCount: span.droppedEvents,
    links: span.links.map((link) => ({
      traceId: link.span.traceId,
      spanId: link.span.spanId,
      attributes: keyValues(Object.entries(link.attributes), redact)
    })),
    status: statusOf(span, redact)
  }
}

const resourceOf = (resource: { readonly [name: string]: string }, redact: Redact): JsonObject => ({
  attributes: keyValues(Object.entries(resource), redact)
})
const scope: JsonObject = { name: SCOPE, version: VERSION }

/** The body of an `ExportTraceServiceRequest`. */
export const encodeSpans = (
  spans: ReadonlyArray<RecordedSpan>,
  resource: { readonly [name: string]: string },
  redact: Redact
): string =>
  JSON.stringify({
    resourceSpans: [
      {
        resource: resourceOf(resource, redact),
        scopeSpans: [{ scope, spans: spans.map((span) => encodeSpan(span, redact)) }]
      }
    ]
  } satisfies JsonObject)

/** The time that a set of measurements covers, Unix ns. */
export interface Window {
  readonly start: bigint
  readonly end: bigint
  readonly temporality: "cumulative" | "delta"
}

/** The body of an `ExportMetricsServiceRequest`. */
export const encodeHistograms = (
  histograms: ReadonlyArray<Histogram>,
  window: Window,
  resource: { readonly [name: string]: string },
  redact: Redact
): string => {
  const metrics: ReadonlyArray<Json> = histograms.map(({ instrument, series }) => ({
    name: instrument.name,
    description: instrument.description,
    unit: instrument.unit,
    histogram: {
      aggregationTemporality: temporalities[window.temporality],
      dataPoints: series.map((row) => ({
        attributes: keyValues(Object.entries(row.attributes), redact),
        startTimeUnixNano: String(window.start),
        timeUnixNano: String(window.end),
        count: String(row.count),
        sum: row.sum,
        min: row.min,
        max: row.max,
        bucketCounts: row.buckets.map(String),
        explicitBounds: instrument.boundaries
      }))
    }
  }))
  return JSON.stringify({
    resourceMetrics: [{ resource: resourceOf(resource, redact), scopeMetrics: [{ scope, metrics }] }]
  } satisfies JsonObject)
}

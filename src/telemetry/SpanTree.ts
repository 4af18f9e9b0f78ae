/**
 * Collected spans as a tree for people: name, duration, outcome, attributes. For debugging and for tests.
 *
 * A span stands under its parent, in the order of starts; one whose parent was not collected stands at the top.
 * Texts come from servers too, so they are escaped and every span is one line.
 */
import * as Effect from "effect/Effect"
import type * as Tracer from "effect/Tracer"
import { clip, escapeLine } from "../base/Display.ts"
import { Random } from "../platform/Random.ts"
import { Attribute } from "./CallSpan.ts"
import * as Metrics from "./Metrics.ts"
import { make, type RecordedSpan } from "./RecordingTracer.ts"

/** Characters of one attribute's value. */
const MAX_VALUE = 80
/** Spans that are kept; later ones are not. */
const MAX_SPANS = 10_000
const NS_PER_MS = 1_000_000

/** Keeps spans in memory. */
export interface Collector {
  readonly tracer: Tracer.Tracer
  /** Ended spans in the order they ended. */
  readonly spans: () => ReadonlyArray<RecordedSpan>
  /** Measurements taken. */
  readonly measured: () => ReadonlyArray<Metrics.Histogram>
}

/** A collector; install its tracer with `Effect.withTracer` or `Layer.setTracer`. */
export const collector: Effect.Effect<Collector, never, Random> = Effect.map(Random, ({ uuid }) => {
  const ended: Array<RecordedSpan> = []
  const store = Metrics.makeStore()
  const tracer = make({
    uuid,
    onEnd: (span) => {
      if (ended.length < MAX_SPANS) ended.push(span)
    }
  })
  return { tracer: Metrics.withMeter(tracer, store), spans: () => [...ended], measured: store.collect }
})

/** How a tree is printed. */
export interface TreeOptions {
  /** Leaves durations out, so that two runs print the same. */
  readonly durations?: boolean
  /** Attributes to show; all when absent. */
  readonly attributes?: ReadonlyArray<string>
}

const duration = (span: RecordedSpan): string => {
  const ms = Number(span.endTime - span.startTime) / NS_PER_MS
  return ms >= 1_000 ? `${(ms / 1_000).toFixed(2)} s` : `${ms.toFixed(1)} ms`
}

const shown = (value: unknown): string =>
  typeof value === "object" && value !== null ? "[object]" : clip(escapeLine(String(value)), MAX_VALUE)

const line = (span: RecordedSpan, options: TreeOptions): string => {
  const failed =
    span.attributes.has(Attribute.errorType) || (span.status._tag === "Ended" && span.status.exit._tag === "Failure")
  const attributes = [...span.attributes]
    .filter(([key]) => options.attributes === undefined || options.attributes.includes(key))
    .map(([key, value]) => ` ${escapeLine(key)}=${shown(value)}`)
  const took = options.durations === false ? "" : `  ${duration(span)}`
  return `${clip(escapeLine(span.name), MAX_VALUE)}${took}${failed ? "  failed" : ""}${attributes.length > 0 ? ` ${attributes.join("")}` : ""}`
}

const byStart = (left: RecordedSpan, right: RecordedSpan): number =>
  left.startTime < right.startTime ? -1 : left.startTime > right.startTime ? 1 : 0

/** Prints spans as lines of a tree. */
export const render = (spans: ReadonlyArray<RecordedSpan>, options: TreeOptions = {}): ReadonlyArray<string> => {
  // Parents are known by identity of trace and span: two traces may use one span id.
  const keyOf = (span: Tracer.AnySpan): string => `${span.traceId}/${span.spanId}`
  const known = new Set(spans.map(keyOf))
  const children = new Map<string, Array<RecordedSpan>>()
  const roots: Array<RecordedSpan> = []
  for (const span of [...spans].sort(byStart)) {
    const parent = span.parent._tag === "Some" ? keyOf(span.parent.value) : undefined
    if (parent === undefined || !known.has(parent)) roots.push(span)
    else {
      const siblings = children.get(parent)
      if (siblings === undefined) children.set(parent, [span])
      else siblings.push(span)
    }
  }
  const lines: Array<string> = []
  // A list instead of recursion: a trace may be deeper than the stack.
  const open: Array<{ readonly span: RecordedSpan; readonly lead: string; readonly last: boolean | undefined }> = []
  const push = (list: ReadonlyArray<RecordedSpan>, lead: string, top: boolean): void => {
    for (const [index, span] of list.toReversed().entries())
      open.push({ span, lead, last: top ? undefined : index === 0 })
  }
  push(roots, "", true)
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { span, lead, last } = next
    const mark = last === undefined ? "" : last ? "└─ " : "├─ "
    const deeper = last === undefined ? "" : last ? "   " : "│  "
    lines.push(`${lead}${mark}${line(span, options)}`)
    push(children.get(keyOf(span)) ?? [], `${lead}${deeper}`, false)
  }
  return lines
}

/**
 * A tracer that makes its own spans and hands each one on when it has ended.
 *
 * Ids are W3C ones, so that a span can travel. A span without a parent belongs to the remote parent when the
 * tracer was given one (the process that started us), else it begins a trace. What was not sampled is never
 * handed on, and its children neither. Spans are bounded: a flood of attributes or events is counted, not kept.
 */
import type * as Context from "effect/Context"
import type * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"

/** Attributes and events of one span, each (OpenTelemetry's default limits). */
export const MAX_ENTRIES = 128
/** Characters of a name or a text attribute. */
export const MAX_TEXT = 1_024

/** One event of a span. */
export interface RecordedEvent {
  readonly name: string
  /** Unix time, ns. */
  readonly time: bigint
  readonly attributes: { readonly [name: string]: unknown }
}

/** A span as it was recorded. */
export interface RecordedSpan extends Tracer.Span {
  readonly events: ReadonlyArray<RecordedEvent>
  readonly droppedAttributes: number
  readonly droppedEvents: number
  /** Unix time, ns. */
  readonly startTime: bigint
  /** Unix time, ns; the start until it has ended. */
  readonly endTime: bigint
}

/** What a tracer needs. */
export interface RecordingOptions {
  /** A fresh UUID, version 4; ids are made of it. */
  readonly uuid: () => string
  /** Called once for each sampled span when it has ended. Must not throw. */
  readonly onEnd: (span: RecordedSpan) => void
  /** Shortens a text of more than `MAX_TEXT` characters; cuts when absent. */
  readonly shorten?: (text: string) => string
  /** Parent of spans that have none. */
  readonly remote?: Tracer.ExternalSpan
}

class Recorded implements RecordedSpan {
  readonly _tag = "Span"
  readonly name: string
  readonly spanId: string
  readonly traceId: string
  readonly parent: Option.Option<Tracer.AnySpan>
  readonly context: Context.Context<never>
  readonly kind: Tracer.SpanKind
  readonly sampled: boolean
  readonly startTime: bigint
  readonly attributes = new Map<string, unknown>()
  readonly links: Array<Tracer.SpanLink>
  readonly events: Array<RecordedEvent> = []
  status: Tracer.SpanStatus
  endTime: bigint
  droppedAttributes = 0
  droppedEvents = 0
  private readonly options: RecordingOptions

  constructor(
    options: RecordingOptions,
    name: string,
    parent: Option.Option<Tracer.AnySpan>,
    context: Context.Context<never>,
    links: ReadonlyArray<Tracer.SpanLink>,
    startTime: bigint,
    kind: Tracer.SpanKind
  ) {
    this.options = options
    this.name = this.bounded(name)
    this.parent = parent
    this.context = context
    this.links = [...links]
    this.kind = kind
    this.startTime = startTime
    this.endTime = startTime
    this.status = { _tag: "Started", startTime }
    this.traceId = Option.isSome(parent) ? parent.value.traceId : hex(options.uuid())
    this.spanId = hex(options.uuid()).slice(16)
    this.sampled = Option.isNone(parent) || parent.value.sampled
  }

  attribute(key: string, value: unknown): void {
    if (this.attributes.size >= MAX_ENTRIES && !this.attributes.has(key)) this.droppedAttributes += 1
    else this.attributes.set(key, typeof value === "string" ? this.bounded(value) : value)
  }

  event(name: string, time: bigint, attributes: { readonly [name: string]: unknown } = {}): void {
    if (this.events.length >= MAX_ENTRIES) this.droppedEvents += 1
    else this.events.push({ name: this.bounded(name), time, attributes })
  }

  addLinks(links: ReadonlyArray<Tracer.SpanLink>): void {
    for (const link of links) if (this.links.length < MAX_ENTRIES) this.links.push(link)
  }

  end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    if (this.status._tag === "Ended") return
    this.endTime = endTime
    this.status = { _tag: "Ended", startTime: this.startTime, endTime, exit }
    if (this.sampled) this.options.onEnd(this)
  }

  private bounded(text: string): string {
    if (text.length <= MAX_TEXT) return text
    return (this.options.shorten ?? cut)(text)
  }
}

const cut = (text: string): string => text.slice(0, MAX_TEXT)

/** The 32 digits of a UUID. The last 16 have 62 random bits: enough for a span, and never all zero. */
const hex = (uuid: string): string => uuid.replaceAll("-", "").toLowerCase()

/** Makes a tracer over a receiver of ended spans. */
export const make = (options: RecordingOptions): Tracer.Tracer => {
  const remote = options.remote
  const outside = remote === undefined ? Option.none<Tracer.AnySpan>() : Option.some<Tracer.AnySpan>(remote)
  return Tracer.make({
    span: (name, parent, context, links, startTime, kind, spanOptions) => {
      const root = spanOptions?.root === true
      const span = new Recorded(
        options,
        name,
        Option.isNone(parent) && !root ? outside : parent,
        context,
        links,
        startTime,
        kind
      )
      return span
    },
    context: (run) => run()
  })
}

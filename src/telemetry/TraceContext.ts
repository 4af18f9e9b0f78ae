/**
 * W3C Trace Context and Baggage for the `_meta` of MCP requests, pure.
 *
 * The keys stand unprefixed (SEP-414): `traceparent`, `tracestate`, `baggage`. What comes from outside is taken
 * only when it is valid, what goes out is always valid; a broken `tracestate` or `baggage` costs itself, a broken
 * `traceparent` the whole context. `tracestate` and `baggage` are passed on as they came: sigil adds nothing of
 * its own to either. Whether a server may see any of it is decided by the caller (spec section 13).
 */
import * as Context from "effect/Context"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import * as Baggage from "./Baggage.ts"

/** Members of one tracestate (W3C Trace Context 3.3.1.1). */
export const MAX_STATE_MEMBERS = 32
/** Characters of a tracestate that are passed on at least, and here at most (3.3.1.5). */
export const MAX_STATE_LENGTH = 512
/** Members longer than this go first when a tracestate is too long (3.3.1.5). */
const LONG_MEMBER = 128

/** The ids of one span as they travel. */
export interface TraceParent {
  /** 32 lower-case hexadecimal digits, not all zero. */
  readonly traceId: string
  /** 16 lower-case hexadecimal digits, not all zero. */
  readonly spanId: string
  readonly sampled: boolean
}

/** One vendor's entry of a tracestate. */
export interface StateMember {
  readonly key: string
  readonly value: string
}

/** A span of somebody else with what came with it. */
export interface Remote {
  readonly parent: TraceParent
  readonly state: ReadonlyArray<StateMember>
  readonly baggage: ReadonlyArray<Baggage.Member>
}

/** What travels beside the ids; kept in the context of the external span that stands for the remote one. */
class Companions extends Context.Tag("sigil/telemetry/TraceContext/Companions")<
  Companions,
  Pick<Remote, "state" | "baggage">
>() {}

const hex = (length: number): RegExp => new RegExp(`^(?!0{${length}})[0-9a-f]{${length}}$`)
const traceIdForm = hex(32)
const spanIdForm = hex(16)
const parentForm = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Reads a `traceparent`; `undefined` when it is not valid. Later versions are read as far as version 00 goes. */
export const parseParent = (text: string): TraceParent | undefined => {
  const match = parentForm.exec(text)
  if (match === null) return undefined
  const [, version, traceId = "", spanId = "", flags = "", rest] = match
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined
  if (!traceIdForm.test(traceId) || !spanIdForm.test(spanId)) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** Prints a `traceparent` of version 00. */
export const printParent = ({ traceId, spanId, sampled }: TraceParent): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`

const stateKeyForm = /^(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})$/
const stateValueForm = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/

/** Reads a `tracestate`; empty when any member is not valid, is there twice, or there are too many. */
export const parseState = (text: string): ReadonlyArray<StateMember> => {
  const members: Array<StateMember> = []
  const seen = new Set<string>()
  for (const part of text.split(",")) {
    const member = part.replace(/^[ \t]+|[ \t]+$/g, "")
    if (member === "") continue
    const at = member.indexOf("=")
    const key = member.slice(0, at)
    const value = member.slice(at + 1)
    if (at < 0 || !stateKeyForm.test(key) || !stateValueForm.test(value) || seen.has(key)) return []
    seen.add(key)
    members.push({ key, value })
    if (members.length > MAX_STATE_MEMBERS) return []
  }
  return members
}

/** Prints a `tracestate` of at most 512 characters: long members go first, then the last ones. */
export const printState = (members: ReadonlyArray<StateMember>): string => {
  let parts = members.map(({ key, value }) => `${key}=${value}`)
  const length = (): number => parts.reduce((sum, part) => sum + part.length + 1, -1)
  while (length() > MAX_STATE_LENGTH) {
    const long = parts.findLastIndex((part) => part.length > LONG_MEMBER)
    parts = parts.toSpliced(long < 0 ? parts.length - 1 : long, 1)
  }
  return parts.join(",")
}

const textOf = (value: Json | undefined): string => (typeof value === "string" ? value : "")

/** The context in the `_meta` of a request or answer. */
export const ofMeta = (meta: Json | undefined): Remote | undefined => {
  if (!isJsonObject(meta)) return undefined
  const parent = parseParent(textOf(own(meta, "traceparent")))
  if (parent === undefined) return undefined
  return {
    parent,
    state: parseState(textOf(own(meta, "tracestate"))),
    baggage: Baggage.parse(textOf(own(meta, "baggage")))
  }
}

/** The context in the environment of a process: `TRACEPARENT`, `TRACESTATE`, `BAGGAGE`. */
export const ofEnvironment = (get: (name: string) => string | undefined): Remote | undefined =>
  ofMeta({ traceparent: get("TRACEPARENT") ?? "", tracestate: get("TRACESTATE") ?? "", baggage: get("BAGGAGE") ?? "" })

/** A remote span as the parent of one of ours. */
export const toSpan = (remote: Remote): Tracer.ExternalSpan =>
  Tracer.externalSpan({
    ...remote.parent,
    context: Context.make(Companions, { state: remote.state, baggage: remote.baggage })
  })

const nothing: Pick<Remote, "state" | "baggage"> = { state: [], baggage: [] }

/** What travels with a trace: found at the remote span that it came from. */
const companionsOf = (span: Tracer.AnySpan): Pick<Remote, "state" | "baggage"> => {
  let current: Tracer.AnySpan = span
  while (current._tag === "Span") {
    const parent: Option.Option<Tracer.AnySpan> = current.parent
    if (Option.isNone(parent)) return nothing
    current = parent.value
  }
  return Option.getOrElse(Context.getOption(current.context, Companions), () => nothing)
}

/** The context of a span; `undefined` when its ids cannot travel (a tracer may use ids of another form). */
export const ofSpan = (span: Tracer.AnySpan): Remote | undefined =>
  traceIdForm.test(span.traceId) && spanIdForm.test(span.spanId)
    ? { parent: { traceId: span.traceId, spanId: span.spanId, sampled: span.sampled }, ...companionsOf(span) }
    : undefined

/** The tracestate of a span as text; empty when it has none. */
export const stateOf = (span: Tracer.AnySpan): string => printState(companionsOf(span).state)

/** The members of `_meta` that carry the context of a span; `undefined` when there is nothing to carry. */
export const toMeta = (span: Tracer.AnySpan): JsonObject | undefined => {
  const context = ofSpan(span)
  if (context === undefined) return undefined
  const state = printState(context.state)
  const baggage = Baggage.print(context.baggage)
  return {
    traceparent: printParent(context.parent),
    ...(state === "" ? {} : { tracestate: state }),
    ...(baggage === "" ? {} : { baggage })
  }
}

/** The params of a request with the context in their `_meta`; other members of it stay. */
export const inject = (params: JsonObject | undefined, context: JsonObject | undefined): JsonObject | undefined => {
  if (context === undefined) return params
  const meta = params === undefined ? undefined : own(params, "_meta")
  return { ...params, _meta: { ...(isJsonObject(meta) ? meta : {}), ...context } }
}

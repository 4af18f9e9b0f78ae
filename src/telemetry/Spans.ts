/**
 * Spans and measurements of a server's life: admission, start, spawn, handshake, requests, close.
 *
 * Every helper is one comparison when no tracer is installed, and then runs the effect as it is. Nesting comes
 * from Effect's own context: what runs inside a span is its child. A request is observed at the connection, the
 * one place that all of them pass: there the call's span learns the request id and the outcome, the histogram
 * gets its measurement, and a server that may have it gets the trace context (spec section 13).
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import { isFailure } from "../base/Failure.ts"
import { type JsonObject, own } from "../base/Json.ts"
import type { CleanupReport } from "../platform/CleanupReport.ts"
import { hasFailed } from "../protocol/ResultShape.ts"
import {
  annotateFailure,
  Attribute,
  type Attributes,
  errorTypeOf,
  type Listener,
  isSilent,
  type SpanStart,
  TOOL_ERROR,
  withListener
} from "./CallSpan.ts"
import { type Meter, meterOf, operationDuration, seconds, sessionDuration } from "./Metrics.ts"
import { toMeta } from "./TraceContext.ts"

/** How a server is reached (`network.transport`): pipes for stdio, TCP for everything behind a URL. */
export type NetworkTransport = "pipe" | "tcp"

/** What is the same for all requests of one connection; made once. */
export interface ConnectionFacts {
  /** Exact server name. */
  readonly server: string
  /** UUID of the generation. */
  readonly generation: string
  readonly transport: NetworkTransport
  /** `http` or `websocket`; absent for stdio. */
  readonly protocolName?: string
  /** The negotiated revision; `undefined` until the handshake is done. */
  readonly protocolVersion: () => string | undefined
  /** The `Mcp-Session-Id` of HTTP; absent elsewhere. */
  readonly session?: () => string | undefined
  /** Whether this server may see the trace context. */
  readonly propagate: boolean
  /** Hides secrets in names of tools and prompts and in addresses; nothing is hidden when absent. */
  readonly redact?: (text: string) => string
}

/** What whoever sends a request does for those who listen. */
export interface Sending {
  /** Tells the id the request got. */
  readonly sent: (id: string | number) => void
  /** Trace context for the request's `_meta` (`TraceContext.inject`); `undefined` when the server may not have it. */
  readonly meta: JsonObject | undefined
}

/** One live session, remembered from its start for its end. */
export interface Session {
  readonly tracer: Tracer.Tracer
  readonly meter: Meter | undefined
  /** The span that opened it; the one that closes it is linked with this. */
  readonly opener: Tracer.AnySpan | undefined
  readonly begun: number
}

/** Runs one lifecycle step in a span of its own, kind `internal`; the body may set attributes. */
export const step = <A, E, R>(
  name: string,
  attributes: Attributes,
  body: (listener: Listener | undefined) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => withListener({ name, kind: "internal", attributes }, errorTypeOf, body)

/** The gates of one server; a refusal names the gate. */
export const admission = <A, E, R>(server: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  step("sigil.admission", { [Attribute.server]: server }, (listener) =>
    listener === undefined
      ? effect
      : Effect.tapError(effect, (error) =>
          Effect.sync(() => {
            const gate = isFailure(error) ? error.where?.operation : undefined
            if (gate !== undefined) listener.span.attribute(Attribute.gate, gate)
          })
        )
  )

/**
 * One whole start, the wait for its turn included: parent of admission, spawn, handshake and lists. `kind` says what
 * it is for: asked, restart, refresh, restore.
 */
export const start = <A, E, R>(server: string, kind: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  step("sigil.start", { [Attribute.server]: server, [Attribute.startKind]: kind }, () => effect)

/** Opening the wire: for stdio the spawn of the process. Command and arguments are never recorded. */
export const spawn = <A extends { readonly pid?: number }, E, R>(
  facts: ConnectionFacts,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  step("sigil.spawn", { ...base(facts), [Attribute.generation]: facts.generation }, (listener) =>
    listener === undefined
      ? effect
      : Effect.tap(effect, (wire) => {
          if (wire.pid !== undefined) listener.span.attribute(Attribute.pid, wire.pid)
          return Effect.void
        })
  )

/**
 * A client span around MCP work outside the pipeline: `initialize`, `tools/list` with all its pages. What is
 * sent inside through `exchange` adds its outcome to it.
 */
export const operation = <A, E, R>(
  facts: ConnectionFacts,
  method: string,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  withListener(
    {
      name: method,
      attributes: { ...base(facts), [Attribute.method]: method, [Attribute.generation]: facts.generation }
    },
    errorTypeOf,
    (listener) =>
      listener === undefined
        ? effect
        : Effect.tap(effect, () => {
            // The handshake learns the version only now.
            const version = facts.protocolVersion()
            if (version !== undefined) listener.span.attribute(Attribute.protocolVersion, version)
            return Effect.void
          })
  )

/** Remembers that a session begins, right after the handshake; `undefined` when nobody listens. */
export const openSession: Effect.Effect<Session | undefined> = Effect.tracerWith((tracer) =>
  isSilent(tracer)
    ? Effect.succeed(undefined)
    : Effect.contextWith((context: Context.Context<never>) => ({ tracer, opener: spanIn(context) })).pipe(
        Effect.zipWith(Effect.clock, ({ opener }, clock) => ({
          tracer,
          meter: meterOf(tracer),
          opener,
          begun: clock.unsafeCurrentTimeMillis()
        }))
      )
)

/**
 * Closing a connection.
 *
 * After a session it is a trace of its own, linked with the span that opened the session, which may be hours
 * old; and the session's length is measured. The tracer is the one of the start: a finalizer may run on a fiber
 * that knows another one. Without a session the start failed, and the close belongs to it.
 *
 * `endedBy` is the reason that ended the connection by itself (R section 4.3), `undefined` when the host did.
 */
export const close = <E, R>(
  facts: ConnectionFacts,
  session: () => Session | undefined,
  endedBy: () => string | undefined,
  effect: Effect.Effect<CleanupReport, E, R>
): Effect.Effect<CleanupReport, E, R> =>
  Effect.suspend(() => {
    const open = session()
    const attributes = { ...base(facts), [Attribute.generation]: facts.generation }
    const reported = (listener: Listener | undefined): Effect.Effect<CleanupReport, E, R> =>
      listener === undefined
        ? effect
        : Effect.tap(effect, (report) => Effect.sync(() => describeCleanup(listener.span, report)))
    if (open === undefined) return step("sigil.close", attributes, reported)
    const begin: SpanStart = {
      name: "sigil.close",
      kind: "internal",
      attributes,
      root: true,
      ...(open.opener === undefined ? {} : { link: open.opener })
    }
    return Effect.clockWith((clock) => {
      const ended = endedBy()
      open.meter?.record(sessionDuration, seconds(clock.unsafeCurrentTimeMillis() - open.begun), {
        ...base(facts),
        ...(ended === undefined ? {} : { [Attribute.errorType]: ended })
      })
      return withListener(begin, errorTypeOf, reported)
    }).pipe(Effect.withTracer(open.tracer))
  })

/** One request as the connection sends it. `send` gets `undefined` when nobody listens. */
export const exchange = <E, R>(
  facts: ConnectionFacts,
  method: string,
  params: JsonObject | undefined,
  send: (sending: Sending | undefined) => Effect.Effect<JsonObject, E, R>
): Effect.Effect<JsonObject, E, R> =>
  Effect.tracerWith((tracer) =>
    isSilent(tracer)
      ? send(undefined)
      : Effect.contextWithEffect((context: Context.Context<never>) =>
          Effect.clockWith((clock) => {
            const around = spanIn(context)
            const span =
              around?._tag === "Span" && around.attributes.get(Attribute.method) === method ? around : undefined
            const attributes = { ...base(facts), ...named(facts, method, params) }
            if (span !== undefined) describe(span, facts, attributes, params)
            const begun = clock.unsafeCurrentTimeMillis()
            return send({
              sent: (id) => span?.attribute(Attribute.requestId, String(id)),
              meta: facts.propagate && around !== undefined ? toMeta(around) : undefined
            }).pipe(
              Effect.onExit((exit) =>
                Effect.sync(() => {
                  const failure = failureOf(method, exit)
                  if (span !== undefined) conclude(span, exit, failure)
                  meterOf(tracer)?.record(operationDuration, seconds(clock.unsafeCurrentTimeMillis() - begun), {
                    ...attributes,
                    ...failure
                  })
                })
              )
            )
          })
        )
  )

/**
 * Services without the span that was open when they were captured. Who keeps a context for later work must leave
 * that span out, or everything the work does becomes its child.
 */
export const withoutSpan = <R>(context: Context.Context<R>): Context.Context<R> => {
  const services = new Map(context.unsafeMap)
  services.delete(Tracer.ParentSpan.key)
  return Context.unsafeMake(services)
}

const describeCleanup = (span: Tracer.Span, report: CleanupReport): void => {
  span.attribute(Attribute.cleanupComplete, report.complete)
  if (report.complete) return
  span.attribute(Attribute.errorType, "SIGIL_CLEANUP_INCOMPLETE")
  span.attribute(Attribute.cleanupReason, report.reason ?? "unconfirmed")
}

/** A resource's address without user, password, query and fragment: those hold data, not the resource's place. */
export const safeUri = (uri: string): string => {
  if (/^data:/i.test(uri)) return "data:"
  const plain = uri.replace(/[?#].*$/s, "")
  return plain.replace(/^([A-Za-z][A-Za-z0-9+.-]*:\/\/)[^/]*@/, "$1")
}

const base = (facts: ConnectionFacts): Attributes => {
  const version = facts.protocolVersion()
  return {
    [Attribute.server]: facts.server,
    [Attribute.transport]: facts.transport,
    ...(facts.protocolName === undefined ? {} : { [Attribute.protocolName]: facts.protocolName }),
    ...(version === undefined ? {} : { [Attribute.protocolVersion]: version })
  }
}

/** Method and target of a request; of the params only the name of a tool or prompt is ever read. */
const named = (facts: ConnectionFacts, method: string, params: JsonObject | undefined): Attributes => {
  const given = params === undefined ? undefined : own(params, "name")
  const name = typeof given === "string" ? (facts.redact?.(given) ?? given) : undefined
  if (method === "tools/call") {
    const tool = name === undefined ? {} : { [Attribute.tool]: name }
    return { [Attribute.method]: method, [Attribute.operation]: "execute_tool", ...tool }
  }
  return method === "prompts/get" && name !== undefined
    ? { [Attribute.method]: method, [Attribute.prompt]: name }
    : { [Attribute.method]: method }
}

/** A URI has too many values for a histogram; on a span it helps. */
const describe = (
  span: Tracer.Span,
  facts: ConnectionFacts,
  attributes: Attributes,
  params: JsonObject | undefined
): void => {
  for (const [key, value] of Object.entries(attributes)) span.attribute(key, value)
  span.attribute(Attribute.generation, facts.generation)
  const session = facts.session?.()
  if (session !== undefined) span.attribute(Attribute.session, session)
  const uri = params === undefined ? undefined : own(params, "uri")
  if (typeof uri === "string") span.attribute(Attribute.resource, safeUri(facts.redact?.(uri) ?? uri))
}

/** Error attributes of an outcome; none for a success. */
const failureOf = <E>(method: string, exit: Exit.Exit<JsonObject, E>): Attributes => {
  if (Exit.isSuccess(exit)) {
    const failed = method === "tools/call" && hasFailed(exit.value)
    return failed ? { [Attribute.errorType]: TOOL_ERROR } : {}
  }
  const failure = Cause.failureOption(exit.cause)
  if (Option.isNone(failure)) {
    return { [Attribute.errorType]: Cause.isInterrupted(exit.cause) ? "SIGIL_INTERRUPTED" : "SIGIL_INTERNAL" }
  }
  const type = errorTypeOf(failure.value)
  return /^-?\d+$/.test(type)
    ? { [Attribute.errorType]: type, [Attribute.statusCode]: type }
    : { [Attribute.errorType]: type }
}

const conclude = <E>(span: Tracer.Span, exit: Exit.Exit<JsonObject, E>, failure: Attributes): void => {
  for (const [key, value] of Object.entries(failure)) span.attribute(key, value)
  if (Exit.isFailure(exit)) annotateFailure(span, exit.cause, errorTypeOf)
}

const spanIn = (context: Context.Context<never>): Tracer.AnySpan | undefined =>
  Option.getOrUndefined(Context.getOption(context, Tracer.ParentSpan))

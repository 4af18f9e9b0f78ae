/**
 * Sends ended spans and histograms to a collector, in the background, within bounds.
 *
 * Loaded only when the environment asks for it. Ended spans wait in a queue of `MAX_QUEUE`; when it is full the
 * oldest one is dropped and counted. One fiber sends the spans, one the histograms, each one request at a time. A
 * refusal that may pass (429, 502, 503, 504, no connection) is tried again; everything else costs its batch. When
 * the scope closes, what is left is sent within `flushMs`, and a collector that is down is given up at once: the
 * program never fails and never waits longer because of it. Trouble is one warning, without header or value.
 *
 * An exporter of our own: `@effect/opentelemetry`'s needs Effect's HTTP client and its Node layer in the bundle,
 * keeps credentials as plain headers, bounds neither queue nor flush attempts and has no count of what was lost.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type * as Tracer from "effect/Tracer"
import { clip, escapeLine } from "../base/Display.ts"
import { SECOND_MS } from "../base/Units.ts"
import * as Metrics from "./Metrics.ts"
import { type Answer, make as makeSender, type Sender } from "./OtlpHttp.ts"
import { encodeHistograms, encodeSpans, type Redact } from "./OtlpJson.ts"
import { credentialsOf, type Get, read, type Settings, shown, type Target } from "./OtlpSettings.ts"
import { make as makeTracer, MAX_TEXT, type RecordedSpan } from "./RecordingTracer.ts"

/** Spans that wait; the oldest goes when one more comes. */
export const MAX_QUEUE = 2_048
/** Spans of one request. */
export const MAX_BATCH = 512
/** Time for everything that is left when the scope closes, ms. */
export const FLUSH_MS = 2 * SECOND_MS
/** Attempts for one request, the first included. */
const MAX_ATTEMPTS = 5
/** Wait before the second attempt; doubled each time. */
const FIRST_WAIT_MS = SECOND_MS
/** Longest wait, whatever the collector asks for. */
const MAX_WAIT_MS = 60 * SECOND_MS

/** What became of everything so far. */
export interface Stats {
  /** Spans the collector took. */
  readonly sent: number
  /** Spans that were lost: queue full, refused, or not delivered in time. */
  readonly dropped: number
  /** Metric requests the collector took. */
  readonly metricExports: number
  readonly queued: number
}

/** A running exporter. */
export interface Exporter {
  /** Records spans and, with its meter, measurements. */
  readonly tracer: Tracer.Tracer
  readonly stats: () => Stats
}

/** What an exporter takes from its surroundings. */
export interface Parts {
  readonly uuid: () => string
  readonly redact: Redact
  /** Parent of spans without one: the process that started this one. */
  readonly remote?: Tracer.ExternalSpan
  /** See `FLUSH_MS`. */
  readonly flushMs?: number
}

/** Wait before the next attempt; `undefined` when the request must not be sent again. */
export const waitBefore = (answer: Answer, attempt: number): number | undefined => {
  if (answer._tag === "Accepted" || attempt + 1 >= MAX_ATTEMPTS) return undefined
  const backoff = Math.min(FIRST_WAIT_MS * 2 ** attempt, MAX_WAIT_MS)
  if (answer._tag === "Unreachable") return backoff
  return answer.retryable ? Math.min(answer.afterMs ?? backoff, MAX_WAIT_MS) : undefined
}

const describe = (answer: Exclude<Answer, { readonly _tag: "Accepted" }>): string =>
  answer._tag === "Refused" ? `it answered with status ${answer.status}` : `it cannot be reached (${answer.code})`

/** Starts an exporter that lives as long as the scope. */
export const start = (settings: Settings, parts: Parts): Effect.Effect<Exporter, never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Effect.clock
    const flushMs = parts.flushMs ?? FLUSH_MS
    const resource = { ...settings.resource, "service.instance.id": parts.uuid() }
    const store = Metrics.makeStore()
    const queue: Array<RecordedSpan> = []
    const closing = yield* Deferred.make<void>()
    const full = yield* Effect.makeLatch(false)
    const some = yield* Effect.makeLatch(false)
    let closeBy: number | undefined
    let sent = 0
    let dropped = 0
    let inFlight = 0
    let metricExports = 0
    const complained = new Set<string>()

    const now = (): number => clock.unsafeCurrentTimeMillis()

    /** The first trouble of each signal is worth a line, the rest only to somebody who looks for it. */
    const complain = (signal: string, text: string): Effect.Effect<void> => {
      const first = !complained.has(signal)
      complained.add(signal)
      return first ? Effect.logWarning(text) : Effect.logDebug(text)
    }

    const isClosing = (): boolean => closeBy !== undefined

    /** Whether there is time left for a wait. While closing nothing is worth waiting for but a collector's word. */
    const hasTime = (answer: Answer, wait: number): boolean =>
      closeBy === undefined || (answer._tag === "Refused" && now() + wait < closeBy)

    const rest = (ms: number): Effect.Effect<void> =>
      isClosing() ? Effect.sleep(ms) : Effect.raceFirst(Effect.sleep(ms), Deferred.await(closing))

    /** Sends one body until it is taken, refused for good, or there is no time left. */
    const deliver = (
      sender: Sender,
      target: Target,
      signal: string,
      body: string,
      rejectedKey: string
    ): Effect.Effect<Answer> =>
      Effect.gen(function* () {
        for (let attempt = 0; ; attempt += 1) {
          const answer = yield* sender.post(body, rejectedKey)
          if (answer._tag === "Accepted") {
            if (answer.rejected > 0 || answer.message !== undefined) {
              const said =
                answer.message === undefined ? "" : `: ${clip(escapeLine(parts.redact(answer.message)), 200)}`
              yield* complain(
                `${signal} partial`,
                `The collector at ${shown(target.url)} refused ${answer.rejected} of the ${signal}${said}.`
              )
            }
            return answer
          }
          const wait = waitBefore(answer, attempt)
          if (wait === undefined || !hasTime(answer, wait)) {
            yield* complain(signal, `The collector at ${shown(target.url)} got no ${signal}: ${describe(answer)}.`)
            return answer
          }
          yield* Effect.logDebug(
            `The collector at ${shown(target.url)} is tried again in ${wait} ms: ${describe(answer)}.`
          )
          yield* rest(wait)
        }
      })

    const sendSpans = (sender: Sender, target: Target): Effect.Effect<void> =>
      Effect.gen(function* () {
        while (queue.length > 0) {
          const batch = queue.splice(0, MAX_BATCH)
          inFlight = batch.length
          const body = encodeSpans(batch, resource, parts.redact)
          const answer = yield* deliver(sender, target, "traces", body, "rejectedSpans")
          inFlight = 0
          const lost = answer._tag === "Accepted" ? Math.min(answer.rejected, batch.length) : batch.length
          sent += batch.length - lost
          dropped += lost
        }
      })

    const spanLoop = (sender: Sender, target: Target): Effect.Effect<void> =>
      Effect.gen(function* () {
        while (!isClosing()) {
          // No timer while there is nothing to send.
          yield* Effect.raceFirst(some.await, Deferred.await(closing))
          yield* Effect.raceFirst(
            Effect.raceFirst(full.await, Deferred.await(closing)),
            Effect.sleep(settings.scheduleDelayMs)
          )
          yield* some.close
          yield* full.close
          yield* guarded(sendSpans(sender, target))
        }
        yield* guarded(sendSpans(sender, target))
      })

    let windowStart = clock.unsafeCurrentTimeNanos()
    const sendMetrics = (sender: Sender, target: Target): Effect.Effect<void> =>
      Effect.gen(function* () {
        if (store.isEmpty()) return
        const end = clock.unsafeCurrentTimeNanos()
        const window = { start: windowStart, end, temporality: settings.temporality }
        const body = encodeHistograms(store.collect(), window, resource, parts.redact)
        if (settings.temporality === "delta") {
          store.reset()
          windowStart = end
        }
        const answer = yield* deliver(sender, target, "metrics", body, "rejectedDataPoints")
        if (answer._tag === "Accepted") metricExports += 1
      })

    const metricLoop = (sender: Sender, target: Target): Effect.Effect<void> =>
      Effect.gen(function* () {
        while (!isClosing()) {
          yield* Effect.raceFirst(Effect.sleep(settings.metricIntervalMs), Deferred.await(closing))
          if (!isClosing()) yield* guarded(sendMetrics(sender, target))
        }
        yield* guarded(sendMetrics(sender, target))
      })

    // The supervision boundary of the exporter: a fault of its own must not end it, nor anything else.
    const guarded = (work: Effect.Effect<void>): Effect.Effect<void> =>
      Effect.catchAllDefect(work, () =>
        Effect.suspend(() => {
          dropped += inFlight
          inFlight = 0
          return complain("fault", "A fault inside the telemetry exporter; what it was sending is lost.")
        })
      )

    const fibers: Array<Fiber.RuntimeFiber<void>> = []
    const senders: Array<Sender> = []
    const begin = (target: Target | undefined, loop: (sender: Sender, target: Target) => Effect.Effect<void>) =>
      Effect.gen(function* () {
        if (target === undefined) return
        const sender = makeSender(target)
        senders.push(sender)
        // Its own spans would feed it for ever.
        fibers.push(
          yield* Effect.forkDaemon(Effect.interruptible(Effect.withTracerEnabled(loop(sender, target), false)))
        )
      })

    yield* Effect.acquireRelease(
      Effect.zipRight(begin(settings.traces, spanLoop), begin(settings.metrics, metricLoop)),
      () =>
        Effect.gen(function* () {
          closeBy = now() + flushMs
          yield* Deferred.succeed(closing, undefined)
          yield* Fiber.joinAll(fibers).pipe(Effect.interruptible, Effect.timeoutOption(flushMs))
          yield* Fiber.interruptAll(fibers)
          for (const sender of senders) sender.destroy()
          dropped += inFlight + queue.length
          inFlight = 0
          queue.length = 0
          if (dropped > 0) yield* complain("traces", `${dropped} spans were not delivered to the collector.`)
        })
    )
    const recording = makeTracer({
      uuid: parts.uuid,
      shorten: (text) => clip(parts.redact(text), MAX_TEXT),
      ...(parts.remote === undefined ? {} : { remote: parts.remote }),
      onEnd: (span) => {
        if (settings.traces === undefined || isClosing()) return
        if (queue.length >= MAX_QUEUE) {
          queue.shift()
          dropped += 1
        }
        queue.push(span)
        some.unsafeOpen()
        if (queue.length >= MAX_BATCH) full.unsafeOpen()
      }
    })
    return {
      tracer: settings.metrics === undefined ? recording : Metrics.withMeter(recording, store),
      stats: () => ({ sent, dropped, metricExports, queued: queue.length })
    }
  })

/**
 * Starts what the environment asks for; `undefined` when that comes to nothing. `hide` gets the credentials of the
 * headers before anything is sent, so that nothing shows them.
 */
export const open = (
  get: Get,
  parts: Parts & { readonly hide: (values: ReadonlyArray<string>) => Effect.Effect<void> }
): Effect.Effect<Exporter | undefined, never, Scope.Scope> =>
  Effect.gen(function* () {
    const settings = read(get)
    for (const problem of settings.problems) yield* Effect.logWarning(problem)
    if (settings.traces === undefined && settings.metrics === undefined) return undefined
    yield* parts.hide(credentialsOf(settings))
    return yield* start(settings, parts)
  })

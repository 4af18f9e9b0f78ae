/**
 * What every wire without a process shares: one receiver, one end, and the work under way, which ends with the wire.
 *
 * Invariants: the end is told once; nothing is delivered after it; all work is interrupted before `close` completes,
 * which takes two seconds at most.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Runtime from "effect/Runtime"
import { type CleanupReport, nothingToClean } from "../platform/CleanupReport.ts"
import type { Id } from "../protocol/JsonRpc.ts"
import type { HttpResponse } from "../net/HttpResponse.ts"
import type { DataKind } from "../net/Presenter.ts"
import type { NetError } from "../net/NetError.ts"
import { errorIn, MAX_ERROR_BYTES, retryAfter, statusFault } from "./StatusFault.ts"
import type { DeliveryFault, Outgoing, Receiver, Wire, WireEnd } from "./Transport.ts"

/** Longest time for ending what is under way, ms. */
const CLOSE_MS = 2_000
/** How long of it what was said last may take to arrive, ms. */
const LAST_WORDS_MS = 1_000

/** A wire in the making. */
export interface RemoteWire {
  readonly deliver: (text: string, bytes: number, about?: Id) => boolean
  readonly failed: (id: Id, fault: DeliveryFault) => void
  /** Whether a request still waits for its answer. */
  readonly waits: (id: Id) => boolean
  /** Announcements may have been lost. */
  readonly missed: () => void
  readonly finish: (end: WireEnd) => void
  /**
   * The connection cannot be had: the requests that wait for it, or else the first one that comes, are told why; then
   * the wire ends.
   */
  readonly refuse: (fault: DeliveryFault, waiting: ReadonlySet<Id>) => void
  readonly isEnded: () => boolean
  /** Runs work of the wire; by its id when it is a request's, which `abandon` interrupts. */
  readonly run: (work: Effect.Effect<void>, id?: Id) => void
  /** Runs what goes on for the life of the wire; nobody waits for it. */
  readonly background: (work: Effect.Effect<void>) => void
  /** Ends the work of a request, without a word to anybody. */
  readonly drop: (id: Id) => void
  /** The wire itself. `parting` is said before it closes. */
  readonly wire: (parts: {
    readonly send: (text: string, about?: Outgoing) => boolean
    readonly agreed?: Wire["agreed"]
    readonly session?: Wire["session"]
    readonly backlogBytes?: () => number
    readonly parting?: Effect.Effect<void>
    /** Whether each message has a request of its own, whose end tells the server that nobody waits for it. */
    readonly perMessage: boolean
  }) => Wire
}

const noView = { text: "", totalBytes: 0 }

/** A wire with nothing under way. */
export const make: Effect.Effect<RemoteWire> = Effect.gen(function* () {
  const runtime = yield* Effect.runtime<never>()
  const clock = yield* Effect.clock
  const fork = Runtime.runFork(runtime)
  let receiver: Receiver | undefined
  let early: Array<() => void> = []
  let ended: WireEnd | undefined
  /** Why there is no connection, while nobody has been told. */
  let refusal: DeliveryFault | undefined
  const byId = new Map<Id, Fiber.RuntimeFiber<void>>()
  const all = new Set<Fiber.RuntimeFiber<void>>()
  /** Work that belongs to no request: notifications and answers on their way. */
  const lastWords = new Set<Fiber.RuntimeFiber<void>>()
  let unanswered = 0
  let waiters: Array<() => void> = []
  const wake = (): void => {
    if (unanswered > 0 && ended === undefined) return
    const waiting = waiters
    waiters = []
    for (const resume of waiting) resume()
  }

  const finish = (end: WireEnd): void => {
    if (ended !== undefined) return
    ended = end
    wake()
    receiver?.end(end)
  }
  const failed = (id: Id, fault: DeliveryFault): void => {
    if (receiver !== undefined) receiver.failed?.(id, fault)
    else early.push(() => receiver?.failed?.(id, fault))
  }
  const tell = (fault: DeliveryFault, waiting: Iterable<Id>): void => {
    const { reason, status, text } = fault
    for (const id of waiting) failed(id, fault)
    finish({ reason, text, ...(status === undefined ? {} : { details: { http_status: status } }) })
  }
  const interrupt = (fibers: Iterable<Fiber.RuntimeFiber<void>>): Effect.Effect<void> =>
    Fiber.interruptAll([...fibers]).pipe(Effect.interruptible, Effect.timeoutOption(CLOSE_MS), Effect.asVoid)
  // Last words are still on their way, such as that nobody waits for a call any more: they have a moment to arrive.
  const stop = Effect.suspend(() => interrupt([...all].filter((fiber) => !lastWords.has(fiber)))).pipe(
    Effect.zipRight(Effect.suspend(() => Effect.timeoutOption(Fiber.awaitAll([...lastWords]), LAST_WORDS_MS))),
    Effect.zipRight(Effect.suspend(() => interrupt(all)))
  )
  const drop = (id: Id): void => {
    const fiber = byId.get(id)
    if (fiber !== undefined) fork(Fiber.interruptFork(fiber))
  }
  let closing: Effect.Effect<CleanupReport> | undefined

  return {
    deliver: (text, bytes, about) => {
      if (ended !== undefined) return false
      if (receiver !== undefined) return receiver.message(text, bytes, about)
      early.push(() => receiver?.message(text, bytes, about))
      return true
    },
    failed,
    missed: () => {
      if (ended === undefined) receiver?.missed?.()
    },
    waits: (id) => ended === undefined && (receiver?.waits?.(id) ?? true),
    finish,
    refuse: (fault, waiting) => {
      if (ended !== undefined) return
      if (waiting.size > 0) tell(fault, waiting)
      else refusal ??= fault
    },
    isEnded: () => ended !== undefined,
    background: (work) => {
      const fiber = fork(Effect.interruptible(work))
      all.add(fiber)
      fiber.addObserver(() => all.delete(fiber))
    },
    run: (work, id) => {
      if (id === undefined) unanswered += 1
      const fiber = fork(Effect.interruptible(work))
      all.add(fiber)
      if (id !== undefined) byId.set(id, fiber)
      else lastWords.add(fiber)
      fiber.addObserver(() => {
        all.delete(fiber)
        if (id === undefined) {
          lastWords.delete(fiber)
          unanswered -= 1
          wake()
        } else if (byId.get(id) === fiber) byId.delete(id)
      })
    },
    drop,
    wire: ({ agreed, backlogBytes, parting, perMessage, send, session }) => ({
      listen: (given) => {
        receiver = given
        const kept = early
        early = []
        for (const deliver of kept) deliver()
        if (ended !== undefined) given.end(ended)
      },
      send: (text, about) => {
        if (ended !== undefined) return false
        if (refusal === undefined) return send(text, about)
        const fault = refusal
        // Not at once: whoever sends expects no answer before it has sent.
        queueMicrotask(() => tell(fault, about?.method === undefined || about.id === undefined ? [] : [about.id]))
        return true
      },
      abandon: drop,
      cancelsByClosing: perMessage,
      ...(agreed === undefined ? {} : { agreed }),
      ...(session === undefined ? {} : { session }),
      backlogBytes: backlogBytes ?? (() => 0),
      drained: Effect.async((resume) => {
        if (unanswered === 0 || ended !== undefined) return resume(Effect.void)
        waiters.push(() => resume(Effect.void))
      }),
      close: Effect.suspend(() => {
        if (closing !== undefined) return closing
        const begun = clock.unsafeCurrentTimeMillis()
        const done = fork(
          stop.pipe(
            Effect.zipRight(
              parting === undefined ? Effect.void : Effect.asVoid(Effect.timeoutOption(parting, CLOSE_MS / 2))
            )
          )
        )
        closing = Effect.map(Fiber.await(done), () => ({
          ...nothingToClean,
          durationMs: clock.unsafeCurrentTimeMillis() - begun
        }))
        // Whoever hears of the end may close in turn: there is one closing only, and one parting.
        finish({ reason: "closed", text: "sigil closed the connection." })
        return closing
      }),
      stderr: () => noView,
      onStderr: () => () => undefined,
      openWindow: () => undefined
    })
  }
})

/** What leaves with a message, as it is disclosed (R section 8.10). */
export const dataKindOf = (about: Outgoing | undefined): DataKind => {
  switch (about?.method) {
    case undefined:
      return about?.answers === "roots/list"
        ? "workspace_root_uri"
        : about?.answers === "ping"
          ? "connection_metadata"
          : "interactive_response"
    case "tools/call":
    case "resources/read":
    case "resources/subscribe":
    case "prompts/get":
    case "completion/complete":
    case "tasks/update":
      return "request"
    default:
      return "connection_metadata"
  }
}

/** The fault of a request that an HTTP status answers, with the JSON-RPC error that its body may hold. */
export const refusalOf = (
  response: HttpResponse,
  facts: {
    /** Whether a credential went with the request. */
    readonly credential: boolean
    /** The time of day, ms. */
    readonly now: () => number
  }
): Effect.Effect<DeliveryFault> =>
  response.text(MAX_ERROR_BYTES).pipe(
    Effect.catchAll(() => Effect.succeed("")),
    Effect.map((body) =>
      statusFault(response.status, {
        credential: facts.credential,
        error: errorIn(body),
        retryAfterMs: retryAfter(response.header("retry-after"), facts.now())
      })
    )
  )

/** The fault of a request whose message or answer was lost on the way. */
export const faultOf = ({ code, delivered, details, fix, reason, status, text }: NetError): DeliveryFault => ({
  code,
  reason,
  text,
  delivered,
  ...(fix === undefined ? {} : { fix }),
  ...(status === undefined ? {} : { status }),
  ...(details === undefined ? {} : { details })
})

/**
 * Deadlines at call boundaries, cheap enough for every call.
 *
 * `Effect.timeout` on each call costs more than the rest of the call together (design.md, "shapes"). Here one
 * sweeper fiber per generation watches all open deadlines on the Effect `Clock` (so TestClock drives it), and a
 * call is one `Effect.async`. The sweeper sleeps until the earliest deadline; entries that are done by then cost
 * nothing, so in steady traffic it wakes once per deadline length, not once per call.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** One watched deadline. */
export interface Entry {
  /** When it expires, milliseconds of the Clock. */
  expiresAt: number
  readonly fire: () => void
}

/** All open deadlines of one owner. */
export interface Deadlines {
  /** Watches a deadline `ms` from now. */
  readonly add: (ms: number, fire: () => void) => Entry
  /** Forgets a deadline; harmless when it already fired. */
  readonly remove: (entry: Entry) => void
  /** Moves a deadline, in either direction; harmless when it already fired. */
  readonly move: (entry: Entry, expiresAt: number) => void
  /** Milliseconds of the Clock, now. */
  readonly now: () => number
}

/** Deadlines whose sweeper lives in the scope. */
export const make: Effect.Effect<Deadlines, never, Scope.Scope> = Effect.gen(function* () {
  const clock = yield* Effect.clock
  const entries = new Set<Entry>()
  /** When the sweeper will look again; infinite while it waits for work. */
  let wakesAt = Number.POSITIVE_INFINITY
  let wake: (() => void) | undefined

  const interrupted = Effect.async<void>((resume) => {
    wake = () => resume(Effect.void)
    return Effect.sync(() => {
      wake = undefined
    })
  })
  const sweep = Effect.sync(() => {
    const now = clock.unsafeCurrentTimeMillis()
    let next = Number.POSITIVE_INFINITY
    for (const entry of entries) {
      if (entry.expiresAt <= now) {
        entries.delete(entry)
        entry.fire()
      } else if (entry.expiresAt < next) next = entry.expiresAt
    }
    wakesAt = next
    return next - now
  })
  const rest = (ms: number): Effect.Effect<void> =>
    ms === Number.POSITIVE_INFINITY
      ? interrupted
      : Effect.raceFirst(clock.sleep(Duration.millis(Math.max(ms, 1))), interrupted)

  yield* sweep.pipe(Effect.flatMap(rest), Effect.forever, Effect.forkScoped)

  return {
    now: () => clock.unsafeCurrentTimeMillis(),
    add: (ms, fire) => {
      const entry: Entry = { expiresAt: clock.unsafeCurrentTimeMillis() + ms, fire }
      entries.add(entry)
      if (entry.expiresAt < wakesAt) {
        // Until the sweeper runs again no further call needs to wake it for a later deadline.
        wakesAt = entry.expiresAt
        wake?.()
      }
      return entry
    },
    remove: (entry) => {
      entries.delete(entry)
    },
    move: (entry, expiresAt) => {
      entry.expiresAt = expiresAt
      if (!entries.has(entry) || expiresAt >= wakesAt) return
      wakesAt = expiresAt
      wake?.()
    }
  }
})

/** What an operation may do to its deadline. */
export interface Watch {
  /** Moves it to a later time, ms of the Clock; an earlier one changes nothing. */
  readonly extend: (expiresAt: number) => void
  /** Lets it stand still; what it returns lets it go on with the time that was left. Pauses may overlap. */
  readonly pause: () => () => void
}

/**
 * Runs a callback-style operation inside a deadline.
 *
 * `start` begins the operation and returns what abandons it. It runs once; whichever comes first of its answer,
 * the deadline and interruption wins, and the other two are dropped. On the deadline, and on interruption,
 * `abandon` is called with the reason before the effect ends.
 */
export const within = <A, E>(
  deadlines: Deadlines,
  ms: number,
  onTimeout: () => E,
  start: (settle: (answer: Effect.Effect<A, E>) => void, watch: Watch) => (reason: "timeout" | "interrupted") => void
): Effect.Effect<A, E> =>
  Effect.async<A, E>((resume) => {
    let settled = false
    let entry: Entry | undefined
    let abandon: ((reason: "timeout" | "interrupted") => void) | undefined
    const settle = (answer: Effect.Effect<A, E>): void => {
      if (settled) return
      settled = true
      if (entry !== undefined) deadlines.remove(entry)
      resume(answer)
    }
    let pauses = 0
    let left = 0
    abandon = start(settle, {
      extend: (expiresAt) => {
        if (entry === undefined) return
        if (pauses > 0) left = Math.max(left, expiresAt - deadlines.now())
        // The sweeper reads the time when it wakes; a later one needs no waking.
        else if (expiresAt > entry.expiresAt) entry.expiresAt = expiresAt
      },
      pause: () => {
        let resumed = false
        if (entry !== undefined && pauses++ === 0) {
          left = entry.expiresAt - deadlines.now()
          entry.expiresAt = Number.POSITIVE_INFINITY
        }
        return () => {
          if (resumed) return
          resumed = true
          if (entry !== undefined && --pauses === 0) deadlines.move(entry, deadlines.now() + left)
        }
      }
    })
    if (settled) return undefined
    entry = deadlines.add(ms, () => {
      if (settled) return
      const error = onTimeout()
      settled = true
      abandon?.("timeout")
      resume(Effect.fail(error))
    })
    return Effect.sync(() => {
      if (settled) return
      settled = true
      if (entry !== undefined) deadlines.remove(entry)
      abandon?.("interrupted")
    })
  })

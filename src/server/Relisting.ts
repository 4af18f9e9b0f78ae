/**
 * Reads lists again that a server said it changed: one at a time, at the idle boundary, never in a circle.
 *
 * Changes are coalesced by surface. A server that answers every list with another change is read at most once a
 * second; one whose new list cannot be read is left alone after a few attempts until it announces the next change.
 * The old list stays meanwhile (spec section 7, R section 5.9).
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { SECOND_MS } from "../base/Units.ts"
import * as CallDeadline from "./CallDeadline.ts"
import type { Generation } from "./Generation.ts"
import type { Surface } from "./ServerState.ts"

/** Shortest time between two readings that nobody asked for. */
export const MIN_INTERVAL_MS = SECOND_MS
/** Failed readings in a row after which the next change is waited for. */
const MAX_FAILURES = 3

/** What relisting needs to know and to tell. */
export interface Surroundings {
  readonly clock: Clock.Clock
  readonly fork: (effect: Effect.Effect<void>) => unknown
  /** Whether no run is open. */
  readonly isIdle: () => boolean
  /** What is stale on the live generation. */
  readonly stale: () => { readonly generation: Generation; readonly surfaces: ReadonlySet<Surface> } | undefined
  /** A surface was read again. */
  readonly done: (generation: Generation, surface: Surface) => void
}

/** The relisting of one server. */
export interface Relisting {
  /** A change was announced. */
  readonly changed: (surface: Surface) => void
  /** Reads what is stale, if it is time. */
  readonly poke: () => void
  /** Reads what is stale now, whoever is in the middle of a run. */
  readonly settle: Effect.Effect<void>
}

/** Relisting that has nothing to do yet. */
export const make = (around: Surroundings): Relisting => {
  const { clock } = around
  const failures = new Map<Surface, number>()
  /** Changes announced while the same list was being read. */
  const again = new Set<Surface>()
  const lock = Effect.unsafeMakeSemaphore(1)
  let nextAt = Number.NEGATIVE_INFINITY
  let waiting = false

  const now = (): number => clock.unsafeCurrentTimeMillis()
  const due = (): ReadonlyArray<Surface> =>
    [...(around.stale()?.surfaces ?? [])].filter((surface) => (failures.get(surface) ?? 0) < MAX_FAILURES)

  const readOne = (generation: Generation, surface: Surface): Effect.Effect<void> =>
    Effect.suspend(() => {
      again.delete(surface)
      const { declaration, lists } = generation
      const budget = () => {
        const { deadlineField, deadlineMs } = CallDeadline.of(declaration, {})
        const end = now() + deadlineMs
        return {
          remainingMs: () => end - now(),
          deadlineField,
          background: true
        }
      }
      return Effect.map(Effect.exit(lists.reread(surface, budget)), (exit) => {
        nextAt = now() + MIN_INTERVAL_MS
        if (Exit.isFailure(exit)) {
          failures.set(surface, (failures.get(surface) ?? 0) + 1)
          return
        }
        failures.delete(surface)
        if (!again.has(surface)) around.done(generation, surface)
      })
    })
  const readAll = lock.withPermits(1)(
    Effect.suspend(() => {
      const stale = around.stale()
      return stale === undefined
        ? Effect.void
        : Effect.forEach(due(), (surface) => readOne(stale.generation, surface), { discard: true })
    })
  )

  const poke = (): void => {
    if (waiting || !around.isIdle() || due().length === 0) return
    waiting = true
    const read = Effect.suspend(() => {
      waiting = false
      return around.isIdle() ? readAll : Effect.void
    })
    const rest = nextAt - now()
    around.fork(
      Effect.zipRight(
        rest > 0 ? clock.sleep(Duration.millis(rest)) : Effect.yieldNow(),
        Effect.zipRight(
          read,
          Effect.sync(() => poke())
        )
      )
    )
  }

  return {
    changed: (surface) => {
      failures.delete(surface)
      again.add(surface)
    },
    poke,
    settle: readAll
  }
}

/**
 * Connects to many servers inside one total bound, so that a few that hang cannot hide the state of the others.
 *
 * Only some servers start at a time (spec section 7). While others wait for their turn, a start gets its share of the
 * bound and is then given up; when nobody waits it may use all that is left.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { HostEnvironment } from "../platform/HostEnvironment.ts"
import type { Generation } from "../server/Generation.ts"
import { type ActivationError, Registry, startsAtATime } from "../server/Registry.ts"
import type { Output } from "./Output.ts"
import { whileWaiting } from "./Waiting.ts"

/** How often a start that takes long is looked at. */
const LOOK = Duration.millis(50)

/** What one attempt came to. */
export type Attempt =
  | { readonly _tag: "Ready"; readonly generation: Generation }
  | { readonly _tag: "Failed"; readonly failure: ActivationError | undefined }
  /** It did not become ready in time. */
  | { readonly _tag: "Late"; readonly text: string }
  /** Its turn to start did not come. */
  | { readonly _tag: "Queued" }

/** Tries every server by its exact name; the attempts in the same order. */
export const connectAll = (
  names: ReadonlyArray<string>,
  totalMs: number
): Effect.Effect<ReadonlyArray<Attempt>, never, Registry | HostEnvironment | Output> =>
  Effect.gen(function* () {
    const registry = yield* Registry
    const { cores } = yield* HostEnvironment
    const clock = yield* Effect.clock
    const begun = clock.unsafeCurrentTimeMillis()
    const share = Math.min(totalMs, (totalMs * startsAtATime(cores)) / Math.max(1, names.length))
    let done = 0

    const giveUp = (name: string): Effect.Effect<Attempt> => {
      let since: number | undefined
      const look = Effect.sync((): Attempt | undefined => {
        const now = clock.unsafeCurrentTimeMillis()
        const queued = registry.status(name).queued === true
        if (!queued) since ??= now
        if (now - begun >= totalMs) {
          return queued ? { _tag: "Queued" } : { _tag: "Late", text: `Not ready within ${totalMs} ms in all.` }
        }
        if (since === undefined || now - since < share) return undefined
        const others = names.some((other) => other !== name && registry.status(other).queued === true)
        return others
          ? { _tag: "Late", text: `Not ready within ${Math.round(now - since)} ms, and others waited for their turn.` }
          : undefined
      })
      const wait: Effect.Effect<Attempt> = Effect.flatMap(Effect.zipRight(Effect.sleep(LOOK), look), (attempt) =>
        attempt === undefined ? wait : Effect.succeed(attempt)
      )
      return wait
    }
    const attempt = (name: string): Effect.Effect<Attempt> =>
      registry.activate(name).pipe(
        Effect.map((generation): Attempt => ({ _tag: "Ready", generation })),
        Effect.raceFirst(giveUp(name)),
        Effect.exit,
        Effect.map((exit): Attempt => {
          done += 1
          if (Exit.isSuccess(exit)) return exit.value
          return { _tag: "Failed", failure: exit.cause._tag === "Fail" ? exit.cause.error : undefined }
        })
      )
    return yield* whileWaiting(
      () => `connecting: ${done} of ${names.length} done…`,
      Effect.forEach(names, attempt, { concurrency: "unbounded" })
    )
  })

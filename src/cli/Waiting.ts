/** The one line that shows long work on a terminal: what is waited for, and for how many seconds. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { Output } from "./Output.ts"

/** Shows `text` with the seconds that passed for as long as the effect runs. It is asked anew for each drawing. */
export const whileWaiting = <A, E, R>(
  text: () => string,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R | Output> =>
  Effect.gen(function* () {
    const output = yield* Output
    let seconds = 0
    const draw = Effect.suspend(() => output.progress(seconds === 0 ? text() : `${text()} ${seconds} s`))
    const tick = Effect.sync(() => {
      seconds += 1
    }).pipe(Effect.zipRight(draw), Effect.delay("1 second"), Effect.forever)
    yield* draw
    return yield* Effect.acquireUseRelease(
      // A fork in an acquisition could not be interrupted otherwise.
      Effect.fork(Effect.interruptible(tick)),
      () => effect,
      (ticking) => Effect.zipRight(Fiber.interrupt(ticking), output.progress(""))
    )
  })

/**
 * Who is in the middle of something: the open runs, and the moments when there is none.
 *
 * A run is a piece of work that must not see its tools change under its hands: one prompt of the agent, one batch
 * of a program. What may wait (a list that a server changed) waits for the idle boundary, when no run is open
 * (spec section 7).
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"

/** Counts the open runs. */
export class RunGate extends Context.Tag("sigil/server/RunGate")<
  RunGate,
  {
    /** Opens a run that lasts as long as the scope. */
    readonly enter: Effect.Effect<void, never, Scope.Scope>
    /** How many runs are open. */
    readonly openRuns: () => number
    /** Calls the listener whenever the last open run ends; returns what stops it. It must not throw. */
    readonly onIdle: (listener: () => void) => () => void
  }
>() {}

/** The gate of one runtime. */
export const layer: Layer.Layer<RunGate> = Layer.sync(RunGate, () => {
  const listeners = new Set<() => void>()
  let open = 0
  return {
    openRuns: () => open,
    onIdle: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    enter: Effect.asVoid(
      Effect.acquireRelease(
        Effect.sync(() => {
          open += 1
        }),
        () =>
          Effect.sync(() => {
            open -= 1
            if (open === 0) for (const listener of listeners) listener()
          })
      )
    )
  }
})

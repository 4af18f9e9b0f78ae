/** Whose turn it is to be asked: one form at a time in one runtime, whatever server asks (R section 9.5). */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** The one permit of a runtime; made on first use and kept with the runtime's context. */
export class ElicitationTurn extends Context.Reference<ElicitationTurn>()("sigil/server/ElicitationTurn", {
  defaultValue: (): { readonly semaphore: Effect.Semaphore } => ({ semaphore: Effect.unsafeMakeSemaphore(1) })
}) {}

/** The permit. */
export const elicitationTurn: Effect.Effect<Effect.Semaphore> = Effect.map(
  ElicitationTurn,
  ({ semaphore }) => semaphore
)

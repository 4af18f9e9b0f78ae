/** What the source of an entry may not ask for. The decoder has refused it already; this says what was ignored. */
import * as Effect from "effect/Effect"
import { type Gate, known } from "./Gate.ts"

/** Tells what a project entry asked for in vain. */
export const scopeRules: Gate = (state) =>
  Effect.map(known(state.declaration, "scope_rules"), (declaration) =>
    declaration.warnings.length === 0
      ? `nothing that scope ${declaration.scope} may not ask for`
      : declaration.warnings.join("; ")
  )

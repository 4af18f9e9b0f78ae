/** The values of variables in command, arguments and environment of the child. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Context from "effect/Context"
import { expand } from "../../config/Expansion.ts"
import type { HostEnvironment } from "../../platform/HostEnvironment.ts"
import { type Gate, known } from "./Gate.ts"

/** Expands templates; a missing variable refuses the entry. */
export const expansion =
  (host: Context.Tag.Service<typeof HostEnvironment>): Gate =>
  (state) =>
    Effect.gen(function* () {
      const declaration = yield* known(state.declaration, "expansion")
      const expanded = expand(declaration, host.get)
      if (Either.isLeft(expanded)) return yield* expanded.left
      state.expanded = expanded.right
      const count = expanded.right.variableValues.length
      return count === 0 ? "no variables are used" : `${count} variable(s) expanded`
    })

/** The values of variables in command, arguments and environment of the child. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Context from "effect/Context"
import { expand } from "../../config/Expansion.ts"
import type { HostEnvironment } from "../../platform/HostEnvironment.ts"
import type { Secrets } from "../../policy/Secrets.ts"
import { secretsOf } from "../ChildEnvironment.ts"
import { type Gate, known } from "./Gate.ts"

/** Expands templates; a missing variable refuses the entry. What comes in is a known secret before anybody can say it. */
export const expansion =
  (host: Context.Tag.Service<typeof HostEnvironment>, secrets: Context.Tag.Service<typeof Secrets>): Gate =>
  (state) =>
    Effect.gen(function* () {
      const declaration = yield* known(state.declaration, "expansion")
      yield* secrets.register(secretsOf(declaration, host))
      const expanded = expand(declaration, host.get, state.facts.snapshot.settings.mcp.missingEnv)
      if (Either.isLeft(expanded)) return yield* expanded.left
      state.expanded = expanded.right
      const count = expanded.right.variableValues.length
      const unset = expanded.right.unset ?? []
      if (unset.length > 0) {
        const warning = `not set and left as written (missing_env = "literal"): ${unset.join(", ")}`
        state.declaration = { ...declaration, warnings: [...declaration.warnings, warning] }
        return warning
      }
      return count === 0 ? "no variables are used" : `${count} variable(s) expanded`
    })

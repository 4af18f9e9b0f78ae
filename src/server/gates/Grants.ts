/** The environment that the child gets, and whether everything it was granted is there. */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { HostEnvironment } from "../../platform/HostEnvironment.ts"
import { build } from "../ChildEnvironment.ts"
import { AdmissionError } from "../ServerError.ts"
import { type Gate, known, stdioOnly } from "./Gate.ts"

/** Builds the environment of the child; all missing grants are told together. */
export const grants =
  (host: Context.Tag.Service<typeof HostEnvironment>): Gate =>
  (state) =>
    Effect.gen(function* () {
      const declaration = yield* known(state.declaration, "grants")
      const expanded = yield* known(state.expanded, "grants")
      const endpoint = yield* stdioOnly(declaration, expanded)
      const built = build({ server: declaration.name, endpoint, variableValues: expanded.variableValues }, host)
      if (Either.isLeft(built)) {
        const error = built.left
        return yield* new AdmissionError({ ...error, where: { ...declaration.source, ...error.where } })
      }
      state.environment = built.right
      return built.right.grants.length === 0 ? "nothing is granted" : `granted: ${built.right.grants.join(", ")}`
    })

/** What the server gets of the environment, as variables or as headers, and whether everything it was granted is there. */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { HostEnvironment } from "../../platform/HostEnvironment.ts"
import { build } from "../ChildEnvironment.ts"
import * as RemoteHeaders from "../RemoteHeaders.ts"
import { AdmissionError } from "../ServerError.ts"
import { type Gate, known } from "./Gate.ts"

/** Builds the environment of a child or the headers of a remote server; all missing grants are told together. */
export const grants =
  (host: Context.Tag.Service<typeof HostEnvironment>): Gate =>
  (state) =>
    Effect.gen(function* () {
      const declaration = yield* known(state.declaration, "grants")
      const expanded = yield* known(state.expanded, "grants")
      const { endpoint } = expanded
      if (endpoint._tag === "remote") {
        const { grants, headers, secrets } = yield* RemoteHeaders.resolve(
          declaration,
          endpoint,
          expanded.unset ?? [],
          host
        )
        state.environment = { variables: {}, secrets, grants }
        state.headers = headers
        return grants.length === 0 ? "no header is from a variable" : `for its headers: ${grants.join(", ")}`
      }
      const built = build({ server: declaration.name, endpoint, variableValues: expanded.variableValues }, host)
      if (Either.isLeft(built)) {
        const error = built.left
        return yield* new AdmissionError({ ...error, where: { ...declaration.source, ...error.where } })
      }
      state.environment = built.right
      return built.right.grants.length === 0 ? "nothing is granted" : `granted: ${built.right.grants.join(", ")}`
    })

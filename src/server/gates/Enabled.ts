/** Whether the server is switched on, in its entry or for this project. */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { emptyToggles, stateOf, type Toggles } from "../../policy/Toggles.ts"
import { AdmissionError } from "../ServerError.ts"
import { type Gate, known, located } from "./Gate.ts"

/** Refuses what is switched off; the switch for the project goes before the entry. */
export const enabled =
  (toggles: Context.Tag.Service<typeof Toggles>): Gate =>
  (state) =>
    Effect.gen(function* () {
      const declaration = yield* known(state.declaration, "enabled")
      const stored = yield* toggles
        .read(state.facts.snapshot.projectIdentity)
        .pipe(Effect.orElseSucceed(() => emptyToggles))
      const switched = stateOf(stored, declaration.name)
      const on = switched ?? declaration.enabled
      if (on) return "enabled"
      return yield* new AdmissionError({
        code: "SIGIL_DISABLED",
        reason: "disabled",
        text: `The server '${declaration.name}' is disabled${switched === false ? " for this project" : " in its entry"}.`,
        fix: `Run 'sigil mcp enable ${declaration.name}'.`,
        where: located(declaration, "enabled", "enabled")
      })
    })

/** Whether the server can be served as it asks: what it is to identify sigil with, and somebody who answers its forms. */
import * as Effect from "effect/Effect"
import type { Features } from "../ClientFeatures.ts"
import { AdmissionError } from "../ServerError.ts"
import { type Gate, known, located } from "./Gate.ts"

/**
 * Refuses a remote server that counts on forms in a run where nobody can fill one in (spec section 6). A run that only
 * looks at servers needs nobody: no form is declared, and nothing is called that could want one.
 */
export const credential =
  (features: Features): Gate =>
  (state) =>
    Effect.gen(function* () {
      const answered = features.forms || features.looking === true
      const declaration = yield* known(state.declaration, "credential")
      const { endpoint } = declaration
      if (endpoint._tag === "remote" && endpoint.clientCapabilities.includes("elicitation") && !answered)
        return yield* new AdmissionError({
          code: "SIGIL_INPUT_REQUIRED",
          reason: "elicitation_unavailable",
          text: `The server '${declaration.name}' may ask for input (client_capabilities lists "elicitation"), and nobody can answer in this run.`,
          fix: "Give the call its answers with --answers FILE, or call from a terminal.",
          where: located(declaration, "credential", "client_capabilities")
        })
      const sent = (state.headers ?? []).filter((header) => header.credential)
      return sent.length === 0 ? "no credential is needed" : `sent in ${sent.map(({ name }) => name).join(", ")}`
    })

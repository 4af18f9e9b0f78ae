/** The entry itself: it could be read, and asks for nothing that this build lacks. */
import * as Effect from "effect/Effect"
import { AdmissionError } from "../ServerError.ts"
import { type Gate, located } from "./Gate.ts"

/** Refuses what cannot be read or is not built yet. */
export const declaration: Gate = (state) =>
  Effect.gen(function* () {
    if (state.entry._tag === "Broken") return yield* state.entry.broken.error
    const { declaration } = state.entry
    state.declaration = declaration
    const lacking = declaration.unsupported[0]
    if (lacking === undefined) return `declared in scope ${declaration.scope}`
    return yield* new AdmissionError({
      code: "SIGIL_NOT_SUPPORTED",
      reason: "not_supported_yet",
      text: `The server '${declaration.name}' uses '${lacking.field}', which is not supported yet.`,
      where: located(declaration, "declaration", lacking.field)
    })
  })

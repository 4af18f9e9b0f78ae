/** What whoever runs this machine forbids altogether. */
import * as Effect from "effect/Effect"
import { AdmissionError } from "../ServerError.ts"
import { type Gate, known } from "./Gate.ts"

/** Refuses every server while a safety setting is present that cannot be enforced: it is never ignored. */
export const companyLimit: Gate = (state) =>
  Effect.gen(function* () {
    const declaration = yield* known(state.declaration, "company_limit")
    const safety = state.facts.snapshot.unsupportedSafety[0]
    if (safety === undefined) return "no company limit is set"
    return yield* new AdmissionError({
      code: "SIGIL_SAFETY_UNSUPPORTED",
      reason: "safety_setting_not_supported_yet",
      text:
        safety.why === undefined
          ? `'${safety.field}' in ${safety.source} is a safety setting that this version cannot enforce yet, so no server is started.`
          : `'${safety.field}' in ${safety.source} cannot be used (${safety.why}), so what it is to guard is unknown and no server is started.`,
      fix: safety.why === undefined ? undefined : "Correct the file; 'sigil doctor' names each place.",
      where: { file: safety.source, field: safety.field, server: declaration.name, operation: "company_limit" }
    })
  })

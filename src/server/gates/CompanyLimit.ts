/** What whoever runs this machine forbids altogether. */
import * as Effect from "effect/Effect"
import * as Limit from "../../policy/CompanyLimit.ts"
import { AdmissionError } from "../ServerError.ts"
import { type Gate, known } from "./Gate.ts"

/**
 * Refuses every server while a safety setting is present that cannot be enforced, since it is never ignored, and every
 * server but those of an IDE while a limit switches MCP off.
 */
export const companyLimit: Gate = (state) =>
  Effect.gen(function* () {
    const declaration = yield* known(state.declaration, "company_limit")
    const { settings, unsupportedSafety } = state.facts.snapshot
    const [safety] = unsupportedSafety
    if (safety !== undefined)
      return yield* new AdmissionError({
        code: "SIGIL_SAFETY_UNSUPPORTED",
        reason: safety.reason ?? "safety_setting_not_supported_yet",
        text:
          safety.why === undefined
            ? `'${safety.field}' in ${safety.source} is a safety setting that this version cannot enforce yet, so no server is started.`
            : `'${safety.field}' in ${safety.source} cannot be used (${safety.why}), so what it is to guard is unknown and no server is started.`,
        fix:
          safety.fix ?? (safety.why === undefined ? undefined : "Correct the file; 'sigil doctor' names each place."),
        where: {
          file: safety.source,
          ...safety.at,
          field: safety.field,
          server: declaration.name,
          operation: "company_limit"
        }
      })
    const off = Limit.decide(settings.company, declaration)
    if (off === undefined) {
      const spared = Limit.offBy(settings.company)
      return spared === undefined
        ? "no company limit is set"
        : `MCP is off by ${Limit.describe(spared)}; what an IDE declares is spared`
    }
    const { limit, policy } = off
    return yield* new AdmissionError({
      code: "SIGIL_DENIED",
      reason: "company_limit",
      text: `The server '${declaration.name}' is off, like all servers, by ${Limit.describe(off)}`,
      fix: policy.managed
        ? `Ask whoever administers this machine to change ${limit.field} in ${policy.file}.`
        : `Change ${limit.field} in ${policy.file}, if you want servers.`,
      where: {
        file: policy.file,
        line: limit.at.line,
        column: limit.at.column,
        field: limit.field,
        server: declaration.name,
        operation: "company_limit"
      }
    })
  })

/** The audit log cannot take a record, so what the record is about must not happen (spec section 13). */
import * as Schema from "effect/Schema"
import { type Failure, failureFields } from "../base/Failure.ts"
import { fileFault } from "../platform/FileFault.ts"

/**
 * Code `SIGIL_AUDIT_UNWRITABLE`. Reasons: the system's (`no_space`, `permission_denied`, `read_only`, …),
 * `symlink`, `not_a_file`, `locked` (another process keeps the log), `payload_invalid`, `closed`.
 */
export class AuditError extends Schema.TaggedError<AuditError>("sigil/AuditError")("AuditError", failureFields) {
  override get message(): string {
    return this.text
  }
}

/** A refusal that the system did not report. */
export const auditRefused = (file: string, reason: string, why: string, fix?: string): AuditError =>
  new AuditError({
    code: "SIGIL_AUDIT_UNWRITABLE",
    reason,
    text: `The audit log '${file}' cannot be written, so nothing is done that it would have to record: ${why}.`,
    fix,
    where: { file }
  })

const isFailure = (error: unknown): error is Failure =>
  typeof error === "object" && error !== null && "_tag" in error && "text" in error && "code" in error

/** What the system, or a file helper, says about the log or its directory. */
export const auditFault = (file: string, error: unknown): AuditError => {
  if (error instanceof AuditError) return error
  const fault = isFailure(error) ? error : fileFault("written", file, error)
  return new AuditError({
    code: "SIGIL_AUDIT_UNWRITABLE",
    reason: fault.reason,
    text: `The audit log cannot be written, so nothing is done that it would have to record: ${fault.text}`,
    fix: fault.fix,
    where: fault.where ?? { file },
    ...(fault.details === undefined ? {} : { details: fault.details })
  })
}

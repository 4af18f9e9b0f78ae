/** The command line does not fit. The caller types another one; nothing was done. */
import * as Schema from "effect/Schema"
import { type Failure, failureFields } from "../base/Failure.ts"

/** Codes: `SIGIL_USAGE`, `SIGIL_UNKNOWN_COMMAND`, `SIGIL_UNKNOWN_OPTION`, `SIGIL_UNKNOWN_CODE`. */
export class UsageError extends Schema.TaggedError<UsageError>("sigil/UsageError")("UsageError", failureFields) {
  override get message(): string {
    return this.text
  }
}

/** The words of a command as a user types them. */
export const spoken = (path: ReadonlyArray<string>): string => ["sigil", ...path].join(" ")

/** A usage error of the command or group with these words. */
export const usage = (
  path: ReadonlyArray<string>,
  text: string,
  more: Partial<Pick<Failure, "code" | "reason" | "candidates" | "fix">> = {}
): UsageError =>
  new UsageError({
    code: "SIGIL_USAGE",
    reason: "usage",
    fix: `Run '${spoken(path)} --help'.`,
    text,
    ...more
  })

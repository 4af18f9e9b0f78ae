/** Processes of a server that could not be confirmed gone. */
import * as Schema from "effect/Schema"
import { failureFields } from "../base/Failure.ts"

/** Code `SIGIL_CLEANUP_INCOMPLETE`. */
export class SigilCleanup extends Schema.TaggedError<SigilCleanup>("sigil/CleanupFailure")(
  "CleanupFailure",
  failureFields
) {
  override get message(): string {
    return this.text
  }
}

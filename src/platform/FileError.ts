/** A file could not be read, locked or written. */
import * as Schema from "effect/Schema"
import { failureFields } from "../base/Failure.ts"

/** `code` is `SIGIL_FILE`, `SIGIL_CONFIG_CONFLICT` (reason `changed_meanwhile`) or `SIGIL_STATE_UNWRITABLE`. */
export class FileError extends Schema.TaggedError<FileError>("sigil/FileError")("FileError", failureFields) {
  override get message(): string {
    return this.text
  }
}

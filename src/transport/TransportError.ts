/** A transport could not be opened. */
import * as Schema from "effect/Schema"
import { failureFields } from "../base/Failure.ts"

/** `code` is one of the start group: `SIGIL_COMMAND_NOT_FOUND`, `SIGIL_SPAWN_FAILED`, `SIGIL_START_FAILED`. */
export class TransportError extends Schema.TaggedError<TransportError>("sigil/TransportError")(
  "TransportError",
  failureFields
) {
  override get message(): string {
    return this.text
  }
}

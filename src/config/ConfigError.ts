/** Something in a configuration file, or about editing one, is wrong. */
import * as Schema from "effect/Schema"
import { failureFields } from "../base/Failure.ts"

/** A configuration failure; `where` has file, line, column and field whenever they are known. */
export class ConfigError extends Schema.TaggedError<ConfigError>("sigil/ConfigError")("ConfigError", failureFields) {
  override get message(): string {
    return this.text
  }
}

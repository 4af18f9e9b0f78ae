/** What can go wrong between sigil and one server, one class per decision a caller can make. */
import * as Schema from "effect/Schema"
import { failureFields } from "../base/Failure.ts"

/** A gate of admission refused; nothing was started. The caller changes configuration, consent or policy. */
export class AdmissionError extends Schema.TaggedError<AdmissionError>("sigil/AdmissionError")(
  "AdmissionError",
  failureFields
) {
  override get message(): string {
    return this.text
  }
}

/** The server did not become ready. The caller may start it again after mending the cause. */
export class StartError extends Schema.TaggedError<StartError>("sigil/StartError")("StartError", failureFields) {
  override get message(): string {
    return this.text
  }
}

/**
 * A set of required servers could not be made ready, so all of the set were taken back. The caller ends the run, or
 * mends what `failures` name.
 */
export class RequiredServersError extends Schema.TaggedError<RequiredServersError>("sigil/RequiredServersError")(
  "RequiredServersError",
  failureFields
) {
  override get message(): string {
    return this.text
  }
}

/** A request did not get its answer: deadline, limit, protocol fault or a lost connection. */
export class ConnectionError extends Schema.TaggedError<ConnectionError>("sigil/ConnectionError")(
  "ConnectionError",
  failureFields
) {
  override get message(): string {
    return this.text
  }
}

/** The server answered with a JSON-RPC error. The connection is unharmed. */
export class RemoteError extends Schema.TaggedError<RemoteError>("sigil/RemoteError")("RemoteError", {
  ...failureFields,
  /** The JSON-RPC error code of the server. */
  rpcCode: Schema.Number,
  /** `data` of the error as it came; hostile, and never shown. */
  rpcData: Schema.optional(Schema.Unknown)
}) {
  override get message(): string {
    return this.text
  }
}

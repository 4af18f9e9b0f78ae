/** A message did not get to a remote server, or its answer did not get back whole. */
import * as Schema from "effect/Schema"
import type { Code } from "../base/Codes.ts"
import { failureFields } from "../base/Failure.ts"
import type { Refusal } from "./Destination.ts"

/**
 * Codes: `SIGIL_NETWORK_REFUSED` (the destination is refused), `SIGIL_CONNECTION_LOST` (not resolved, not dialled,
 * cut), `SIGIL_REDIRECT_REFUSED`, `SIGIL_LIMIT_EXCEEDED`, `SIGIL_PROTOCOL_FAULT`, `SIGIL_AUDIT_UNWRITABLE`,
 * `SIGIL_CONFIG_INVALID` (a header that cannot be sent). Texts hold origins, never paths, queries or header values.
 */
export class NetError extends Schema.TaggedError<NetError>("sigil/NetError")("NetError", {
  ...failureFields,
  /** `no`: the message provably never arrived, so it may be sent again. `unknown`: it may have been processed. */
  delivered: Schema.Literal("no", "unknown"),
  /** HTTP status, where one came. */
  status: Schema.optional(Schema.Number),
  /** `Retry-After` as it came with the status; what of it is believed is the caller's business. */
  retryAfter: Schema.optional(Schema.String)
}) {
  override get message(): string {
    return this.text
  }
}

/** Why a dial failed: nothing listens at the place. */
export const REFUSED = "connection_refused"

/** A failure of which nothing arrived. */
export const notSent = (code: Code, reason: string, text: string, fix?: string): NetError =>
  new NetError({ code, reason, text, fix, delivered: "no" })

/** A failure after which nobody knows whether the server acted on the message. */
export const maybeSent = (code: Code, reason: string, text: string, status?: number): NetError =>
  new NetError({ code, reason, text, delivered: "unknown", ...(status === undefined ? {} : { status }) })

/** A destination that the rules refuse. */
export const refused = ({ reason, text, fix }: Refusal): NetError => notSent("SIGIL_NETWORK_REFUSED", reason, text, fix)

/** What an error of the system, of TLS or of the HTTP client is called; its own texts may repeat what a server sent. */
export const errorCodeOf = (error: unknown): string => {
  if (typeof error !== "object" || error === null) return "unknown"
  if ("code" in error && typeof error.code === "string") return error.code
  return "name" in error && typeof error.name === "string" ? error.name : "unknown"
}

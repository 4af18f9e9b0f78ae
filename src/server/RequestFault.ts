/**
 * The failures of one request whose connection lives on: what the caller reads when a single answer did not come.
 *
 * Each names the operation, and the field or the step that would help (spec sections 1 and 7). The ends of a whole
 * connection are in `TerminalCause.ts`.
 */
import { cut } from "../base/Cut.ts"
import type { Json } from "../base/Json.ts"
import { MAX_FRAME_BYTES } from "../protocol/Framing.ts"
import type { ErrorObject } from "../protocol/JsonRpc.ts"
import type { RequestOptions } from "./Connection.ts"
import { ConnectionError, RemoteError } from "./ServerError.ts"

/** Characters of a server's reason that are shown. */
const MAX_REASON = 512

/** The server answered with a JSON-RPC error. */
export const remote = (server: string, operation: string, error: ErrorObject): RemoteError =>
  new RemoteError({
    code: "SIGIL_REMOTE_ERROR",
    reason: "remote_error",
    text: `The server '${server}' answered '${operation}' with error ${error.code}: ${error.message}`,
    where: { server, operation },
    details: { remote_error: { code: error.code, message_total_bytes: Buffer.byteLength(error.message) } },
    rpcCode: error.code
  })

/** The server cancelled the request (K section 9.12). */
export const cancelled = (server: string, operation: string, reason: Json | undefined): ConnectionError =>
  new ConnectionError({
    code: "SIGIL_CALL_CANCELLED",
    reason: "cancelled_by_server",
    text: `The server '${server}' cancelled '${operation}'${typeof reason === "string" ? `: ${cut(reason, MAX_REASON)}` : "."}`,
    where: { server, operation }
  })

/** The request is larger than a frame may be; nothing was written. */
export const tooLarge = (server: string, { operation }: RequestOptions): ConnectionError =>
  new ConnectionError({
    code: "SIGIL_LIMIT_EXCEEDED",
    reason: "frame_too_large",
    text: `The request '${operation}' is larger than ${MAX_FRAME_BYTES} bytes; nothing was sent.`,
    fix: "Send less at a time, for instance a path instead of the content.",
    where: { server, operation },
    details: { limit_bytes: MAX_FRAME_BYTES, observed_at_least_bytes: MAX_FRAME_BYTES + 1 }
  })

/** The server did not read its input for as long as the request might take; nothing was written. */
export const notRead = (server: string, { deadlineMs, operation }: RequestOptions): ConnectionError =>
  new ConnectionError({
    code: "SIGIL_CALL_TIMEOUT",
    reason: "timeout_in_queue",
    text: `The server '${server}' did not read its input for ${deadlineMs} ms; '${operation}' was not sent.`,
    where: { server, operation },
    details: { timeout_ms: deadlineMs }
  })

/** The answer did not come in time. `waitedMs` is the whole time since the request was sent. */
export const timedOut = (server: string, given: RequestOptions, waitedMs: number): ConnectionError => {
  const { deadlineMs, idleMaxField, idleMaxMs, operation } = given
  // With progress the whole may be over although every part was in time.
  const whole = idleMaxMs !== undefined && waitedMs >= Math.max(idleMaxMs, deadlineMs) && idleMaxMs > deadlineMs
  const field = whole ? (idleMaxField ?? given.deadlineField) : given.deadlineField
  const limit = whole ? idleMaxMs : deadlineMs
  const quiet = idleMaxMs !== undefined && !whole ? " of its last sign of progress" : ""
  return new ConnectionError({
    code: "SIGIL_CALL_TIMEOUT",
    reason: "timeout",
    text: `The server '${server}' did not answer '${operation}' within ${limit} ms${whole ? " in all" : quiet}.`,
    fix: field.startsWith("--")
      ? `Give a longer ${field} if the work needs it.`
      : `Raise ${field} of '${server}' if the work needs longer.`,
    where: { server, operation, field },
    details: { timeout_ms: limit }
  })
}

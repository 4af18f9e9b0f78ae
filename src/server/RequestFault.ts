/**
 * The failures of one request whose connection lives on: what the caller reads when a single answer did not come.
 *
 * Each names the operation, and the field or the step that would help (spec sections 1 and 7). The ends of a whole
 * connection are in `TerminalCause.ts`.
 */
import { cut } from "../base/Cut.ts"
import { isJsonObject, type Json, type JsonObject } from "../base/Json.ts"
import { KIB } from "../base/Units.ts"
import { MAX_FRAME_BYTES } from "../protocol/Framing.ts"
import type { ErrorObject } from "../protocol/JsonRpc.ts"
import type { DeliveryFault } from "../transport/Transport.ts"
import type { RequestOptions } from "./Request.ts"
import { ConnectionError, RemoteError } from "./ServerError.ts"

/** What is shown of a server's error message: the bounds of a result (spec section 9). */
const MAX_MESSAGE_BYTES = 32 * KIB
const MAX_MESSAGE_LINES = 2_000
/** Characters of a server's reason that are shown. */
const MAX_REASON = 512

/** How a value looks, without the value: what `data` of an error held is the server's business (R section 4.4). */
const shapeOf = (value: Json): JsonObject => {
  if (value === null) return { type: "null" }
  if (Array.isArray(value)) return { type: "array", items: value.length }
  if (isJsonObject(value)) return { type: "object", keys: Object.keys(value).length }
  if (typeof value === "string") return { type: "string", bytes: Buffer.byteLength(value), chars: value.length }
  return { type: typeof value === "boolean" ? "boolean" : "number" }
}

/** The beginning of a message, within both bounds. */
const bounded = (message: string): string => {
  const lines = message.split("\n", MAX_MESSAGE_LINES).join("\n")
  return Buffer.byteLength(lines) <= MAX_MESSAGE_BYTES
    ? lines
    : Buffer.from(lines)
        .subarray(0, MAX_MESSAGE_BYTES)
        .toString()
        .replace(/\ufffd$/, "")
}

/** The server answered with a JSON-RPC error. The message is shown within bounds, its `data` only as a shape. */
export const remote = (server: string, operation: string, error: ErrorObject, status?: number): RemoteError => {
  const message = bounded(error.message)
  const truncated = message.length < error.message.length
  const lines = (text: string): number => text.split("\n").length
  const total = Buffer.byteLength(error.message)
  const returned = Buffer.byteLength(message)
  return new RemoteError({
    code: "SIGIL_REMOTE_ERROR",
    reason: "remote_error",
    text: `The server '${server}' answered '${operation}' with error ${error.code}: ${message}${
      truncated ? ` [${total - returned} more bytes of the message are left out]` : ""
    }`,
    where: { server, operation },
    details: {
      remote_error: {
        code: error.code,
        message_total_bytes: total,
        message_returned_bytes: returned,
        message_omitted_bytes: total - returned,
        message_total_lines: lines(error.message),
        message_returned_lines: lines(message),
        message_truncated: truncated,
        limit_bytes: MAX_MESSAGE_BYTES,
        limit_lines: MAX_MESSAGE_LINES,
        ...(error.data === undefined ? {} : { data: shapeOf(error.data) })
      },
      ...(status === undefined ? {} : { http_status: status })
    },
    rpcCode: error.code,
    ...(error.data === undefined ? {} : { rpcData: error.data })
  })
}

/** The server cancelled the request (K section 9.12). */
export const cancelled = (server: string, operation: string, reason: string): ConnectionError =>
  new ConnectionError({
    code: "SIGIL_CALL_CANCELLED",
    reason: "cancelled_by_server",
    text: `The server '${server}' cancelled '${operation}'${reason === "" ? "." : `: ${cut(reason, MAX_REASON)}`}`,
    where: { server, operation }
  })

/** The request got no answer, and the connection lives on (transports with a request of their own per message). */
export const undelivered = (server: string, operation: string, fault: DeliveryFault): ConnectionError =>
  new ConnectionError({
    code: fault.code,
    reason: fault.reason,
    text: `'${operation}' on server '${server}' failed: ${fault.text}`,
    ...(fault.fix === undefined ? {} : { fix: fault.fix }),
    where: { server, operation },
    details: {
      connection_state: "open",
      retryable: fault.delivered === "no",
      delivered: fault.delivered,
      ...(fault.status === undefined ? {} : { http_status: fault.status }),
      ...(fault.retryAfterMs === undefined ? {} : { retry_after_ms: fault.retryAfterMs }),
      ...fault.details
    }
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

/**
 * The answer did not come in time. `waitedMs` is the whole time since the request was sent; `closes` says whether
 * this ends the connection.
 */
export const timedOut = (server: string, given: RequestOptions, waitedMs: number, closes: boolean): ConnectionError => {
  const { deadlineMs, idleMaxField, idleMaxMs, operation } = given
  // With progress the whole may be over although every part was in time.
  const whole = idleMaxMs !== undefined && waitedMs >= idleMaxMs
  const field = whole ? (idleMaxField ?? given.deadlineField) : given.deadlineField
  const limit = whole ? idleMaxMs : deadlineMs
  const quiet = idleMaxMs !== undefined && !whole ? " of its last sign of progress" : ""
  return new ConnectionError({
    code: "SIGIL_CALL_TIMEOUT",
    reason: "timeout",
    text: `The server '${server}' did not answer '${operation}' within ${limit} ms${whole ? " in all" : quiet}.`,
    fix: field.startsWith("--")
      ? `Give a longer ${field} if the work needs it.`
      : `Raise ${whole ? field : (given.deadlineHint ?? field)} of '${server}' if the work needs longer.`,
    where: { server, operation, field },
    details: {
      timeout_ms: limit,
      retryable: false,
      ...(closes
        ? { connection_state: "closed", retry_action: "refresh_mcp_server", terminal_cause: "timeout" }
        : { connection_state: "open" })
    }
  })
}

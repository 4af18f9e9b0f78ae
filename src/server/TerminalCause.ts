/**
 * The first cause that ended a connection, and the error every waiter gets for it.
 *
 * The first cause wins and all later observers see that same one (R section 4.5). An error names the call that
 * ended the connection when one did.
 */
import type { Code } from "../base/Codes.ts"
import type { WireEnd } from "../transport/Transport.ts"
import { ConnectionError } from "./ServerError.ts"

/** Why a connection is over. */
export interface Terminal {
  readonly end: WireEnd
  /** Whether the server runs somewhere else, so that nothing of its stderr is here. */
  readonly remote?: boolean
  /** The operation that ended it, when one did. */
  readonly culprit?: string
}

const limits = new Set([
  "frame_too_large",
  "message_limit",
  "cumulative_bytes_limit",
  "stderr_limit",
  "nesting_limit",
  "backlog_limit"
])
const faults = new Set([
  "invalid_utf8",
  "invalid_json",
  "invalid_jsonrpc_envelope",
  "content_length_framing",
  "missing_newline",
  "unsupported_protocol_version",
  "invalid_session_id"
])

/** The code that belongs to an end. */
export const codeOf = (end: WireEnd): Code => {
  if (limits.has(end.reason)) return "SIGIL_LIMIT_EXCEEDED"
  if (faults.has(end.reason)) return "SIGIL_PROTOCOL_FAULT"
  return end.reason === "environment_binding_changed" ? "SIGIL_ENVIRONMENT_CHANGED" : "SIGIL_CONNECTION_LOST"
}

const detailsOf = (end: WireEnd): { readonly [key: string]: unknown } => ({
  connection_state: "closed",
  retry_action: "refresh_mcp_server",
  terminal_cause: end.reason,
  retryable: false,
  ...end.details,
  ...(end.exit === undefined ? {} : { exit_code: end.exit.code, exit_signal: end.exit.signal })
})

/** The error of whoever wants a server that ended and is not started again by itself. */
export const downFor = (server: string, terminal: Terminal): ConnectionError => {
  const { culprit, end } = terminal
  const by = culprit === undefined ? "" : ` The call that ended it was '${culprit}'.`
  return new ConnectionError({
    code: codeOf(end),
    reason: end.reason,
    text: `The server '${server}' is down: ${end.text}${by}`,
    fix: `Refresh '${server}' to start it again.`,
    where: { server },
    details: detailsOf(end)
  })
}

/** The error of one waiter. */
export const faultFor = (server: string, terminal: Terminal, operation: string): ConnectionError => {
  const { end, culprit } = terminal
  const by = culprit === undefined || culprit === operation ? "" : ` The call that ended it was '${culprit}'.`
  const fix =
    terminal.remote === true
      ? "See whether the server runs and can be reached, then call again."
      : `See its last words with 'sigil mcp logs ${server}'.`
  return new ConnectionError({
    code: codeOf(end),
    reason: end.reason,
    text: `'${operation}' on server '${server}' failed: ${end.text}${by}`,
    ...(codeOf(end) === "SIGIL_CONNECTION_LOST" && end.reason !== "closed" && end.reason !== "retired" ? { fix } : {}),
    where: { server, operation },
    details: detailsOf(end)
  })
}

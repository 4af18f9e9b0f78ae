/**
 * Whether and when a server that ended by itself is started again (spec section 7, pure).
 *
 * A restart is for servers that crash, not for servers that lie: after a message that is no MCP, a changed grant or
 * a refusal by policy the same start would only end the same way, or hide what happened. Every attempt passes
 * admission again. Attempts are counted in a sliding window, so a server that crashes once a day never runs out.
 */
import type { Code } from "../base/Codes.ts"
import { SECOND_MS } from "../base/Units.ts"

/** Wait before the first attempt, ms; doubled for each further one in the window. */
export const FIRST_DELAY_MS = 250
/** Longest wait, ms. */
export const MAX_DELAY_MS = 30 * SECOND_MS
/** Share by which a wait is spread to either side, so that servers that died together do not start together. */
export const SPREAD = 0.2
/** Attempts in one window; the next end is final until somebody asks for the server. */
export const MAX_ATTEMPTS = 5
/** Length of the window, ms. */
export const WINDOW_MS = 300 * SECOND_MS

/** Ends after which the same start would end the same way. */
const finalReasons = new Set([
  "invalid_utf8",
  "invalid_json",
  "invalid_jsonrpc_envelope",
  "content_length_framing",
  "environment_binding_changed",
  "secret_gate"
])

/** Start failures that may be gone at the next attempt. Everything else is a refusal or a fault of the server. */
const passingCodes: ReadonlySet<Code> = new Set<Code>([
  "SIGIL_SPAWN_FAILED",
  "SIGIL_START_FAILED",
  "SIGIL_START_TIMEOUT",
  "SIGIL_CONNECTION_LOST",
  "SIGIL_LIMIT_EXCEEDED",
  "SIGIL_ZERO_SURFACE"
])

/** Whether a connection that ended for this reason (R section 4.3) may be replaced by a restart. */
export const mayRestartAfter = (reason: string): boolean => !finalReasons.has(reason)

/** Whether another attempt may succeed after a start that failed with this code. */
export const mayRetryStart = (code: Code): boolean => passingCodes.has(code)

/** The attempts that still count. */
export const recent = (attempts: ReadonlyArray<number>, now: number): ReadonlyArray<number> =>
  attempts.filter((at) => at > now - WINDOW_MS)

/**
 * The wait before the next attempt, ms; `undefined` when there were enough.
 *
 * @param attempts Times of earlier attempts, ms.
 * @param jitter From 0 to 1; 0.5 is no spread.
 */
export const delayBefore = (attempts: ReadonlyArray<number>, now: number, jitter: number): number | undefined => {
  const made = recent(attempts, now).length
  if (made >= MAX_ATTEMPTS) return undefined
  const spread = 1 + SPREAD * (2 * jitter - 1)
  return Math.round(Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** made) * spread)
}

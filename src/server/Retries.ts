/**
 * Whether a request that failed on its way may be sent again, and when (S section 3.8 with its table row 27). Pure.
 *
 * Nothing is repeated that may have run, unless running twice is the same as once: a call is sent again only when it
 * provably was not processed, or when a server whose word counts says that its tool is idempotent. Each attempt is a
 * request of its own: new id, new authorisation on the network.
 */
import { SECOND_MS } from "../base/Units.ts"
import type { ConnectionError } from "./ServerError.ts"

/** Wait before the first repetition, ms; doubled for each further one. */
export const FIRST_DELAY_MS = SECOND_MS
/** Longest wait of sigil's own choice, ms. */
export const MAX_DELAY_MS = 30 * SECOND_MS
/** Share by which a wait is spread to either side. */
export const SPREAD = 0.15
/** Longest wait that a server may ask for, ms; more is not believed. */
export const MAX_RETRY_AFTER_MS = 3_600 * SECOND_MS

/** Requests of a start: a person waits for it, so they are repeated only where the entry says so. */
const starting = new Set(["initialize", "server/discover"])

/** Requests that only read. */
const reading = new Set([
  "initialize",
  "server/discover",
  "tools/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "prompts/list",
  "prompts/get",
  "completion/complete",
  "tasks/get"
])

/** Failures on the way: a connection that broke, a status. */
const passing: ReadonlySet<ConnectionError["code"]> = new Set(["SIGIL_CONNECTION_LOST", "SIGIL_HTTP_STATUS"] as const)

/** What is known of a request. */
export interface Repeatable {
  readonly method: string
  /** The tool says that calling it twice is the same as once, and its server's word counts. */
  readonly idempotent: boolean
  /** `retries` of the entry. */
  readonly retries: number
  /** Whether the entry says so itself; calls are repeated only then. */
  readonly written: boolean
}

/**
 * The wait before the next attempt, ms; `undefined` when there is none.
 *
 * @param made Attempts that failed so far, 1 for the first.
 * @param jitter From 0 to 1; 0.5 is no spread.
 */
export const delayBefore = (
  failure: ConnectionError,
  request: Repeatable,
  made: number,
  jitter: number
): number | undefined => {
  const delivered = failure.details?.["delivered"]
  if (delivered !== "no" && delivered !== "unknown") return undefined
  // What is no MCP, too much, or sends the request elsewhere will be so again.
  if (!passing.has(failure.code)) return undefined
  const reads = reading.has(request.method)
  const patient = request.written || (reads && !starting.has(request.method))
  if (made > (patient ? request.retries : 0)) return undefined
  if (delivered === "unknown" && !reads && !request.idempotent) return undefined
  // What was answered with a status is an answer, unless it asks for patience or tells of a passing trouble.
  const status = failure.details?.["http_status"]
  if (typeof status === "number" && status !== 429 && status < 500) return undefined
  const asked = failure.details?.["retry_after_ms"]
  const wait = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (made - 1)) * (1 + SPREAD * (2 * jitter - 1))
  return Math.round(typeof asked === "number" && asked <= MAX_RETRY_AFTER_MS ? Math.max(wait, asked) : wait)
}

/**
 * One cell of the fault table: what goes wrong at which stage, and what must come of it within which time.
 *
 * Bounds are computed from the deadlines of the declaration and sigil's own cleanup bound, never guessed per row.
 * They are no measurements: a row that needs them has hung.
 */
import { CLEANUP_BOUND_MS } from "../../src/platform/Termination.ts"
import type { Generation } from "../../src/server/Generation.ts"

/** When the fault happens. */
export const stages = ["spawn", "probe", "handshake", "list", "pages", "call", "idle", "close"] as const
/** `probe` is the question what the server speaks, `pages` the second page of the list; `idle` is after a good call, `close` when sigil ends the server. */
export type Stage = (typeof stages)[number]

/** Rows that must run into a deadline have short ones; the others must never get near theirs, on any machine. */
const SHORT = { startMs: 1_500, callMs: 800 }
const LONG = { startMs: 10_000, callMs: 6_000 }
/** Grace between the steps of the end, ms. */
export const GRACE_MS = 200
/** What a busy machine may add to any bound, ms. */
export const SLACK_MS = 2_000
/** Time for everything that a flood of this suite writes to be read, ms. */
const FLOOD_MS = 20_000
/** Deadline of a call that must be ended by what happens to another one, ms. */
export const BYSTANDER_MS = 30_000

/** What must come of a fault. */
export type Expected =
  /** Tolerated: the start, the call and the next call succeed on one generation. */
  | { readonly kind: "lives" }
  /** The connection ends with this first cause, and everything that waits for it has it. */
  | { readonly kind: "dies"; readonly code: string; readonly reason: string }
  /** Answered as long as nothing has to be sent; the next message ends the connection with this cause. */
  | { readonly kind: "breaks"; readonly reason: string }
  /** This start or call fails and, for a call, the connection goes on. */
  | { readonly kind: "fails"; readonly code: string; readonly reason: string }

/** What a row saw, for checks that only this row needs. */
export interface Seen {
  readonly generation: Generation | undefined
  readonly notes: ReadonlyArray<{ readonly progress: number; readonly message?: string }>
  readonly failure: { readonly text: string; readonly details?: { readonly [key: string]: unknown } } | undefined
  readonly steps: ReadonlyArray<string>
  /** How often the server was started before it was ready. */
  readonly starts: number
}

/** What a cell may add to the common case. */
export interface Details {
  /** Keys of the declaration. */
  readonly declaration?: { readonly [key: string]: unknown }
  /** The start budget, ms, where the common one is too short for what a busy machine has to do. */
  readonly startMs?: number
  /** Options of the hostile server. */
  readonly options?: ReadonlyArray<string>
  /** No second call is open at the time of the fault. */
  readonly alone?: boolean
  /** Size of the argument of the struck call, bytes. */
  readonly argumentBytes?: number
  /** Traffic without measure: runs alone, and the memory of the host is watched. */
  readonly flood?: boolean
  /** What such a row may add to the memory in use at its height, bytes; the common limit when absent. */
  readonly memoryBytes?: number
  /** A sentence about what is wrong, or nothing. */
  readonly check?: (seen: Seen) => string | undefined
}

/** One row of the suite. */
export interface Row extends Details {
  readonly stage: Stage
  /** For people. */
  readonly name: string
  /** The server's word for it. */
  readonly fault: string
  /** Any of these is right; more than one only where the specification leaves it open. */
  readonly expected: ReadonlyArray<Expected>
}

/** A cell that cannot be. */
export interface Inapplicable {
  readonly stage: Stage
  readonly name: string
  readonly why: string
}

/** Longest times of the steps of a row, ms. */
export interface Bounds {
  readonly start: number
  /** What the row is about: the start, the call, the next call after an idle fault, or the end. */
  readonly outcome: number
  /** From the fault of an idle server to its end, or to its sign of life. */
  readonly idle: number
  /** The call after the outcome. */
  readonly next: number
  readonly close: number
}

const isTimeout = (expected: Expected): boolean => expected.kind !== "lives" && expected.reason.startsWith("timeout")

/** Whether the fault happens before the server is ready. */
export const strikesStart = ({ stage }: Row): boolean => stage !== "call" && stage !== "idle" && stage !== "close"

/** The deadlines of a row's declaration: a short one only where the row is to run into it. */
export const deadlinesOf = (row: Row): typeof LONG => {
  if (!row.expected.some(isTimeout)) return { ...LONG, startMs: row.startMs ?? LONG.startMs }
  return strikesStart(row) ? SHORT : { startMs: LONG.startMs, callMs: SHORT.callMs }
}

/** The bounds of a row. */
export const boundsOf = (row: Row): Bounds => {
  const { startMs, callMs } = deadlinesOf(row)
  const cleanup = GRACE_MS + CLEANUP_BOUND_MS
  // A failed start returns when its process is gone; a call only when its answer, its deadline or the end came.
  const start = startMs + cleanup + SLACK_MS
  const call = callMs + SLACK_MS
  const close = cleanup + SLACK_MS
  // The next call may have to wait until the dead generation is gone, and start a new one.
  const next = cleanup + startMs + callMs + SLACK_MS
  const outcome = strikesStart(row) ? start : row.stage === "call" ? call : row.stage === "idle" ? next : close
  return { start, outcome, idle: row.flood === true ? FLOOD_MS : SLACK_MS + SHORT.callMs, next, close }
}

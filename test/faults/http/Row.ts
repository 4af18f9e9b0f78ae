/** One cell of the fault table over HTTP: what goes wrong at which moment, and what must come of it in which time. */
import type { Code } from "../../../src/base/Codes.ts"
import type { HostileOptions, Script } from "./Hostile.ts"
import type { FaultName } from "./Faults.ts"
import type { Era, Step } from "./Step.ts"

/** Deadlines of a row's declaration, ms: short ones only where the row must run into them. */
export const SHORT = { startMs: 1_500, callMs: 800 }
export const LONG = { startMs: 15_000, callMs: 10_000 }
/** A delay that is longer than every short deadline, ms. */
export const TOO_LATE_MS = 3_000
/** What a busy machine may add to any bound, ms. */
export const SLACK_MS = 3_000
/** Longest time to close a connection whose server does not answer, ms (spec section 7: bound 4 s). */
export const CLOSE_MS = 4_000

/** A code of the catalogue, or `none` for success. */
export type Outcome = Code | "SIGIL_REDIRECT_REFUSED" | "none"

/** What must come of a row. */
export interface Expect {
  /** Any of these is right; more than one only where the specification leaves it open, or names no code yet. */
  readonly codes: ReadonlyArray<Outcome>
  /** Whether a later call on the same server succeeds without anybody's doing; `open`: either is right. */
  readonly connectionLives: boolean | "open"
  /** Longest time of what the row is about, ms: the start, the call, or the end. No measurement; over it is hung. */
  readonly bound: number
}

/** One row. */
export interface Row {
  readonly era: Era
  readonly step: Step
  readonly fault: FaultName
  readonly script: Script
  readonly options?: Partial<HostileOptions>
  /** Budgets of the declaration, ms. */
  readonly startMs: number
  readonly callMs: number
  readonly expect: Expect
}

/** A cell that cannot be. */
export interface Inapplicable {
  readonly era: Era
  readonly step: Step
  readonly fault: FaultName
  readonly why: string
}

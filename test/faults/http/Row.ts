/** One cell of the fault table over HTTP: what goes wrong at which moment, and what must come of it in which time. */
import type { Code } from "../../../src/base/Codes.ts"
import type { HostileOptions, Script } from "./Hostile.ts"
import type { FaultName } from "./Faults.ts"
import type { Era, Step } from "./Step.ts"

/** Deadlines of a row's declaration, ms: short ones only where the row must run into them. */
export const SHORT = { startMs: 2_500, callMs: 1_500 }
export const LONG = { startMs: 15_000, callMs: 10_000 }
/** A delay that is longer than every short deadline, ms. */
export const TOO_LATE_MS = 4_500
/** How long the first call of a row is open that a second one is struck beside, ms. */
export const HELD_MS = 300
/** What a busy machine may add to any bound, ms. */
export const SLACK_MS = 3_000
/** Longest time to close a connection whose server does not answer, ms (spec section 7: bound 4 s). */
export const CLOSE_MS = 4_000

/** Longest time to close a connection whose server does not answer the end of its session, ms. */
export const PARTING_MS = 2_000

/** A code of the catalogue, or `none` for success. */
export type Outcome = Code | "none"

/**
 * Who answers a later call, without anybody's doing: the same generation, a new one, or nobody. `down` servers are held
 * to another rule: they start when they are asked to once their fault is gone.
 */
export type Life = "same" | "anew" | "down"

/** What must come of a row. */
export interface Expect {
  /** Any of these is right; more than one only where it is a matter of luck, which the line of the table explains. */
  readonly codes: ReadonlyArray<Outcome>
  /** Any of these is right. */
  readonly connectionLives: ReadonlyArray<Life>
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
  /** Keys of the declaration. */
  readonly declaration?: { readonly [key: string]: unknown }
  /** Budgets of the declaration, ms. */
  readonly startMs: number
  readonly callMs: number
  /** How often one call may be sent: more than once only where it was provably not processed. */
  readonly sends: number
  /** The first call is open while the second one is struck. */
  readonly holds: boolean
  /** Traffic without measure: runs alone, and the memory of the process is watched. */
  readonly flood: boolean
  readonly expect: Expect
}

/** A cell that cannot be. */
export interface Inapplicable {
  readonly era: Era
  readonly step: Step
  readonly fault: FaultName
  readonly why: string
}

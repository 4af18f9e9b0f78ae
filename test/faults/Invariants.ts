/**
 * What must hold for every row, in one place. Each broken rule is one sentence.
 *
 * 1. Nothing hangs: every step settles within its computed bound, every call settles exactly once.
 * 2. The outcome, the first terminal cause and the call after it are what the table says.
 * 3. No answer and no progress reaches another request.
 * 4. The neighbour never notices.
 * 5. No process outlives the end, and the reports say so; a generation never has two servers at once.
 * 6. A flood costs a bounded amount of memory.
 */
import { MIB } from "../../src/base/Units.ts"
import type { Outcome, Tally } from "./Host.ts"
import type { Growth } from "./Memory.ts"
import { type Expected, type Row, type Seen, strikesStart } from "./Row.ts"

/** What a flood may add to the resident memory at its height, bytes. */
export const PEAK_LIMIT_BYTES = 64 * MIB
/** What may be left of it in the heap afterwards, bytes. */
export const KEPT_LIMIT_BYTES = 16 * MIB
/** Both without a collector that can be asked: a bound for runaway growth only. */
export const LOOSE_LIMIT_BYTES = 640 * MIB

/** Everything a row saw. */
export interface Facts {
  readonly outcome: Outcome
  /** The first terminal cause of the generation after the outcome; absent when it lives or never was. */
  readonly terminal: string | undefined
  /** Whether an idle server showed the end or the sign of life that its fault leads to. */
  readonly idleSettled: boolean
  /** The call that was open at the time of the fault. */
  readonly bystander: Outcome | undefined
  readonly next: Outcome | undefined
  readonly closed: "complete" | "incomplete" | "hang"
  readonly seen: Seen
  readonly survivors: ReadonlyArray<number>
  /** Servers that were there when another one of their generation was started. */
  readonly beside: ReadonlyArray<number>
  readonly tally: Tally
  readonly neighbour: Tally
  readonly memory: Growth | undefined
  readonly collected: boolean
}

/** An outcome in a few words. */
export const describeOutcome = (outcome: Outcome): string =>
  outcome.kind === "error" ? `${outcome.code}/${outcome.reason}` : outcome.kind

const describeExpected = (expected: Expected): string =>
  expected.kind === "lives"
    ? "success"
    : expected.kind === "breaks"
      ? `success, then ${expected.reason}`
      : `${expected.code}/${expected.reason}`

const isSuch = (outcome: Outcome, expected: { readonly code: string; readonly reason: string }): boolean =>
  outcome.kind === "error" && outcome.code === expected.code && outcome.reason === expected.reason

const hasReason = (outcome: Outcome | undefined, reason: string): boolean =>
  outcome?.kind === "error" && outcome.reason === reason

/** Whether the facts are what one expectation says; the first thing that is not. */
const misfit = (row: Row, facts: Facts, expected: Expected): string | undefined => {
  const { outcome, terminal, next, bystander, seen } = facts
  const start = strikesStart(row)
  const sameGeneration = next?.kind === "ok" && seen.generation !== undefined && next.generation === seen.generation
  if (expected.kind === "dies" && row.stage === "idle") {
    // A deadline can end only a call, so then the next call is what dies.
    const byCall = expected.reason.startsWith("timeout")
    if (byCall ? !isSuch(outcome, expected) : terminal !== expected.reason) {
      return `the idle connection came to ${terminal ?? "no end"}, the next call to ${describeOutcome(outcome)}`
    }
    if (byCall || hasReason(outcome, expected.reason)) return undefined
    return `the call after the end failed with ${describeOutcome(outcome)}`
  }
  if (expected.kind === "lives" || expected.kind === "breaks" ? outcome.kind !== "ok" : !isSuch(outcome, expected)) {
    return `the outcome is ${describeOutcome(outcome)}`
  }
  if (row.stage === "close") return undefined
  if (expected.kind === "lives" || expected.kind === "fails") {
    if (terminal !== undefined) return `the connection ended with ${terminal}`
    if (bystander !== undefined && bystander.kind !== "ok") return `the other call: ${describeOutcome(bystander)}`
    if (expected.kind === "fails" && start) {
      return next?.kind === "ok" || hasReason(next, expected.reason) ? undefined : "the next start failed otherwise"
    }
    return sameGeneration ? undefined : `the next call: ${next === undefined ? "none" : describeOutcome(next)}`
  }
  if (expected.kind === "breaks") {
    if (bystander !== undefined && bystander.kind !== "ok") return `the other call: ${describeOutcome(bystander)}`
  } else if (!start && terminal !== expected.reason) return `the terminal cause is ${terminal ?? "none"}`
  if (expected.kind === "dies" && bystander !== undefined && !hasReason(bystander, expected.reason)) {
    return `the other call ended with ${describeOutcome(bystander)}`
  }
  // A start that failed may be tried again; a server that was ready stays down with its first cause (restart = never).
  return (start && next?.kind === "ok") || hasReason(next, expected.reason)
    ? undefined
    : `the next call: ${next === undefined ? "none" : describeOutcome(next)}`
}

const outcomeProblem = (row: Row, facts: Facts): string | undefined => {
  const misfits = row.expected.map((expected) => misfit(row, facts, expected))
  if (misfits.includes(undefined)) return undefined
  return `expected ${row.expected.map(describeExpected).join(" or ")}: ${misfits[0]}`
}

const memoryProblems = (row: Row, facts: Facts): ReadonlyArray<string> => {
  const { memory, collected } = facts
  if (memory === undefined) return []
  const mib = (bytes: number): string => `${Math.round(bytes / MIB)} MiB`
  const peak = collected ? (row.memoryBytes ?? PEAK_LIMIT_BYTES) : LOOSE_LIMIT_BYTES
  const kept = collected ? KEPT_LIMIT_BYTES : LOOSE_LIMIT_BYTES
  return [
    ...(memory.rss > peak ? [`resident memory grew by ${mib(memory.rss)}, the limit is ${mib(peak)}`] : []),
    ...(memory.kept > kept ? [`${mib(memory.kept)} of heap were kept, the limit is ${mib(kept)}`] : [])
  ]
}

/** How many calls of a row were lost: opened and never settled. */
export const lostOf = ({ tally, neighbour }: Facts): number =>
  tally.opened - tally.settled + neighbour.opened - neighbour.settled

/** How many answers of a row reached another request. */
export const crossedOf = ({ tally, neighbour }: Facts): number => tally.crossed + neighbour.crossed

/** Whether any step of a row did not come to its end. */
export const hangs = (facts: Facts): boolean =>
  [facts.outcome, facts.bystander, facts.next].some((outcome) => outcome?.kind === "hang") || facts.closed === "hang"

/** Every broken rule of a row. */
export const broken = (row: Row, facts: Facts): ReadonlyArray<string> => {
  const outcome = outcomeProblem(row, facts)
  const special = outcome === undefined ? row.check?.(facts.seen) : undefined
  const { neighbour, survivors } = facts
  return [
    ...(hangs(facts) ? ["a step did not end within its bound"] : []),
    ...(row.stage === "idle" && !facts.idleSettled ? ["the idle fault had no end and no sign of life"] : []),
    ...(outcome === undefined ? [] : [outcome]),
    ...(special === undefined ? [] : [special]),
    ...(lostOf(facts) > 0 ? [`${lostOf(facts)} calls never settled`] : []),
    ...(crossedOf(facts) > 0 ? [`${crossedOf(facts)} answers reached another request`] : []),
    ...(neighbour.failed > 0 ? [`${neighbour.failed} calls of the neighbour failed`] : []),
    ...(neighbour.settled === 0 ? ["the neighbour had no call"] : []),
    ...(facts.beside.length > 0 ? [`started beside ${facts.beside.join(", ")}`] : []),
    ...(survivors.length > 0 ? [`processes survived: ${survivors.join(", ")}`] : []),
    ...(facts.closed === "incomplete" ? ["the cleanup was reported as incomplete"] : []),
    ...memoryProblems(row, facts)
  ]
}

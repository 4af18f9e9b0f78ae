/**
 * What must hold for every row over HTTP, in one place. Each broken rule is one sentence.
 *
 * 1. Nothing hangs: every step settles within its bound, every call settles exactly once.
 * 2. The outcome and who answers the next call are what the table says.
 * 3. No answer reaches another request, and no call is sent more often than the row allows.
 * 4. The neighbour never notices.
 * 5. Nothing arrives at the origin that a redirect names, and what sigil says of a failure holds nothing that the
 *    server wrote into bodies, headers or places of redirects, and no header of the entry.
 * 6. No connection is open after the end, and streams are not opened without end.
 * 7. A flood costs a bounded amount of memory.
 */
import { MIB } from "../../../src/base/Units.ts"
import type { Outcome, Tally } from "../Host.ts"
import { describeOutcome, KEPT_LIMIT_BYTES, LOOSE_LIMIT_BYTES, PEAK_LIMIT_BYTES } from "../Invariants.ts"
import type { Growth } from "../Memory.ts"
import type { FaultName } from "./Faults.ts"
import type { Life, Row } from "./Row.ts"

/** Streams for what the server has to say that may be opened in the time of one row. */
const MAX_STREAMS = 6

/** What the hostile server writes besides answers of MCP; none of it may be repeated. */
const written = [
  "doctype",
  "<h1>",
  "resource_metadata",
  "another-session",
  "two words",
  "ssss",
  "SSH-2.0",
  "no colon here",
  "none-such",
  "X-Flood",
  "{not json",
  "no gzip",
  "99999999999",
  "soon",
  "aaaa",
  "rel=preload",
  "storm",
  "/mcp"
]

/** Faults whose answers belong to nobody: ignored, and counted (spec section 7). */
const strays: ReadonlySet<FaultName> = new Set<FaultName>(["unknown ids", "unknown id alone", "duplicate", "crossed"])

/** Everything a row saw. */
export interface Facts {
  readonly outcome: Outcome
  /** The call after it, or the start once the server behaves again, after a start that failed. */
  readonly later: Outcome | undefined
  readonly life: Life | undefined
  /** The start that somebody asked for once the server behaves again; absent where nothing was down. */
  readonly recovered: Outcome | undefined
  /** Every outcome of the row. */
  readonly outcomes: ReadonlyArray<Outcome>
  readonly closed: "complete" | "incomplete" | "hang"
  /** Connections that are open after the end, at both servers. */
  readonly left: number
  readonly elsewhere: number
  /** How often each call was sent, most first. */
  readonly sends: ReadonlyArray<number>
  /** Messages that the generation of the last call counted as belonging to nothing. */
  readonly strays: number | undefined
  readonly streams: number
  /** Requests that ended a session. */
  readonly deletes: number
  readonly secret: string
  readonly tally: Tally
  readonly neighbour: Tally
  readonly memory: Growth | undefined
  readonly collected: boolean
}

const codeOf = (outcome: Outcome): string =>
  outcome.kind === "ok" ? "none" : outcome.kind === "error" ? outcome.code : "hang"

/** How many calls of a row were lost: opened and never settled. */
export const lostOf = ({ tally, neighbour }: Facts): number =>
  tally.opened - tally.settled + neighbour.opened - neighbour.settled

/** How many answers of a row reached another request. */
export const crossedOf = ({ tally, neighbour }: Facts): number => tally.crossed + neighbour.crossed

/** Whether any step of a row did not come to its end. */
export const hangs = (facts: Facts): boolean =>
  facts.outcomes.some(({ kind }) => kind === "hang") || facts.closed === "hang"

const memoryProblems = ({ memory, collected }: Facts): ReadonlyArray<string> => {
  if (memory === undefined) return []
  const mib = (bytes: number): string => `${Math.round(bytes / MIB)} MiB`
  // What the server costs, which lives in the same process, is in this.
  const peak = collected ? PEAK_LIMIT_BYTES : LOOSE_LIMIT_BYTES
  const kept = collected ? KEPT_LIMIT_BYTES : LOOSE_LIMIT_BYTES
  return [
    ...(memory.rss > peak ? [`resident memory grew by ${mib(memory.rss)}, the limit is ${mib(peak)}`] : []),
    ...(memory.kept > kept ? [`${mib(memory.kept)} of heap were kept, the limit is ${mib(kept)}`] : [])
  ]
}

/** The first thing that a failure repeats and must not. */
const repeated = ({ outcomes, secret }: Facts): string | undefined => {
  for (const outcome of outcomes) {
    if (outcome.kind !== "error") continue
    const said = JSON.stringify([outcome.text, outcome.details])
    const word = [...written, secret].find((one) => said.includes(one))
    if (word !== undefined) return `a failure repeats '${word}' of the server: ${outcome.text}`
    if (outcome.code === "defect") return `a defect: ${outcome.text}`
  }
  return undefined
}

/** Every broken rule of a row. */
export const broken = (row: Row, facts: Facts): ReadonlyArray<string> => {
  const { expect } = row
  const { later, life, neighbour, outcome, recovered } = facts
  const said = repeated(facts)
  const lost = lostOf(facts)
  return [
    ...(hangs(facts) ? ["a step did not end within its bound"] : []),
    ...(expect.codes.some((code) => code === codeOf(outcome))
      ? []
      : [`the outcome is ${describeOutcome(outcome)}, expected ${expect.codes.join(" or ")}`]),
    ...(life === undefined || expect.connectionLives.includes(life)
      ? []
      : [
          `the next call: ${life} (${later === undefined ? "none" : describeOutcome(later)}), expected ${expect.connectionLives.join(" or ")}`
        ]),
    ...(recovered === undefined || recovered.kind === "ok"
      ? []
      : [`it does not start once the fault is gone: ${describeOutcome(recovered)}`]),
    ...(lost > 0 ? [`${lost} calls never settled`] : []),
    ...(crossedOf(facts) > 0 ? [`${crossedOf(facts)} answers reached another request`] : []),
    ...((facts.sends[0] ?? 0) > row.sends ? [`a call was sent ${facts.sends[0]} times`] : []),
    ...(neighbour.failed > 0 ? [`${neighbour.failed} calls of the neighbour failed`] : []),
    ...(neighbour.settled === 0 ? ["the neighbour had no call"] : []),
    ...(facts.elsewhere > 0 ? ["something arrived at the other origin"] : []),
    ...(said === undefined ? [] : [said]),
    ...(facts.left > 0 ? [`${facts.left} connections are open after the end`] : []),
    ...(strays.has(row.fault) && facts.strays === 0 ? ["nobody counted the answers that belong to nobody"] : []),
    ...(facts.streams > MAX_STREAMS ? [`the stream was opened ${facts.streams} times`] : []),
    ...(row.step === "delete" && facts.deletes !== 1 ? [`the session was ended ${facts.deletes} times`] : []),
    ...(facts.closed === "incomplete" ? ["the cleanup was reported as incomplete"] : []),
    ...memoryProblems(facts)
  ]
}

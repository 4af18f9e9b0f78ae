/**
 * Runs one row of the table over HTTP through the whole of sigil, beside a good neighbour, and judges it.
 *
 * The order is always the same: start, the struck call, the next call, a start once the fault is gone where the server
 * is down, the end. A step that does not settle within its bound is a `hang` and the row goes on.
 */
import type { Outcome } from "../Host.ts"
import { within } from "../Host.ts"
import { watchMemory } from "../Memory.ts"
import { type Host, open } from "./Host.ts"
import { broken, type Facts } from "./Invariants.ts"
import { CLOSE_MS, type Life, PARTING_MS, type Row, SLACK_MS } from "./Row.ts"
import { strikesStart } from "./Table.ts"

/** Waits between the attempts of a server that is started again by itself, ms (five of them, spec section 7). */
const RESTARTS_MS = 10_000

/** What a row came to. */
export interface Result {
  readonly row: Row
  readonly facts: Facts
  readonly broken: ReadonlyArray<string>
  /** Time of what the row is about, ms. */
  readonly ms: number
}

/** What the steps before the end came to. */
interface Course {
  readonly outcome: Outcome
  readonly ms: number
  readonly later?: Outcome
  readonly life?: Life
  readonly recovered?: Outcome
  /** A request that failed was still open at the server some time later. */
  readonly lingers?: boolean
  /** Outcomes of the steps that must go well. */
  readonly others: ReadonlyArray<Outcome>
}

const timed = async (step: Promise<Outcome>): Promise<{ readonly outcome: Outcome; readonly ms: number }> => {
  const begun = performance.now()
  const outcome = await step
  return { outcome, ms: performance.now() - begun }
}

const lifeOf = (before: Outcome, later: Outcome): Life => {
  if (later.kind !== "ok") return "down"
  return before.kind === "ok" && before.generation === later.generation ? "same" : "anew"
}

/** The server behaves again and listens; a start that is asked for must succeed now. */
const recover = async (row: Row, host: Host): Promise<Outcome> => {
  host.server.become({})
  if (!host.server.isListening()) await host.server.restart()
  const started = await host.start(row.startMs + SLACK_MS)
  return started.kind === "ok" ? host.call(row.callMs + SLACK_MS) : started
}

const course = async (row: Row, host: Host): Promise<Course> => {
  const { bound } = row.expect
  const callBound = row.callMs + SLACK_MS
  const laterBound = RESTARTS_MS + row.startMs + callBound
  if (strikesStart(row.step)) {
    const { outcome, ms } = await timed(host.start(bound))
    if (outcome.kind !== "ok") return { outcome, ms, recovered: await recover(row, host), others: [] }
    const later = await host.call(laterBound)
    return { outcome, ms, later, life: lifeOf(outcome, later), others: [] }
  }
  const started = await host.start(row.startMs + SLACK_MS)
  if (started.kind !== "ok") return { outcome: started, ms: 0, others: [] }
  if (row.step === "stream") await within(SLACK_MS, host.server.arrived("stream"))
  const others: Array<Outcome> = []
  let held: Promise<Outcome> | undefined
  if (row.step === "next") {
    const first = host.call(callBound)
    if (row.holds) {
      await within(callBound, host.server.arrived("call"))
      held = first
    } else others.push(await first)
  }
  const { outcome, ms } = await timed(host.call(bound))
  if (held !== undefined) others.push(await held)
  // Whatever was given up has given up its connection, too.
  const lingers = outcome.kind === "error" && (await within(SLACK_MS, host.server.quiet())) === "hang"
  if (row.step === "delete") return { outcome, ms, others, lingers }
  const later = await host.call(laterBound)
  const life = lifeOf(started, later)
  return {
    outcome,
    ms,
    later,
    life,
    others,
    lingers,
    ...(life === "down" ? { recovered: await recover(row, host) } : {})
  }
}

/** Runs one row. */
export const runRow = async (row: Row): Promise<Result> => {
  const host = await open(row)
  const endWatch = row.flood ? await watchMemory() : undefined
  const passed = await course(row, host)
  const begun = performance.now()
  const closed = await host.close((row.step === "delete" ? PARTING_MS : CLOSE_MS) + SLACK_MS)
  const closeMs = performance.now() - begun
  await within(SLACK_MS, Promise.all([host.server.idle(), host.neighbourServer.idle()]))
  const left = host.server.connections().open + host.neighbourServer.connections().open
  const memory = await endWatch?.()
  await host.remove()
  const { outcome, later, recovered } = passed
  const count = (step: string): number => host.server.seen.filter((one) => one.step === step).length
  const facts: Facts = {
    outcome,
    later,
    life: passed.life,
    recovered,
    outcomes: [outcome, later, recovered, ...passed.others].filter((one) => one !== undefined),
    closed,
    left,
    elsewhere: host.server.elsewhere.seen.length,
    sends: host.sends(),
    strays: later?.kind === "ok" ? later.generation?.connection.oddities.strayMessages : undefined,
    streams: count("stream"),
    deletes: count("delete"),
    secret: host.secret,
    tally: host.tally,
    neighbour: host.neighbour,
    memory,
    collected: "gc" in globalThis
  }
  const spoilt = passed.others.find(({ kind }) => kind !== "ok")
  return {
    row,
    facts,
    broken: [
      ...broken(row, facts),
      ...(passed.lingers === true ? ["the connection of the failed request stays open"] : []),
      ...(spoilt === undefined
        ? []
        : [`a call beside it failed: ${JSON.stringify({ ...spoilt, generation: undefined })}`])
    ],
    ms: row.step === "delete" ? closeMs : passed.ms
  }
}

/** Runs rows, a few at a time, and hands each result on when it is there. */
export const runRows = async (
  rows: ReadonlyArray<Row>,
  atATime: number,
  onResult: (result: Result) => void
): Promise<void> => {
  let at = 0
  const worker = async (): Promise<void> => {
    for (let row = rows[at++]; row !== undefined; row = rows[at++]) onResult(await runRow(row))
  }
  await Promise.all(Array.from({ length: atATime }, worker))
}

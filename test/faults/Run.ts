/**
 * Runs one row of the table through the whole of sigil, beside a good neighbour, and judges it.
 *
 * The order is always the same: start, the held call, the struck call (or the idle fault), the next call, the end.
 * A step that does not settle within its bound is a `hang` and the row goes on, so a row always comes to an end.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { Generation } from "../../src/server/Generation.ts"
import { type Host, open, type Outcome, within } from "./Host.ts"
import { broken, type Facts } from "./Invariants.ts"
import { watchMemory } from "./Memory.ts"
import { type Bounds, boundsOf, BYSTANDER_MS, type Row, type Seen, SLACK_MS, strikesStart } from "./Row.ts"
import { endAll, survivorsOf } from "./Survivors.ts"

/** What a row came to. */
export interface Result {
  readonly row: Row
  readonly facts: Facts
  readonly broken: ReadonlyArray<string>
  /** Time of what the row is about, ms, and its bound. */
  readonly ms: number
  readonly boundMs: number
}

/** What the steps before the end came to. */
interface Course {
  readonly outcome: Outcome
  readonly ms: number
  readonly generation?: Generation
  readonly terminal?: string | undefined
  readonly bystander?: Outcome
  readonly next?: Outcome
  readonly idleSettled?: boolean
  readonly notes?: Seen["notes"]
}

/** An outcome with its time. */
const timed = async (step: Promise<Outcome>): Promise<{ readonly outcome: Outcome; readonly ms: number }> => {
  const begun = performance.now()
  const outcome = await step
  return { outcome, ms: performance.now() - begun }
}

const reasonOf = (generation: Generation): string | undefined => generation.connection.terminal()?.end.reason

/** A wait for a word of the server that the end of its connection cuts short; whether either came in time. */
const heard = async (host: Host, kind: "held" | "done", generation: Generation, boundMs: number): Promise<boolean> => {
  const stop = new AbortController()
  const ended = Effect.runPromise(Deferred.await(generation.connection.ended))
  const came = await within(boundMs, Promise.race([host.report.until(kind, stop.signal), ended]))
  stop.abort()
  return came !== "hang"
}

const duringStart = async (host: Host, bounds: Bounds): Promise<Course> => {
  const { outcome, ms } = await timed(host.start(bounds.outcome))
  const generation = outcome.kind === "ok" ? outcome.generation : undefined
  const next = await host.call("echo", { boundMs: bounds.next + bounds.outcome })
  return { outcome, ms, next, ...(generation === undefined ? {} : { generation, terminal: reasonOf(generation) }) }
}

const duringCall = async (row: Row, host: Host, bounds: Bounds, generation: Generation): Promise<Course> => {
  const notes: Array<Seen["notes"][number]> = []
  const open = row.alone === true ? undefined : host.call("hold", { boundMs: BYSTANDER_MS, timeoutMs: BYSTANDER_MS })
  if (open !== undefined) await heard(host, "held", generation, bounds.outcome)
  const { outcome, ms } = await timed(
    host.call("target", {
      boundMs: bounds.outcome,
      ...(row.argumentBytes === undefined ? {} : { argumentBytes: row.argumentBytes }),
      onProgress: (note) => notes.push(note)
    })
  )
  // Read before the next call, which could replace the generation or end it.
  const terminal = reasonOf(generation)
  const next = await host.call("echo", { boundMs: bounds.next })
  // By now it has been answered or has ended with its connection; its own deadline is far away.
  const waited = open === undefined ? undefined : await within(SLACK_MS, open)
  const bystander: Outcome | undefined = waited === "hang" ? { kind: "hang" } : waited
  return { outcome, ms, generation, terminal, next, notes, ...(bystander === undefined ? {} : { bystander }) }
}

const whenIdle = async (host: Host, bounds: Bounds, generation: Generation): Promise<Course> => {
  const good = await host.call("target", { boundMs: bounds.outcome })
  if (good.kind !== "ok") return { outcome: good, ms: 0, generation, idleSettled: false }
  const idleSettled = await heard(host, "done", generation, bounds.idle)
  const { outcome, ms } = await timed(host.call("echo", { boundMs: bounds.outcome }))
  const terminal = reasonOf(generation)
  const next = await host.call("echo", { boundMs: bounds.next })
  return { outcome, ms, generation, terminal, next, idleSettled }
}

const course = async (row: Row, host: Host, bounds: Bounds): Promise<Course> => {
  if (strikesStart(row)) return duringStart(host, bounds)
  const { outcome, ms } = await timed(host.start(bounds.start))
  if (outcome.kind !== "ok" || outcome.generation === undefined) return { outcome, ms }
  if (row.stage === "call") return duringCall(row, host, bounds, outcome.generation)
  if (row.stage === "idle") return whenIdle(host, bounds, outcome.generation)
  return { ...(await timed(host.call("echo", { boundMs: bounds.outcome }))), generation: outcome.generation }
}

/** Runs one row; `server` is the path of the hostile server. */
export const runRow = async (row: Row, server: string): Promise<Result> => {
  const bounds = boundsOf(row)
  const host = await open(row, server)
  // The first sample is of a runtime that stands and a neighbour that answers.
  const endWatch = row.flood === true ? await watchMemory() : undefined
  const passed = await course(row, host, bounds)
  const begun = performance.now()
  const reports = await host.close(bounds.close)
  const closeMs = performance.now() - begun
  const memory = await endWatch?.()
  const told = host.report.facts()
  const survivors = survivorsOf(host.row, told)
  endAll(survivors)
  host.remove()
  const ended = reports === "hang" ? undefined : reports.find(({ server: name }) => name === "hostile")
  const facts: Facts = {
    outcome: passed.outcome,
    terminal: passed.terminal,
    idleSettled: passed.idleSettled ?? true,
    bystander: passed.bystander,
    next: passed.next,
    closed: reports === "hang" ? "hang" : reports.every(({ report }) => report.complete) ? "complete" : "incomplete",
    seen: {
      generation: passed.generation,
      notes: passed.notes ?? [],
      failure: passed.outcome.kind === "error" ? passed.outcome : undefined,
      steps: ended?.report.steps ?? [],
      starts: told.filter(({ generation }) => generation !== undefined && generation === told[0]?.generation).length
    },
    survivors,
    beside: told.flatMap(({ beside }) => (beside === undefined ? [] : [beside])),
    tally: host.tally,
    neighbour: host.neighbour,
    memory,
    collected: "gc" in globalThis
  }
  return {
    row,
    facts,
    broken: broken(row, facts),
    ms: row.stage === "close" ? closeMs : passed.ms,
    boundMs: row.stage === "close" ? bounds.close : bounds.outcome
  }
}

/** Runs rows, a few at a time, and hands each result on when it is there. */
export const runRows = async (
  rows: ReadonlyArray<Row>,
  server: string,
  atATime: number,
  onResult: (result: Result) => void
): Promise<void> => {
  let at = 0
  const worker = async (): Promise<void> => {
    for (let row = rows[at++]; row !== undefined; row = rows[at++]) onResult(await runRow(row, server))
  }
  await Promise.all(Array.from({ length: atATime }, worker))
}

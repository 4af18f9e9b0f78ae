/**
 * The fault table over HTTP as text, for `npm run faults`.
 *
 * Rows run a few at a time; those that flood run alone afterwards, with the collector asked before and after, because
 * only then a figure of memory belongs to one row. What is left in the process is looked for once all is closed.
 */
import { inOrder } from "../InOrder.ts"
import { setImmediate as nextTurn } from "node:timers/promises"
import { MIB } from "../../../src/base/Units.ts"
import { describeOutcome, KEPT_LIMIT_BYTES, PEAK_LIMIT_BYTES } from "../Invariants.ts"
import { crossedOf, hangs, lostOf } from "./Invariants.ts"
import type { Row } from "./Row.ts"
import { type Result, runRows } from "./Run.ts"
import { inapplicable, rows } from "./Table.ts"

/** Rows that run side by side. */
const AT_A_TIME = 8
/** Time in which what was closed last has to be gone, ms. */
const SETTLE_MS = 5_000
const widths = [12, 7, 28, 46, 8, 8, 6, 9, 14, 0]

const print = (cells: ReadonlyArray<string>): void => {
  const line = cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" ")
  process.stdout.write(`${line.trimEnd()}\n`)
}
const mib = (bytes: number): string => (bytes / MIB).toFixed(0)

const printResult = ({ row, facts, broken, ms }: Result): void =>
  print([
    row.step,
    row.era,
    row.fault,
    describeOutcome(facts.outcome),
    ms.toFixed(0),
    facts.life ?? "",
    String(facts.sends[0] ?? 0),
    `${facts.neighbour.settled - facts.neighbour.failed}/${facts.neighbour.failed}`,
    facts.memory === undefined ? "" : `${mib(facts.memory.rss)} / ${mib(facts.memory.kept)}`,
    broken.length === 0 ? "ok" : `BROKEN: ${broken.join("; ")}`
  ])

/** What keeps the process alive, of the kinds that sigil and its sockets have, without what was there before. */
const handlesBesides = (before: ReadonlyArray<string>): ReadonlyArray<string> => {
  const rest = [...before]
  return process.getActiveResourcesInfo().filter((kind) => {
    const at = rest.indexOf(kind)
    if (at >= 0) rest.splice(at, 1)
    return at < 0 && /^(TCP|TLS|Timeout|GetAddrInfo|FSReq)/.test(kind)
  })
}

/** What is left besides `before` once everything had time to go. */
export const leftBesides = async (before: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const end = performance.now() + SETTLE_MS
  while (handlesBesides(before).length > 0 && performance.now() < end) await nextTurn()
  return handlesBesides(before)
}

/** Prints the rows whose fault or moment holds the word, or all; whether every invariant held. */
export const overHttp = async (word: string | undefined): Promise<boolean> => {
  const chosen = rows.filter(
    ({ fault, step }) => word === undefined || word === "http" || fault.includes(word) || step === word
  )
  const before = process.getActiveResourcesInfo()
  const results: Array<Result> = []
  /** Counts each, and prints it when its turn in the table has come. */
  const told = (of: ReadonlyArray<Row>): ((result: Result) => void) => {
    const print = inOrder(of, printResult)
    return (result) => {
      results.push(result)
      print(result)
    }
  }
  process.stdout.write(
    `\nOver HTTP. A flood may add ${mib(PEAK_LIMIT_BYTES)} MiB of resident memory at its height, the server's share ` +
      `included, and leave ${mib(KEPT_LIMIT_BYTES)} MiB in the heap.\n`
  )
  print(["moment", "era", "fault", "outcome", "ms", "then", "sent", "neighbour", "MiB rss/kept", ""])
  const [calm, floods] = [chosen.filter(({ flood }) => !flood), chosen.filter(({ flood }) => flood)]
  await runRows(calm, AT_A_TIME, told(calm))
  await runRows(floods, 1, told(floods))
  const left = await leftBesides(before)

  if (word === undefined) {
    process.stdout.write("\nNot applicable:\n")
    for (const name of new Set(inapplicable.map(({ fault }) => fault))) {
      const moments = new Set(inapplicable.filter(({ fault }) => fault === name).map(({ step }) => step))
      process.stdout.write(`  ${name}: ${[...moments].join(", ")}\n`)
    }
  }
  const sum = (count: (result: Result) => number): number => results.reduce((total, result) => total + count(result), 0)
  const failed = results.filter(({ broken }) => broken.length > 0)
  process.stdout.write(
    `\n${results.length} rows, ${sum(({ facts }) => (hangs(facts) ? 1 : 0))} hangs, ` +
      `${sum(({ facts }) => facts.left)} connections and ${left.length} handles left, ` +
      `${sum(({ facts }) => lostOf(facts))} lost and ${sum(({ facts }) => crossedOf(facts))} crossed answers, ` +
      `${sum(({ facts }) => facts.elsewhere)} requests at another origin, ` +
      `${sum(({ facts }) => facts.neighbour.settled)} calls of neighbours, ` +
      `${sum(({ facts }) => facts.neighbour.failed)} of them failed; ${failed.length} rows broken\n`
  )
  for (const { row, broken } of failed)
    process.stdout.write(`  ${row.step} (${row.era}): ${row.fault}: ${broken.join("; ")}\n`)
  return failed.length === 0 && left.length === 0
}

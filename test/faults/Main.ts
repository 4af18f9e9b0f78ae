/**
 * `npm run faults`: the fault tables as text. usage: faults [WORD]   (only rows whose name or stage holds WORD; `http`
 * for the table over HTTP alone)
 *
 * Rows run a few at a time; those that flood run alone afterwards, with the collector asked before and after, because
 * only then a figure of memory belongs to one row. Exit 1 when an invariant is broken.
 */
import { inOrder } from "./InOrder.ts"
import { fileURLToPath } from "node:url"
import { MIB } from "../../src/base/Units.ts"
import { overHttp } from "./http/Overview.ts"
import { crossedOf, describeOutcome, hangs, KEPT_LIMIT_BYTES, lostOf, PEAK_LIMIT_BYTES } from "./Invariants.ts"
import { type Result, runRows } from "./Run.ts"
import type { Row } from "./Row.ts"
import { inapplicable, rows } from "./Table.ts"

/** Rows that run side by side. */
const AT_A_TIME = 4
const widths = [10, 52, 48, 8, 8, 10, 10, 14, 0]

const server = fileURLToPath(new URL("../servers/hostile.mjs", import.meta.url))
const print = (cells: ReadonlyArray<string>): void => {
  process.stdout.write(
    `${cells
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join(" ")
      .trimEnd()}\n`
  )
}
const mib = (bytes: number): string => (bytes / MIB).toFixed(0)

/** The outcome for people: of an idle row also what became of the connection. */
const shown = ({ row, facts }: Result): string => {
  if (row.stage === "close") return facts.seen.steps.join(" ") || "complete"
  const text = describeOutcome(facts.outcome)
  return row.stage === "idle" && facts.terminal !== undefined ? `${facts.terminal}, next ${text}` : text
}

const printResult = (result: Result): void => {
  const { row, facts } = result
  print([
    row.stage,
    row.name,
    shown(result),
    result.ms.toFixed(0),
    String(result.boundMs),
    String(facts.survivors.length),
    `${facts.neighbour.settled - facts.neighbour.failed}/${facts.neighbour.failed}`,
    facts.memory === undefined ? "" : `${mib(facts.memory.rss)} / ${mib(facts.memory.kept)}`,
    result.broken.length === 0 ? "ok" : `BROKEN: ${result.broken.join("; ")}`
  ])
}

const main = async (): Promise<number> => {
  const word = process.argv[2]
  const chosen = rows.filter(({ name, stage }) => word === undefined || name.includes(word) || stage === word)
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
    `Bounds in ms. A flood may add ${mib(PEAK_LIMIT_BYTES)} MiB of resident memory at its height (a list over its limit ` +
      `more) and leave ${mib(KEPT_LIMIT_BYTES)} MiB in the heap.\n`
  )
  print(["stage", "fault", "outcome", "ms", "bound", "survivors", "neighbour", "MiB rss/kept", ""])
  const [calm, floods] = [chosen.filter((row) => row.flood !== true), chosen.filter((row) => row.flood === true)]
  await runRows(calm, server, AT_A_TIME, told(calm))
  await runRows(floods, server, 1, told(floods))

  if (word === undefined) {
    process.stdout.write("\nNot applicable:\n")
    for (const name of new Set(inapplicable.map((cell) => cell.name))) {
      const cells = inapplicable.filter((cell) => cell.name === name)
      process.stdout.write(`  ${name}: ${cells.map(({ stage }) => stage).join(", ")} (${cells[0]?.why})\n`)
    }
  }
  const sum = (count: (result: Result) => number): number => results.reduce((total, result) => total + count(result), 0)
  const failed = results.filter((result) => result.broken.length > 0)
  process.stdout.write(
    `\n${results.length} rows, ${sum(({ facts }) => (hangs(facts) ? 1 : 0))} hangs, ` +
      `${sum(({ facts }) => facts.survivors.length)} survivors, ${sum(({ facts }) => lostOf(facts))} lost and ` +
      `${sum(({ facts }) => crossedOf(facts))} crossed answers, ` +
      `${sum(({ facts }) => facts.neighbour.settled)} calls of neighbours, ` +
      `${sum(({ facts }) => facts.neighbour.failed)} of them failed; ${failed.length} rows broken\n`
  )
  for (const { row, broken } of failed) process.stdout.write(`  ${row.stage}: ${row.name}: ${broken.join("; ")}\n`)
  return failed.length === 0 ? 0 : 1
}

// What a hang left open would hold the process for ever.
const overStdio = process.argv[2] === "http" ? 0 : await main()
process.exit((await overHttp(process.argv[2])) ? overStdio : 1)

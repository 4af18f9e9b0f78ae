/**
 * Rows of the fault table over HTTP hold every invariant. The rules are in `Invariants.ts`, the rows in `Table.ts`.
 *
 * Every fault strikes every moment here, but only in one of the two eras where both have the same line; `npm run
 * faults` runs the other half as well. Rows run side by side, so the memory of a flood is only bounded loosely here;
 * `npm run faults` measures it.
 */
import { assert, beforeAll, describe, it } from "vitest"
import { leftBesides } from "./Overview.ts"
import type { Row } from "./Row.ts"
import { type Result, runRows } from "./Run.ts"
import { rows as allRows } from "./Table.ts"

/** Longest time of the whole table, ms: rows that hang at every step still end, and say so, before this. */
const TIMEOUT_MS = 600_000
/** Rows that run side by side. */
const AT_A_TIME = 10
/** The rows of one era, which changes from fault to fault, and those that only the other one has. */
const half = (all: ReadonlyArray<Row>): ReadonlyArray<Row> => {
  const names = [...new Set(all.map(({ fault }) => fault))]
  const keyOf = ({ fault, step, script, declaration }: Row): string =>
    JSON.stringify([fault, step, script, declaration])
  const isPreferred = ({ era, fault }: Row): boolean => (names.indexOf(fault) % 2 === 0) === (era === "legacy")
  const preferred = new Set(all.filter(isPreferred).map(keyOf))
  return all.filter((row) => isPreferred(row) || !preferred.has(keyOf(row)))
}

const rows = half(allRows)

describe("a server over HTTP that does wrong", () => {
  const results = new Map<Row, Result>()
  let before: ReadonlyArray<string> = []
  beforeAll(async () => {
    before = process.getActiveResourcesInfo()
    await runRows(rows, AT_A_TIME, (result) => results.set(result.row, result))
  }, TIMEOUT_MS)

  for (const row of rows)
    it(`${row.step} (${row.era}): ${row.fault}`, () => {
      const broken = results.get(row)?.broken ?? ["it did not run"]
      if (broken.length > 0) assert.fail(broken.join("; "))
    })

  it("leaves no connection and no timer in the process", async () => {
    assert.deepEqual(await leftBesides(before), [])
  })
})

/**
 * Every row of the fault table holds every invariant. The rules are in `Invariants.ts`, the rows in `Table.ts`.
 *
 * Rows run side by side, so the memory of a flood is only bounded loosely here; `npm run faults` measures it.
 */
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { runRow } from "./Run.ts"
import { rows } from "./Table.ts"

/** A row that hangs at every step still ends, and says so, before this. */
const TIMEOUT_MS = 120_000
const server = fileURLToPath(new URL("servers/hostile.mjs", import.meta.url))

describe.concurrent("a server that does wrong", () => {
  for (const row of rows)
    it(`${row.stage}: ${row.name}`, { timeout: TIMEOUT_MS }, async () => {
      const { broken } = await runRow(row, server)
      if (broken.length > 0) assert.fail(broken.join("; "))
    })
})

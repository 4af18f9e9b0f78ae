/** When a request that failed on its way may be sent again, as a table. */
import { assert, describe, it } from "vitest"
import { delayBefore, type Repeatable } from "../../src/server/Retries.ts"
import { ConnectionError } from "../../src/server/ServerError.ts"

const failed = (details: { readonly [key: string]: unknown }) =>
  new ConnectionError({ code: "SIGIL_CONNECTION_LOST", reason: "x", text: "x", details })
const request = (method: string, more: Partial<Repeatable> = {}): Repeatable => ({
  method,
  idempotent: false,
  retries: 2,
  written: false,
  ...more
})

describe("a failed request", () => {
  const no = { delivered: "no" }
  const unknown = { delivered: "unknown" }
  const table: ReadonlyArray<
    readonly [what: string, details: object, request: Repeatable, made: number, again: boolean]
  > = [
    ["a list that may have arrived", unknown, request("tools/list"), 1, true],
    ["a list for the third time", unknown, request("tools/list"), 3, false],
    ["a list of an entry with retries = 0", unknown, request("tools/list", { retries: 0 }), 1, false],
    ["a call that may have arrived", unknown, request("tools/call", { written: true }), 1, false],
    ["a call that did not arrive, by default", no, request("tools/call"), 1, false],
    ["a call that did not arrive, with retries in the entry", no, request("tools/call", { written: true }), 1, true],
    ["an idempotent call", unknown, request("tools/call", { written: true, idempotent: true }), 1, true],
    ["an idempotent call by default", unknown, request("tools/call", { idempotent: true }), 1, false],
    ["what the connection took with it", {}, request("tools/list"), 1, false],
    ["a list that was answered with 404", { ...no, http_status: 404 }, request("tools/list"), 1, false],
    ["a list that was answered with 401", { ...no, http_status: 401 }, request("tools/list"), 1, false],
    ["a list that was answered with 429", { ...no, http_status: 429 }, request("tools/list"), 1, true],
    ["a list that was answered with 503", { ...unknown, http_status: 503 }, request("tools/list"), 1, true],
    [
      "a call that was answered with 503",
      { ...unknown, http_status: 503 },
      request("tools/call", { written: true }),
      1,
      false
    ],
    ["a start that a person waits for", { ...no, http_status: 429 }, request("initialize"), 1, false],
    ["a start of an entry that says so", no, request("initialize", { written: true }), 1, true],
    ["the question about the era", unknown, request("server/discover"), 1, false],
    ["an update of a task", unknown, request("tasks/update", { written: true }), 1, false]
  ]
  for (const [what, details, given, made, again] of table)
    it(`${what} is ${again ? "" : "not "}sent again`, () =>
      assert.equal(delayBefore(failed({ ...details }), given, made, 0.5) !== undefined, again))

  it("waits longer each time, spread, never shorter than the server asks", () => {
    const list = request("tools/list", { retries: 10 })
    const wait = (made: number, jitter: number, more: object = {}) =>
      delayBefore(failed({ delivered: "unknown", ...more }), list, made, jitter)
    assert.deepEqual(
      [1, 2, 3, 7].map((made) => wait(made, 0.5)),
      [1_000, 2_000, 4_000, 30_000]
    )
    assert.deepEqual([wait(1, 0), wait(1, 1)], [850, 1_150])
    assert.equal(wait(1, 0.5, { retry_after_ms: 5_000 }), 5_000)
    assert.equal(wait(1, 0.5, { retry_after_ms: 10 }), 1_000)
  })
})

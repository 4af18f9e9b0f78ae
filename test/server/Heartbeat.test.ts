/** A long connection is asked every half minute; any answer is a sign of life, none is the end. */
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
import { assert, describe } from "vitest"
import * as Heartbeat from "../../src/server/Heartbeat.ts"
import { connect, settle, silent } from "../support/Wires.ts"

describe("a heartbeat", () => {
  for (const [what, answer] of [
    ["an answer", { result: {} }],
    ["an error", { error: { code: -32601, message: "Method not found" } }]
  ] as const)
    it.scoped(`goes on after ${what}`, () =>
      Effect.gen(function* () {
        const { link, received, server } = silent()
        const connection = yield* connect(server)
        yield* Heartbeat.start(connection)
        for (let beat = 1; beat <= 3; beat += 1) {
          yield* settle
          yield* TestClock.adjust(Heartbeat.INTERVAL_MS)
          yield* settle
          assert.equal(received.filter(({ method }) => method === "ping").length, beat)
          link().send({ jsonrpc: "2.0", id: received.at(-1)?.id ?? 0, ...answer })
          yield* settle
        }
        assert.isUndefined(connection.terminal())
      })
    )

  it.scoped("ends a connection that is silent", () =>
    Effect.gen(function* () {
      const { server } = silent()
      const connection = yield* connect(server)
      yield* Heartbeat.start(connection)
      yield* settle
      yield* TestClock.adjust("50 seconds")
      yield* settle
      assert.equal(connection.terminal()?.end.reason, "heartbeat_lost")
    })
  )
})

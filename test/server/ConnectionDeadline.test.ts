/** What a deadline, total or idle, costs: the call, or the connection with it. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import { connect, request, settle, silent } from "../support/Wires.ts"

describe("a deadline of a connection", () => {
  it.scoped("on a deadline cancels, closes, and tells the other waiters which call it was", () =>
    Effect.gen(function* () {
      const { server, received } = silent()
      const connection = yield* connect(server)
      const late = yield* Effect.fork(
        Effect.flip(connection.request("tools/call", {}, request("tools/call slow", 100)))
      )
      const other = yield* Effect.fork(Effect.flip(connection.request("tools/call", {}, request("tools/call other"))))
      yield* settle
      yield* TestClock.adjust(100)
      const timeout = yield* Fiber.join(late)
      assert.equal(timeout.code, "SIGIL_CALL_TIMEOUT")
      assert.include(timeout.fix, "tool_timeout_secs")
      const lost = yield* Fiber.join(other)
      assert.equal(lost.code, "SIGIL_CONNECTION_LOST")
      assert.include(lost.text, "tools/call slow")
      yield* settle
      assert.equal(received.filter(({ method }) => method === "notifications/cancelled").length, 1)
      const after = yield* Effect.flip(connection.request("x", {}, request("x")))
      assert.equal(after.reason, "timeout")
    })
  )

  it.scoped("keeps the connection after a deadline when told to", () =>
    Effect.gen(function* () {
      const { server, link } = silent()
      const connection = yield* connect(server, { onTimeout: "keep" })
      const late = yield* Effect.fork(Effect.flip(connection.request("slow", {}, request("slow", 100))))
      yield* settle
      yield* TestClock.adjust(100)
      yield* Fiber.join(late)
      assert.isUndefined(connection.terminal())
      const next = yield* Effect.fork(connection.request("next", {}, request("next")))
      yield* settle
      link().send({ jsonrpc: "2.0", id: 2, result: { ok: true } })
      assert.deepEqual(yield* Fiber.join(next), { ok: true })
    })
  )

  it.scoped("with an idle deadline lives on progress of that very call, up to the hard maximum", () =>
    Effect.gen(function* () {
      const { server, link } = silent()
      const connection = yield* connect(server)
      const idle = { ...request("slow", 1_000), idleMaxMs: 5_000, idleMaxField: "tool_timeout_max_secs" }
      const fiber = yield* Effect.fork(Effect.flip(connection.request("slow", {}, idle)))
      yield* settle
      for (let turn = 0; turn < 4; turn += 1) {
        yield* TestClock.adjust(900)
        link().send({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 1, progress: turn } })
        yield* settle
      }
      assert.equal(connection.openRequests(), 1)
      // Progress of another call does not count.
      link().send({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 9, progress: 1 } })
      yield* settle
      for (let turn = 0; turn < 2; turn += 1) {
        yield* TestClock.adjust(700)
        link().send({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: "1", progress: 9 } })
        yield* settle
      }
      const error = yield* Fiber.join(fiber)
      assert.equal(error.where?.field, "tool_timeout_max_secs")
      assert.include(error.text, "within 5000 ms in all")
    })
  )

  it.scoped("with an idle deadline ends a call that goes quiet, and says that it was the quiet", () =>
    Effect.gen(function* () {
      const { server, link } = silent()
      const connection = yield* connect(server)
      const idle = { ...request("slow", 1_000), idleMaxMs: 5_000 }
      const fiber = yield* Effect.fork(Effect.flip(connection.request("slow", {}, idle)))
      yield* settle
      yield* TestClock.adjust(900)
      link().send({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 1, progress: 1 } })
      yield* settle
      yield* TestClock.adjust(1_000)
      const error = yield* Fiber.join(fiber)
      assert.equal(error.where?.field, "tool_timeout_secs")
      assert.include(error.text, "1000 ms of its last sign of progress")
    })
  )

  it.scoped("with an idle deadline is bounded by a maximum below it, too, and names that", () =>
    Effect.gen(function* () {
      const { server } = silent()
      const connection = yield* connect(server)
      const idle = { ...request("slow", 6_000), idleMaxMs: 2_000, idleMaxField: "tool_timeout_max_secs" }
      const fiber = yield* Effect.fork(Effect.flip(connection.request("slow", {}, idle)))
      yield* settle
      yield* TestClock.adjust(2_000)
      const error = yield* Fiber.join(fiber)
      assert.equal(error.where?.field, "tool_timeout_max_secs")
      assert.include(error.text, "within 2000 ms in all")
    })
  )

  it.scoped("is not harmed by requests that are not to harm it, however many of them are late", () =>
    Effect.gen(function* () {
      const { server } = silent()
      const connection = yield* connect(server, { onTimeout: "close" })
      for (let turn = 0; turn < 3; turn += 1) {
        const late = { ...request("list", 1_000), onTimeout: "keep" as const }
        const fiber = yield* Effect.fork(Effect.flip(connection.request("list", {}, late)))
        yield* settle
        yield* TestClock.adjust(1_000)
        assert.equal((yield* Fiber.join(fiber)).details?.["connection_state"], "open")
      }
      assert.isUndefined(connection.terminal())
    })
  )

  it.scoped("keeps the connection after one deadline and ends it after two in a row", () =>
    Effect.gen(function* () {
      const { server, link, received } = silent()
      const connection = yield* connect(server, { onTimeout: "keep" })
      const lateOne = Effect.gen(function* () {
        const fiber = yield* Effect.fork(Effect.flip(connection.request("slow", {}, request("slow", 1_000))))
        yield* settle
        yield* TestClock.adjust(1_000)
        return yield* Fiber.join(fiber)
      })
      yield* lateOne
      const answered = yield* Effect.fork(connection.request("quick", {}, request("quick")))
      yield* settle
      link().send({ jsonrpc: "2.0", id: received.at(-1)?.id ?? 0, result: {} })
      yield* Fiber.join(answered)
      yield* lateOne
      assert.isUndefined(connection.terminal())
      yield* lateOne
      assert.deepInclude(connection.terminal(), { culprit: "slow" })
    })
  )
})

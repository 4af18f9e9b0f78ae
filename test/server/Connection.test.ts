import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import type { Progress } from "../../src/server/Connection.ts"
import type { MemoryLink } from "../../src/transport/MemoryTransport.ts"
import { fakeServer, type Received, text } from "../support/FakeServer.ts"
import { connect, request } from "../support/Wires.ts"

/** A server that never answers by itself; the test speaks through the link. */
const silent = (received: Array<Received> = []) => {
  const box: { link?: MemoryLink } = {}
  const server = (link: MemoryLink) => {
    box.link = link
    return { receive: (line: string) => received.push(JSON.parse(line) as Received) }
  }
  const link = (): MemoryLink => {
    assert.isDefined(box.link)
    return box.link
  }
  return { server, link, received }
}
const settle = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

describe("Connection", () => {
  it.scoped("gives each of many concurrent requests its own answer, in any order", () =>
    Effect.gen(function* () {
      const { server, link, received } = silent()
      const connection = yield* connect(server)
      const fibers = yield* Effect.forEach(
        Array.from({ length: 50 }, (_, index) => index),
        (index) => Effect.fork(connection.request("x", { index }, request("x")))
      )
      yield* settle
      for (const message of received.toReversed()) {
        link().send({ jsonrpc: "2.0", id: message.id ?? 0, result: { index: message.params?.["index"] ?? -1 } })
      }
      const answers = yield* Effect.forEach(fibers, Fiber.join)
      assert.deepEqual(
        answers.map((answer) => answer["index"]),
        answers.map((_, index) => index)
      )
      assert.equal(new Set(received.map(({ id }) => id)).size, 50)
    })
  )

  it.scoped("announces an interrupted request and ignores its late answer", () =>
    Effect.gen(function* () {
      const { server, link, received } = silent()
      const connection = yield* connect(server)
      const fiber = yield* Effect.fork(connection.request("slow", {}, request("slow")))
      yield* settle
      yield* Fiber.interrupt(fiber)
      yield* settle
      assert.deepEqual(
        received.map(({ method }) => method),
        ["slow", "notifications/cancelled"]
      )
      assert.equal(received[1]?.params?.["requestId"], received[0]?.id)
      link().send({ jsonrpc: "2.0", id: 1, result: {} })
      yield* settle
      assert.equal(connection.oddities.strayMessages, 1)
      assert.isUndefined(connection.terminal())
    })
  )

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

  it.scoped("answers ping, declines what is not declared, and hands a declared request to its handler", () =>
    Effect.gen(function* () {
      const { server, link, received } = silent()
      const connection = yield* connect(server, {
        handlers: new Map([["roots/list", () => Effect.succeed({ roots: [] })]])
      })
      link().send({ jsonrpc: "2.0", id: "a", method: "ping" })
      link().send({ jsonrpc: "2.0", id: "b", method: "sampling/createMessage", params: {} })
      link().send({ jsonrpc: "2.0", id: "c", method: "roots/list" })
      yield* settle
      yield* settle
      const byId = new Map(received.map((message) => [message.id, message]))
      assert.deepEqual(byId.get("a")?.result, {})
      assert.equal(byId.get("b")?.error?.["code"], -32601)
      assert.deepEqual(byId.get("c")?.result, { roots: [] })
      assert.deepEqual([...connection.oddities.declined], ["sampling/createMessage"])
    })
  )

  it.scoped("hands progress to its own request, at most one note per 10 ms, and the last one always", () =>
    Effect.gen(function* () {
      const notes: Array<Progress> = []
      const { server, link, received } = silent()
      const connection = yield* connect(server)
      const fiber = yield* Effect.fork(
        connection.request("long", {}, { ...request("long"), onProgress: (note) => notes.push(note) })
      )
      yield* settle
      const token = received[0]?.params?.["_meta"]
      assert.deepEqual(token, { progressToken: received[0]?.id })
      for (let step = 1; step <= 5_000; step += 1) {
        link().send({
          jsonrpc: "2.0",
          method: "notifications/progress",
          params: { progressToken: 1, progress: step, total: 5_000 }
        })
      }
      yield* settle
      link().send({ jsonrpc: "2.0", id: 1, result: {} })
      yield* Fiber.join(fiber)
      assert.deepEqual(notes, [
        { progress: 1, total: 5_000 },
        { progress: 5_000, total: 5_000 }
      ])
      assert.isUndefined(connection.terminal())
    })
  )

  it.scoped("accepts the string form of an id and tells of it; ignores duplicates and unknown ids", () =>
    Effect.gen(function* () {
      const { server, link } = silent()
      const connection = yield* connect(server)
      const fiber = yield* Effect.fork(connection.request("x", {}, request("x")))
      yield* settle
      link().send({ jsonrpc: "2.0", id: 99, result: {} })
      link().send({ jsonrpc: "2.0", id: "1", result: { ok: 1 } })
      link().send({ jsonrpc: "2.0", id: 1, result: { ok: 2 } })
      assert.deepEqual(yield* Fiber.join(fiber), { ok: 1 })
      yield* settle
      assert.equal(connection.oddities.strayMessages, 3)
      assert.isUndefined(connection.terminal())
    })
  )

  it.scoped("gives an error without id to the only open call and counts it otherwise", () =>
    Effect.gen(function* () {
      const { server, link } = silent()
      const connection = yield* connect(server)
      const fiber = yield* Effect.fork(Effect.flip(connection.request("x", {}, request("x"))))
      yield* settle
      link().send({ jsonrpc: "2.0", id: null, error: { code: -32700, message: "Parse error" } })
      const error = yield* Fiber.join(fiber)
      assert.equal(error.code, "SIGIL_REMOTE_ERROR")
      link().send({ jsonrpc: "2.0", id: null, error: { code: -32700, message: "Parse error" } })
      yield* settle
      assert.equal(connection.oddities.strayMessages, 1)
    })
  )

  it.scoped("fails a call that the server cancels", () =>
    Effect.gen(function* () {
      const { server, link } = silent()
      const connection = yield* connect(server)
      const fiber = yield* Effect.fork(Effect.flip(connection.request("x", {}, request("x"))))
      yield* settle
      link().send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1, reason: "busy" } })
      const error = yield* Fiber.join(fiber)
      assert.equal(error.code, "SIGIL_CALL_CANCELLED")
      assert.include(error.text, "busy")
    })
  )

  const faults: ReadonlyArray<readonly [string, string, string, string]> = [
    ["a line that is not JSON", "hello", "SIGIL_PROTOCOL_FAULT", "invalid_json"],
    ["Content-Length framing", "Content-Length: 12", "SIGIL_PROTOCOL_FAULT", "content_length_framing"],
    ["a batch", '[{"jsonrpc":"2.0","id":1,"result":{}}]', "SIGIL_PROTOCOL_FAULT", "invalid_jsonrpc_envelope"],
    ["JSON-RPC 1.0", '{"id":1,"result":{}}', "SIGIL_PROTOCOL_FAULT", "invalid_jsonrpc_envelope"],
    [
      "a result that is no object",
      '{"jsonrpc":"2.0","id":1,"result":[]}',
      "SIGIL_PROTOCOL_FAULT",
      "invalid_jsonrpc_envelope"
    ],
    [
      "both result and error",
      '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}',
      "SIGIL_PROTOCOL_FAULT",
      "invalid_jsonrpc_envelope"
    ]
  ]
  for (const [what, line, code, reason] of faults) {
    it.scoped(`closes on ${what}, with one cause for all`, () =>
      Effect.gen(function* () {
        const { server, link } = silent()
        const connection = yield* connect(server)
        const fiber = yield* Effect.fork(Effect.flip(connection.request("x", {}, request("x"))))
        yield* settle
        link().sendText(line)
        const error = yield* Fiber.join(fiber)
        assert.equal(error.code, code)
        assert.equal(error.reason, reason)
        assert.equal((yield* Deferred.await(connection.ended)).end.reason, reason)
        link().send({ jsonrpc: "2.0", id: 1, result: {} })
        assert.equal((yield* Effect.flip(connection.request("y", {}, request("y")))).reason, reason)
      })
    )
  }

  it.scoped("accepts a batch where the revision allows it", () =>
    Effect.gen(function* () {
      const { server, link } = silent()
      const connection = yield* connect(server)
      connection.batches = true
      const fibers = yield* Effect.forEach([1, 2], () => Effect.fork(connection.request("x", {}, request("x"))))
      yield* settle
      link().sendText('[{"jsonrpc":"2.0","id":2,"result":{"n":2}},{"jsonrpc":"2.0","id":1,"result":{"n":1}}]')
      assert.deepEqual(yield* Effect.forEach(fibers, Fiber.join), [{ n: 1 }, { n: 2 }])
    })
  )

  it.scoped("tolerates noise on stdout only when told to, and counts it", () =>
    Effect.gen(function* () {
      const { server, link } = silent()
      const connection = yield* connect(server, { stdoutNoise: "skip" })
      const fiber = yield* Effect.fork(connection.request("x", {}, request("x")))
      yield* settle
      link().sendText("Starting up…")
      link().send({ jsonrpc: "2.0", id: 1, result: {} })
      yield* Fiber.join(fiber)
      assert.equal(connection.oddities.noiseLines, 1)
    })
  )

  it.scoped("closes on more than 256 messages without an answer, while answers reset the count", () =>
    Effect.gen(function* () {
      const { server, link } = silent()
      const connection = yield* connect(server)
      const note = { jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "x" } }
      for (let round = 1; round <= 3; round += 1) {
        const fiber = yield* Effect.fork(connection.request("x", {}, request("x")))
        yield* settle
        for (let count = 0; count < 256; count += 1) link().send(note)
        link().send({ jsonrpc: "2.0", id: round, result: {} })
        yield* Fiber.join(fiber)
      }
      const fiber = yield* Effect.fork(Effect.flip(connection.request("x", {}, request("x"))))
      yield* settle
      for (let count = 0; count < 257; count += 1) link().send(note)
      const error = yield* Fiber.join(fiber)
      assert.equal(error.code, "SIGIL_LIMIT_EXCEEDED")
      assert.equal(error.details?.["limit"], 256)
    })
  )

  it.scoped("refuses a request larger than a frame before anything is sent", () =>
    Effect.gen(function* () {
      const { server, received } = silent()
      const connection = yield* connect(server)
      const error = yield* Effect.flip(connection.request("x", { text: "x".repeat(4 * 1024 * 1024) }, request("x")))
      assert.equal(error.reason, "frame_too_large")
      yield* settle
      assert.deepEqual(received, [])
      assert.isUndefined(connection.terminal())
    })
  )

  it.scoped("fails calls in flight at once when the server ends", () =>
    Effect.gen(function* () {
      const connection = yield* connect(
        fakeServer({ methods: { die: (_params, link) => (link.end("gone"), undefined), x: () => text("x") } })
      )
      const error = yield* Effect.flip(connection.request("die", {}, request("die")))
      assert.equal(error.code, "SIGIL_CONNECTION_LOST")
      assert.include(error.text, "gone")
    })
  )
})

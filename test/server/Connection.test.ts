import { assert, describe, it } from "@effect/vitest"
import { revision as batching } from "../../src/protocol/revisions/V2025_03_26.ts"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import type { Progress } from "../../src/server/Progress.ts"
import type { MemoryLink } from "../../src/transport/MemoryTransport.ts"
import { fakeServer, type Received, text } from "../support/FakeServer.ts"
import { connect, request, settle, silent } from "../support/Wires.ts"

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
      connection.agree(batching)
      const fibers = yield* Effect.forEach([1, 2], () => Effect.fork(connection.request("x", {}, request("x"))))
      yield* settle
      link().sendText('[{"jsonrpc":"2.0","id":2,"result":{"n":2}},{"jsonrpc":"2.0","id":1,"result":{"n":1}}]')
      assert.deepEqual(yield* Effect.forEach(fibers, Fiber.join), [{ n: 1 }, { n: 2 }])
    })
  )

  it.scoped("takes lines of JSON that are no JSON-RPC for noise, where noise is tolerated", () =>
    Effect.gen(function* () {
      const { server, link } = silent()
      const connection = yield* connect(server, { stdoutNoise: "skip" })
      for (const line of ['{"level":30,"msg":"listening"}', "42", '"text"', "null"]) link().sendText(line)
      yield* settle
      assert.isUndefined(connection.terminal())
      assert.equal(connection.oddities.noiseLines, 4)
      link().sendText('{"jsonrpc":"1.0","id":1,"result":{}}')
      yield* settle
      assert.equal(connection.terminal()?.end.reason, "invalid_jsonrpc_envelope")
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

  it.scoped("counts answers to nothing as messages while a request is open", () =>
    Effect.gen(function* () {
      const { server, link } = silent()
      const connection = yield* connect(server)
      for (let id = 1_000; id < 3_000; id += 1) link().send({ jsonrpc: "2.0", id, result: {} })
      yield* settle
      assert.isUndefined(connection.terminal())
      assert.equal(connection.oddities.strayMessages, 2_000)
      assert.equal(connection.oddities.idleMessages, 2_000)
      const fiber = yield* Effect.fork(Effect.flip(connection.request("x", {}, request("x"))))
      yield* settle
      for (let id = 1_000; id < 1_300; id += 1) link().send({ jsonrpc: "2.0", id, result: {} })
      const error = yield* Fiber.join(fiber)
      assert.equal(error.reason, "message_limit")
    })
  )

  it.scoped("writes and takes nothing once a granted variable is different", () =>
    Effect.gen(function* () {
      const { server, link, received } = silent()
      let changed: string | undefined
      const heard: Array<string> = []
      const connection = yield* connect(server, {
        changedVariable: () => changed,
        onNotification: (method) => heard.push(method)
      })
      const fiber = yield* Effect.fork(Effect.flip(connection.request("x", {}, request("x"))))
      yield* settle
      changed = "TOKEN"
      link().send({ jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "x" } })
      const error = yield* Fiber.join(fiber)
      assert.equal(error.code, "SIGIL_ENVIRONMENT_CHANGED")
      assert.deepEqual(heard, [])
      const later = yield* Effect.flip(connection.request("y", {}, request("y")))
      assert.equal(later.reason, "environment_binding_changed")
      yield* settle
      assert.deepEqual(
        received.map(({ method }) => method),
        ["x"]
      )
    })
  )

  it.scoped("tells when no request is open any more", () =>
    Effect.gen(function* () {
      const { server, link } = silent()
      const connection = yield* connect(server)
      yield* connection.idle
      const fiber = yield* Effect.fork(connection.request("x", {}, request("x")))
      yield* settle
      const idle = yield* Effect.fork(connection.idle)
      yield* settle
      assert.isNull(yield* Fiber.poll(idle).pipe(Effect.map((exit) => (exit._tag === "None" ? null : exit))))
      link().send({ jsonrpc: "2.0", id: 1, result: {} })
      yield* Fiber.join(fiber)
      yield* Fiber.join(idle)
    })
  )

  it.scoped("lets a slow call wait beside ten thousand quick ones, and five thousand notes of progress", () =>
    Effect.gen(function* () {
      const { server, link } = silent()
      const answering = (given: MemoryLink) => {
        const inner = server(given)
        return {
          receive: (line: string) => {
            inner.receive(line)
            const { id, method } = JSON.parse(line) as Received
            if (method === "quick") given.send({ jsonrpc: "2.0", id: id ?? 0, result: {} })
          }
        }
      }
      const connection = yield* connect(answering)
      let notes = 0
      const slow = yield* Effect.fork(
        connection.request("slow", {}, { ...request("slow", 3_600_000), onProgress: () => (notes += 1) })
      )
      yield* settle
      for (let batch = 0; batch < 100; batch += 1) {
        yield* Effect.forEach(Array.from({ length: 100 }), () => connection.request("quick", {}, request("quick")), {
          concurrency: 100,
          discard: true
        })
        for (let note = 0; note < 50; note += 1) {
          const params = { progressToken: 1, progress: batch * 50 + note }
          link().send({ jsonrpc: "2.0", method: "notifications/progress", params })
        }
        yield* TestClock.adjust(10)
      }
      assert.isUndefined(connection.terminal())
      link().send({ jsonrpc: "2.0", id: 1, result: { done: true } })
      assert.deepEqual(yield* Fiber.join(slow), { done: true })
      // At most one each 10 ms, and the last.
      assert.isAtMost(notes, 102)
      assert.isAtLeast(notes, 50)
    })
  )
})

import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { AuditRecord } from "../../src/audit/AuditRecord.ts"
import { Registry } from "../../src/server/Registry.ts"
import { headless } from "../../src/tools/Caller.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"
import { Surfaces } from "../../src/tools/Surfaces.ts"
import type { MemoryLink } from "../../src/transport/MemoryTransport.ts"
import { declared, withFakes } from "../support/FakeRuntime.ts"
import { fakeServer, type Received, text } from "../support/FakeServer.ts"

const caller = headless("test")
const settle = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

/** A server with every surface; `link` is set at its first request. */
const whole = (received: Array<Received>, box: { link?: MemoryLink }) =>
  fakeServer({
    received,
    methods: {
      initialize: (_params, link) => {
        box.link = link
        return {
          protocolVersion: "2025-11-25",
          capabilities: { tools: {}, resources: { subscribe: true }, prompts: {}, completions: {}, logging: {} },
          serverInfo: { name: "whole", version: "1" }
        }
      },
      "resources/list": (params) =>
        params["cursor"] === undefined
          ? { resources: [{ uri: "a:1", name: "one" }], nextCursor: "2" }
          : { resources: [{ uri: "a:2", name: "two" }, "odd"] },
      "resources/read": (params) => ({ contents: [{ uri: params["uri"] ?? "", text: "content" }] }),
      "resources/subscribe": () => ({}),
      "resources/unsubscribe": () => ({}),
      "prompts/get": ({ name }) => ({
        messages: [
          { role: "user", content: { type: "text", text: name === "leak" ? `it is ghp_${"aB3".repeat(12)}.` : "hi" } }
        ]
      }),
      "completion/complete": () => ({ completion: { values: ["x"], hasMore: false } }),
      "logging/setLevel": () => ({})
    }
  })

describe("Surfaces", () => {
  it.effect("pages lists, reads, gets prompts and completes", () => {
    const received: Array<Received> = []
    return Effect.gen(function* () {
      const surfaces = yield* Surfaces
      const { items, warnings } = yield* surfaces.list(caller, { server: "a", kind: "resources" })
      assert.deepEqual(
        items.map((item) => item["uri"]),
        ["a:1", "a:2"]
      )
      assert.equal(warnings.length, 1)
      const read = yield* surfaces.read(caller, { server: "a", uri: "a:1" })
      assert.deepEqual(read.result, { contents: [{ uri: "a:1", text: "content" }] })
      yield* surfaces.prompt(caller, { server: "a", name: "p", args: { k: "v" } })
      const context = { other: "known" }
      yield* surfaces.complete(caller, {
        server: "a",
        ref: { type: "ref/prompt", name: "p" },
        argument: "k",
        value: "v",
        context
      })
      const sent = Object.fromEntries(received.map(({ method, params }) => [method, params]))
      assert.deepEqual(sent["prompts/get"], { name: "p", arguments: { k: "v" } })
      assert.deepEqual(sent["completion/complete"]?.["context"], { arguments: context })
    }).pipe(withFakes({ servers: { a: whole(received, {}) } }))
  })

  it.effect("send no placeholder back: no prompt argument, address or completion", () => {
    const received: Array<Received> = []
    return Effect.gen(function* () {
      const surfaces = yield* Surfaces
      const complete = (value: string, known: string) =>
        surfaces.complete(caller, {
          server: "a",
          ref: { type: "ref/prompt", name: "p" },
          argument: "k",
          value,
          context: { known }
        })
      const prompt = (name: string, argument: string) =>
        surfaces.prompt(caller, { server: "a", name, args: { k: argument } })
      // Before anything was hidden it is a word like any other.
      yield* prompt("p", "[hidden]")
      yield* complete("[hidden]", "[hidden]")
      yield* surfaces.read(caller, { server: "a", uri: "a:[hidden]" })
      const read = yield* surfaces.read(caller, { server: "a", uri: `a:eyJ${"aB3".repeat(12)}` })
      assert.deepEqual(read.result["contents"], [{ uri: `a:eyJ${"aB3".repeat(12)}`, text: "content" }])
      const token = `ghp_${"aB3".repeat(12)}`
      const refused = yield* Effect.flip(surfaces.read(caller, { server: "a", uri: `a:${token}` }))
      assert.equal(refused.code, "SIGIL_SECRET_BLOCKED")
      assert.notInclude(JSON.stringify(refused), token)
      yield* Effect.flip(prompt("p", token))
      yield* Effect.flip(complete("x", token))
      // A token that the server holds by itself is hidden in its answer.
      const { result } = yield* prompt("leak", "x")
      assert.deepEqual(result["messages"], [{ role: "user", content: { type: "text", text: "it is [hidden]." } }])
      const sent = received.length
      const later = [
        surfaces.read(caller, { server: "a", uri: "a:[hidden]" }),
        surfaces.read(caller, { server: "a", uri: "a:%5Bhidden%5D" }),
        prompt("p", "x [hidden]"),
        prompt("[hidden]", "x"),
        complete("[hidden]", "x"),
        complete("x", "[hidden]")
      ]
      for (const effect of later) {
        assert.equal(
          (yield* Effect.flip<unknown, { readonly code: string }, never>(effect)).code,
          "SIGIL_REDACTED_WRITEBACK"
        )
      }
      assert.equal(received.length, sent)
    }).pipe(withFakes({ servers: { a: whole(received, {}) } }))
  })

  it.effect("subscribes for the length of a scope and hands on updates of the resource", () => {
    const received: Array<Received> = []
    const box: { link?: MemoryLink } = {}
    return Effect.gen(function* () {
      const surfaces = yield* Surfaces
      yield* Effect.scoped(
        Effect.gen(function* () {
          const updates = yield* surfaces.subscribe(caller, { server: "a", uri: "a:1" })
          box.link?.send({ jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri: "a:1" } })
          assert.equal(yield* Queue.take(updates), "a:1")
        })
      )
      assert.include(
        received.map(({ method }) => method),
        "resources/unsubscribe"
      )
    }).pipe(withFakes({ servers: { a: whole(received, box) } }))
  })

  it.effect("keeps log messages, bounded and redacted, at the level that was asked for", () => {
    const received: Array<Received> = []
    const box: { link?: MemoryLink } = {}
    return Effect.gen(function* () {
      const surfaces = yield* Surfaces
      yield* surfaces.setLevel({ server: "a", level: "debug" })
      assert.deepEqual(received.find(({ method }) => method === "logging/setLevel")?.params, { level: "debug" })
      for (let count = 0; count < 250; count += 1) {
        box.link?.send({
          jsonrpc: "2.0",
          method: "notifications/message",
          params: { level: "info", logger: "l", data: `${count} s3cr3t-token-value` }
        })
      }
      yield* settle
      const generation = yield* Effect.flatMap(Registry, (registry) => registry.activate("a"))
      const messages = generation.notices.messages()
      assert.equal(messages.length, 200)
      assert.deepEqual(messages.at(-1), { level: "info", logger: "l", text: "249 [hidden]" })
    }).pipe(
      withFakes({
        servers: { a: whole(received, box) },
        entries: [
          declared("a", {
            endpoint: {
              _tag: "stdio",
              command: process.execPath,
              args: [],
              inheritEnv: ["TOKEN"],
              publicEnv: [],
              env: {}
            }
          })
        ],
        variables: { TOKEN: "s3cr3t-token-value" }
      })
    )
  })

  it.effect("tells a server the workspace as its only root, and only one that may have it", () => {
    const received: Array<Received> = []
    const box: { link?: MemoryLink } = {}
    const ask = Effect.sync(() => box.link?.send({ jsonrpc: "2.0", id: "r", method: "roots/list" }))
    const snapshot = { workspace: "/home/me/my project" }
    return Effect.gen(function* () {
      const pipeline = yield* Pipeline
      yield* pipeline.tools("a")
      yield* ask
      yield* settle
      yield* settle
      assert.deepEqual(received.find(({ id, method }) => id === "r" && method === undefined)?.result, {
        roots: [{ uri: "file:///home/me/my%20project", name: "my project" }]
      })
      const initialize = received.find(({ method }) => method === "initialize")
      assert.deepEqual(initialize?.params?.["capabilities"], { roots: { listChanged: true } })
    }).pipe(withFakes({ servers: { a: whole(received, box) }, snapshot: snapshot }))
  })

  it.effect("refuses what the server does not offer, and puts every use on record", () => {
    const records: Array<AuditRecord> = []
    const plain = fakeServer({ methods: { "tools/call": () => text("x") } })
    return Effect.gen(function* () {
      const surfaces = yield* Surfaces
      const error = yield* Effect.flip(surfaces.read(caller, { server: "plain", uri: "a:1" }))
      assert.equal(error.code, "SIGIL_UNKNOWN_SURFACE")
      yield* surfaces.read(caller, { server: "a", uri: "a:1" })
      const egress = records.find(({ kind }) => kind === "egress_decision_recorded")
      assert.include(JSON.stringify(egress?.payload), '"resource_operation":"resources_read"')
      assert.equal(records.filter(({ kind }) => kind === "tool_execution_finished").length, 1)
    }).pipe(withFakes({ servers: { a: whole([], {}), plain }, records }))
  })
})

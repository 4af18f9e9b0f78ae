/** Hearing of changes in both eras: what is listened for, taken up again after a break, and given back. */
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as TestClock from "effect/TestClock"
import { assert, describe } from "vitest"
import type { JsonObject } from "../../src/base/Json.ts"
import { Registry } from "../../src/server/Registry.ts"
import { headless } from "../../src/tools/Caller.ts"
import { Surfaces } from "../../src/tools/Surfaces.ts"
import { withFakes } from "../support/FakeRuntime.ts"
import { fakeServer, type Received, tool } from "../support/FakeServer.ts"
import { statelessServer } from "../support/StatelessServer.ts"
import { settle } from "../support/Wires.ts"

/** The open listen requests of a server, by their ids. */
interface Listening {
  readonly open: Map<string | number, JsonObject>
  /** Ends the newest as a server that goes down in order. */
  end: () => void
  announce: (method: string, params?: JsonObject) => void
}
const ready = { announce: () => undefined, end: () => undefined }

const listener = (listening: Listening, received: Array<Received>, capabilities: JsonObject) =>
  statelessServer({
    received,
    capabilities,
    tools: [tool("t")],
    methods: {
      "subscriptions/listen": (params, link, id) => {
        // What the host sent as its filter.
        listening.open.set(id, params["notifications"] as JsonObject)
        listening.announce = (method, more = {}) => link.send({ jsonrpc: "2.0", method, params: more })
        listening.end = () => {
          listening.open.delete(id)
          link.send({ jsonrpc: "2.0", id, result: { resultType: "complete" } })
        }
        link.send({
          jsonrpc: "2.0",
          method: "notifications/subscriptions/acknowledged",
          params: { notifications: params["notifications"] ?? {} }
        })
        return undefined
      }
    }
  })
const listens = (received: ReadonlyArray<Received>) =>
  received.filter(({ method }) => method === "subscriptions/listen").map(({ params }) => params?.["notifications"])

describe("listening in the stateless revision", () => {
  const capabilities = { tools: { listChanged: true }, resources: { subscribe: true } }

  it.effect("asks for what the server says it announces, and reads a changed list again", () => {
    const listening: Listening = { open: new Map(), ...ready }
    const received: Array<Received> = []
    return Effect.gen(function* () {
      const registry = yield* Registry
      yield* registry.activate("a")
      yield* settle
      assert.deepEqual(listens(received), [{ toolsListChanged: true }])
      listening.announce("notifications/tools/list_changed")
      yield* settle
      yield* registry.settleLists
      assert.equal(received.filter(({ method }) => method === "tools/list").length, 2)
      assert.equal(registry.status("a").state, "ready")
    }).pipe(withFakes({ servers: { a: listener(listening, received, capabilities) } }))
  })

  it.effect("opens it again after it ended, later each time, and takes what it missed for announced", () => {
    const listening: Listening = { open: new Map(), ...ready }
    const received: Array<Received> = []
    return Effect.gen(function* () {
      const registry = yield* Registry
      yield* registry.activate("a")
      yield* settle
      for (const wait of [1_000, 2_000, 4_000]) {
        const before = listens(received).length
        listening.end()
        yield* settle
        yield* TestClock.adjust(wait - 1)
        yield* settle
        assert.equal(listens(received).length, before)
        yield* TestClock.adjust(1)
        yield* settle
        assert.equal(listens(received).length, before + 1)
      }
      assert.isAbove(received.filter(({ method }) => method === "tools/list").length, 1)
    }).pipe(withFakes({ servers: { a: listener(listening, received, capabilities) } }))
  })

  it.effect("does not ask a server again that does not know it", () => {
    const received: Array<Received> = []
    return Effect.gen(function* () {
      const registry = yield* Registry
      yield* registry.activate("a")
      yield* settle
      yield* TestClock.adjust("10 minutes")
      yield* settle
      assert.equal(listens(received).length, 1)
      assert.equal(registry.status("a").state, "ready")
    }).pipe(withFakes({ servers: { a: statelessServer({ received, capabilities, tools: [tool("t")] }) } }))
  })

  it.scoped("adds a resource by a new request before the old one goes, and takes it back with the scope", () => {
    const listening: Listening = { open: new Map(), ...ready }
    const received: Array<Received> = []
    return Effect.gen(function* () {
      const registry = yield* Registry
      yield* registry.activate("a")
      yield* Effect.scoped(
        Effect.gen(function* () {
          const surfaces = yield* Surfaces
          const queue = yield* surfaces.subscribe(headless("test"), { server: "a", uri: "x:1" })
          assert.deepEqual(listens(received).at(-1), { toolsListChanged: true, resourceSubscriptions: ["x:1"] })
          yield* settle
          const [first] = listening.open.keys()
          const cancelled = received.find(({ method }) => method === "notifications/cancelled")
          assert.equal(cancelled?.params?.["requestId"], first)
          listening.announce("notifications/resources/updated", { uri: "x:1" })
          assert.equal(yield* Queue.take(queue), "x:1")
        })
      )
      yield* settle
      assert.deepEqual(listens(received).at(-1), { toolsListChanged: true })
    }).pipe(withFakes({ servers: { a: listener(listening, received, capabilities) } }))
  })

  it.effect("is nobody's call: a refresh does not wait for it", () => {
    const listening: Listening = { open: new Map(), ...ready }
    return Effect.gen(function* () {
      const registry = yield* Registry
      const first = yield* registry.activate("a")
      yield* settle
      assert.equal(first.connection.openRequests(), 0)
      const second = yield* registry.refresh("a")
      assert.notEqual(first.id, second.id)
    }).pipe(withFakes({ servers: { a: listener(listening, [], capabilities) } }))
  })
})

describe("subscribing with a handshake", () => {
  it.scoped("subscribes once for two that watch, and unsubscribes with the last", () => {
    const received: Array<Received> = []
    const server = fakeServer({
      received,
      methods: {
        initialize: () => ({
          protocolVersion: "2025-11-25",
          capabilities: { tools: {}, resources: { subscribe: true } },
          serverInfo: { name: "fake", version: "1" }
        }),
        "resources/subscribe": () => ({}),
        "resources/unsubscribe": () => ({})
      }
    })
    const count = (method: string): number => received.filter((message) => message.method === method).length
    return Effect.gen(function* () {
      const surfaces = yield* Surfaces
      const watch = surfaces.subscribe(headless("test"), { server: "a", uri: "x:1" })
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Effect.asVoid(watch)
          yield* Effect.asVoid(Effect.scoped(watch))
          assert.deepEqual([count("resources/subscribe"), count("resources/unsubscribe")], [1, 0])
        })
      )
      yield* settle
      assert.deepEqual([count("resources/subscribe"), count("resources/unsubscribe")], [1, 1])
    }).pipe(withFakes({ servers: { a: server } }))
  })
})

/** What a server speaks is found out without being told, remembered, and found out anew. */
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import { assert, describe } from "vitest"
import { isJsonObject, type JsonObject } from "../../src/base/Json.ts"
import * as EraStore from "../../src/server/EraStore.ts"
import { Registry } from "../../src/server/Registry.ts"
import type { MemoryServer } from "../../src/transport/MemoryTransport.ts"
import { declared, type FakeRuntime, withFakes } from "../support/FakeRuntime.ts"
import { fakeServer, type Received, tool } from "../support/FakeServer.ts"
import { key, meta, statelessServer, type StatelessParts } from "../support/StatelessServer.ts"
import { settle } from "../support/Wires.ts"

const modern = (parts: StatelessParts, more: Partial<FakeRuntime> = {}) =>
  withFakes({ servers: { a: statelessServer({ tools: [tool("t")], ...parts }) }, ...more })

describe("finding out what a server speaks", () => {
  const start = Effect.flatMap(Registry, (registry) => registry.activate("a"))

  it.effect("takes a modern one by its first answer, and says everything in each request", () => {
    const received: Array<Received> = []
    return Effect.gen(function* () {
      const generation = yield* start
      assert.equal(generation.revision.version, "2026-07-28")
      assert.deepEqual([generation.info.name, generation.instructions], ["modern", "Be kind."])
      assert.deepEqual(
        received.map(({ method }) => method),
        ["server/discover", "tools/list"]
      )
      for (const message of received) {
        assert.equal(meta(message)[key("protocolVersion")], "2026-07-28")
        assert.deepEqual(meta(message)[key("clientCapabilities")], { roots: {} })
        assert.isTrue(isJsonObject(meta(message)[key("clientInfo")]))
      }
    }).pipe(modern({ received }))
  })

  const errors: ReadonlyArray<readonly [what: string, error: JsonObject]> = [
    ["an unknown method", { code: -32601, message: "no" }],
    ["invalid parameters", { code: -32602, message: "no" }],
    ["an error of its own", { code: -32000, message: "Server not initialized" }]
  ]
  for (const [what, error] of errors)
    it.effect(`shakes hands after ${what}`, () => {
      const received: Array<Received> = []
      const legacy = fakeServer({ received })
      const server: MemoryServer = (link) => {
        const made = legacy(link)
        return {
          receive: (line) => {
            // The host's own output.
            const { id, method } = JSON.parse(line) as Received
            if (method === "server/discover") link.send({ jsonrpc: "2.0", id: id ?? 0, error })
            else made.receive(line)
          }
        }
      }
      return Effect.gen(function* () {
        const generation = yield* start
        assert.equal(generation.revision.version, "2025-11-25")
        assert.equal(received[0]?.method, "initialize")
        assert.deepEqual(meta(received[0]), {})
      }).pipe(withFakes({ servers: { a: server } }))
    })

  it.effect(
    "shakes hands with one that keeps silent, after a quarter of the budget, and ignores its late answer",
    () => {
      const box: { late?: () => void } = {}
      const server = fakeServer({
        methods: {
          "server/discover": (_params, link, id) => {
            box.late = () => link.send({ jsonrpc: "2.0", id, result: {} })
            return undefined
          }
        }
      })
      return Effect.gen(function* () {
        const fiber = yield* Effect.fork(start)
        yield* settle
        yield* TestClock.adjust(499)
        yield* settle
        assert.isNull(fiber.unsafePoll())
        yield* TestClock.adjust(1)
        const generation = yield* Fiber.join(fiber)
        assert.equal(generation.revision.version, "2025-11-25")
        box.late?.()
        yield* settle
        assert.deepEqual([...generation.connection.oddities.warnings], [])
        assert.isUndefined(generation.connection.terminal())
      }).pipe(withFakes({ servers: { a: server }, entries: [declared("a", { startupTimeoutMs: 2_000 })] }))
    }
  )

  /** A server that dies of what it does not know; tells how many of it run at once. */
  const fragile = (counts: { now: number; most: number; opened: number }): MemoryServer => {
    const legacy = fakeServer()
    return (link) => {
      counts.now += 1
      counts.opened += 1
      counts.most = Math.max(counts.most, counts.now)
      let gone = false
      const leave = (): void => {
        if (!gone) counts.now -= 1
        gone = true
      }
      const made = legacy(link)
      return {
        receive: (line) => {
          // The host's own output.
          if ((JSON.parse(line) as Received).method !== "server/discover") return made.receive(line)
          leave()
          link.end("It does not know this.")
        },
        close: leave
      }
    }
  }

  it.effect("starts one that dies of the question once more, never two at once, and remembers it", () => {
    const counts = { now: 0, most: 0, opened: 0 }
    const known = new Map<string, EraStore.Era>()
    return Effect.gen(function* () {
      const registry = yield* Registry
      yield* registry.activate("a")
      assert.deepEqual(counts, { now: 1, most: 1, opened: 2 })
      assert.deepEqual([...known.values()], ["handshake"])
      yield* registry.close("a")
      yield* registry.activate("a")
      assert.equal(counts.opened, 3)
    }).pipe(withFakes({ servers: { a: fragile(counts) } }), Effect.provide(EraStore.layerMemory(known)))
  })

  /** A server that reads nothing for three seconds after it was started; how often it was, and what wakes it. */
  const sleepy = (inner: MemoryServer, box: { opened: number; wake: () => void }): MemoryServer => {
    return (link) => {
      box.opened += 1
      const made = inner(link)
      const waiting: Array<string> = []
      let awake = box.opened > 1
      box.wake = () => {
        awake = true
        for (const line of waiting.splice(0)) made.receive(line)
      }
      return { ...made, receive: (line) => (awake ? made.receive(line) : void waiting.push(line)) }
    }
  }
  const startSleepy = (box: { wake: () => void }) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.fork(start)
      yield* settle
      yield* TestClock.adjust(3_000)
      yield* settle
      box.wake()
      return yield* Fiber.join(fiber)
    })

  it.effect("starts one once more that dies of the question only after it was given up", () => {
    const counts = { now: 0, most: 0, opened: 0 }
    const box = { opened: 0, wake: () => {} }
    return Effect.gen(function* () {
      const generation = yield* startSleepy(box)
      assert.equal(generation.revision.version, "2025-11-25")
      assert.deepEqual(counts, { now: 1, most: 1, opened: 2 })
    }).pipe(withFakes({ servers: { a: sleepy(fragile(counts), box) } }))
  })

  it.effect("asks a modern one again that was slow to start and refuses the handshake", () => {
    const received: Array<Received> = []
    const box = { opened: 0, wake: () => {} }
    const server = sleepy(statelessServer({ tools: [tool("t")], received }), box)
    return Effect.gen(function* () {
      const generation = yield* startSleepy(box)
      assert.equal(generation.revision.version, "2026-07-28")
      assert.deepEqual(
        received.filter(({ id }) => id !== undefined).map(({ method }) => method),
        ["server/discover", "initialize", "server/discover", "tools/list"]
      )
      assert.equal(box.opened, 1)
    }).pipe(withFakes({ servers: { a: server } }))
  })

  it.effect("shows the refusal of the handshake by one that was slow and is not modern either", () => {
    const box = { opened: 0, wake: () => {} }
    const refuses = fakeServer({
      methods: {
        initialize: (_params, link, id) =>
          void link.send({ jsonrpc: "2.0", id, error: { code: -32000, message: "key" } })
      }
    })
    return Effect.gen(function* () {
      const error = yield* Effect.flip(startSleepy(box))
      assert.deepEqual([error.code, error.reason], ["SIGIL_START_FAILED", "remote_error"])
      assert.include(error.text, "'initialize' with error -32000: key")
    }).pipe(withFakes({ servers: { a: sleepy(refuses, box) } }))
  })

  it.effect("finds out anew when what is remembered does not hold any more", () => {
    const known = new Map<string, EraStore.Era>()
    const box = { server: fakeServer() }
    const server: MemoryServer = (link) => box.server(link)
    return Effect.gen(function* () {
      const registry = yield* Registry
      const first = yield* registry.activate("a")
      assert.equal(first.revision.era, "handshake")
      box.server = statelessServer({ tools: [tool("t")] })
      yield* registry.close("a")
      const second = yield* registry.activate("a")
      assert.equal(second.revision.era, "stateless")
      assert.deepEqual([...known.values()], ["stateless"])
      box.server = fakeServer()
      yield* registry.close("a")
      assert.equal((yield* registry.activate("a")).revision.era, "handshake")
    }).pipe(withFakes({ servers: { a: server } }), Effect.provide(EraStore.layerMemory(known)))
  })

  it.effect("forgets a verdict that a failed start relied on, so that the next one asks", () => {
    const known = new Map<string, EraStore.Era>()
    const box = { server: fakeServer() }
    const start = Effect.flatMap(Registry, (registry) => registry.activate("a"))
    // Each run of sigil is a runtime of its own; what it knows beyond that is in the store.
    const run = <A, E>(effect: Effect.Effect<A, E, Registry>) =>
      effect.pipe(
        withFakes({ servers: { a: (link) => box.server(link) } }),
        Effect.provide(EraStore.layerMemory(known))
      )
    /** Modern, and gone at the sight of a handshake. */
    const modernOnly: MemoryServer = (link) => {
      const made = statelessServer({ tools: [tool("t")] })(link)
      return {
        receive: (line) => {
          // The host's own output.
          if ((JSON.parse(line) as Received).method === "initialize") link.end("It knows no handshake.")
          else made.receive(line)
        }
      }
    }
    return Effect.gen(function* () {
      yield* run(start)
      assert.deepEqual([...known.values()], ["handshake"])
      box.server = modernOnly
      assert.equal((yield* run(Effect.flip(start))).code, "SIGIL_START_FAILED")
      assert.equal(known.size, 0)
      assert.equal((yield* run(start)).revision.era, "stateless")
    })
  })

  it.effect("corrects the version once, and never falls back on a modern refusal", () => {
    const received: Array<Received> = []
    const refuse = (supported: ReadonlyArray<string>, times: number) => {
      let left = times
      return (_params: JsonObject) =>
        left-- > 0 ? { error: { code: -32022, message: "no", data: { supported } } } : undefined
    }
    const parts = (supported: ReadonlyArray<string>): StatelessParts => ({
      received,
      methods: { "server/discover": refuse(supported, 9) }
    })
    return Effect.gen(function* () {
      const error = yield* Effect.flip(start).pipe(modern(parts(["2027-01-01"])))
      assert.deepEqual([error.code, error.reason], ["SIGIL_PROTOCOL_FAULT", "unsupported_protocol_version"])
      assert.include(error.text, "2027-01-01")
      assert.equal(received.length, 1)
      received.length = 0
      yield* Effect.flip(start).pipe(modern(parts(["2026-07-28"])))
      assert.deepEqual(
        received.map(({ method }) => method),
        ["server/discover", "server/discover"]
      )
    })
  })

  it.effect("obeys an entry that names a version", () => {
    const entry = (protocol: string) => ({ entries: [declared("a", { protocol })] })
    return Effect.gen(function* () {
      const modernOnly = yield* Effect.flip(start).pipe(
        withFakes({ servers: { a: fakeServer() }, ...entry("2026-07-28") })
      )
      assert.equal(modernOnly.reason, "remote_error")
      const legacyOnly = yield* Effect.flip(start).pipe(modern({}, entry("2025-06-18")))
      assert.include(legacyOnly.text, "-32601")
    })
  })
})

/** What a supervised server does when it is refreshed, and when its list changes. */
import { describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import { assert } from "vitest"
import { Registry } from "../../src/server/Registry.ts"
import { RunGate } from "../../src/server/RunGate.ts"
import type { MemoryLink } from "../../src/transport/MemoryTransport.ts"
import { text, tool } from "../support/FakeServer.ts"
import { call, mortal, one, registry, rest } from "../support/Supervised.ts"

describe("a refresh", () => {
  it.effect("answers with the old generation until the new one is ready, and ends when the old one is gone", () => {
    const fake = mortal()
    return registry((servers) =>
      Effect.gen(function* () {
        const old = yield* servers.activate("a")
        const refreshing = yield* Effect.fork(servers.refresh("a"))
        const during = yield* call()
        const next = yield* Fiber.join(refreshing)
        assert.notEqual(next.id, old.id)
        assert.include([old.id, next.id], during.generation.id)
        assert.deepEqual(fake.closed, [old.id])
        assert.equal((yield* call()).generation.id, next.id)
      })
    ).pipe(one(fake.server))
  })

  it.effect("lets a call in flight finish on the old generation", () => {
    const open: Array<() => void> = []
    const fake = mortal({
      methods: {
        "tools/call": (_params, link, id) => {
          open.push(() => link.send({ jsonrpc: "2.0", id, result: text("late but whole") }))
          return undefined
        }
      }
    })
    return registry((servers) =>
      Effect.gen(function* () {
        const old = yield* servers.activate("a")
        const flying = yield* Effect.fork(call())
        yield* Effect.iterate(0, {
          while: () => open.length === 0,
          body: (turn) =>
            Effect.as(
              Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 2))),
              turn + 1
            )
        })
        const refreshing = yield* Effect.fork(servers.refresh("a"))
        yield* rest
        assert.deepEqual(fake.closed, [])
        open[0]?.()
        assert.equal((yield* Fiber.join(flying)).generation.id, old.id)
        yield* Fiber.join(refreshing)
        assert.deepEqual(fake.closed, [old.id])
      })
    ).pipe(one(fake.server))
  })

  it.effect("that fails leaves the old generation as it was", () => {
    let broken = false
    const fake = mortal()
    const server = (link: MemoryLink) => {
      const made = fake.server(link)
      if (broken) queueMicrotask(() => link.end("It crashed at its start."))
      return made
    }
    return registry((servers) =>
      Effect.gen(function* () {
        const old = yield* servers.activate("a")
        broken = true
        const error = yield* Effect.flip(servers.refresh("a"))
        assert.equal(error.code, "SIGIL_START_FAILED")
        assert.equal(servers.status("a").state, "ready")
        assert.equal((yield* call()).generation.id, old.id)
      })
    ).pipe(one(server))
  })

  it.effect("with refresh = exclusive never runs two, and brings the server back when the new one fails", () => {
    let running = 0
    let most = 0
    let failures = 0
    const fake = mortal()
    const server = (link: MemoryLink) => {
      running += 1
      most = Math.max(most, running)
      const made = fake.server(link)
      if (failures > 0) {
        failures -= 1
        queueMicrotask(() => link.end("The port is taken."))
        running -= 1
        return made
      }
      return {
        ...made,
        close: () => {
          running -= 1
        }
      }
    }
    return registry((servers) =>
      Effect.gen(function* () {
        const old = yield* servers.activate("a")
        const next = yield* servers.refresh("a")
        assert.notEqual(next.id, old.id)
        failures = 1
        const error = yield* Effect.flip(servers.refresh("a"))
        assert.include(error.text, "The port is taken.")
        assert.equal(servers.status("a").state, "ready")
        yield* call()
        assert.equal(most, 1)
        failures = 2
        yield* Effect.flip(servers.refresh("a"))
        // Nothing was started for this call, and it says so.
        const down = yield* Effect.flip(call())
        assert.include(down.text, "The server 'a' is down since its last start failed: ")
        assert.include(down.fix ?? "", "refresh 'a'")
        yield* servers.activate("a")
        yield* call()
      })
    ).pipe(one(server, { refresh: "exclusive" }))
  })
})

describe("a changed list", () => {
  /** A server whose list is whatever the array holds now. */
  const changing = () => {
    const tools = [tool("echo")]
    const lists = { asked: 0 }
    const fake = mortal({
      methods: {
        "tools/list": () => {
          lists.asked += 1
          return { tools: [...tools] }
        }
      }
    })
    const announce = () => fake.links.at(-1)?.send({ jsonrpc: "2.0", method: "notifications/tools/list_changed" })
    return { tools, lists, fake, announce }
  }

  it.effect("is read again when no run is open, and its new tool can be called", () => {
    const { announce, fake, tools } = changing()
    return registry((servers) =>
      Effect.gen(function* () {
        yield* servers.activate("a")
        assert.equal((yield* Effect.flip(call("added"))).code, "SIGIL_UNKNOWN_TOOL")
        tools.push(tool("added"))
        announce()
        yield* rest
        assert.equal(servers.status("a").state, "ready")
        yield* call("added")
        assert.equal(fake.links.length, 1)
      })
    ).pipe(one(fake.server))
  })

  it.effect("waits for the end of the run, or for its next step", () => {
    const { announce, fake, lists, tools } = changing()
    return Effect.gen(function* () {
      const servers = yield* Registry
      const gate = yield* RunGate
      yield* servers.activate("a")
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* gate.enter
          tools.push(tool("added"))
          announce()
          yield* rest
          assert.equal(servers.status("a").state, "stale tools")
          assert.equal(lists.asked, 1)
          yield* servers.settleLists
          assert.equal(servers.status("a").state, "ready")
          yield* call("added")
          tools.push(tool("later"))
          announce()
          yield* rest
          assert.equal(servers.status("a").state, "stale tools")
        })
      )
      yield* TestClock.adjust(1_000)
      yield* rest
      yield* call("later")
    }).pipe(one(fake.server))
  })

  it.effect("is coalesced: a storm of announcements costs a reading a second", () => {
    const { announce, fake, lists } = changing()
    return registry((servers) =>
      Effect.gen(function* () {
        yield* servers.activate("a")
        for (let turn = 0; turn < 5_000; turn += 1) announce()
        yield* rest
        assert.isAtMost(lists.asked, 3)
        for (let second = 0; second < 10; second += 1) {
          for (let turn = 0; turn < 100; turn += 1) announce()
          yield* TestClock.adjust(1_000)
          yield* rest
        }
        assert.isAtMost(lists.asked, 14)
        assert.equal(fake.links.length, 1)
      })
    ).pipe(one(fake.server))
  })

  it.effect("that cannot be read leaves the old one in place", () => {
    let broken = false
    const fake = mortal({ methods: { "tools/list": () => (broken ? { tools: "none" } : { tools: [tool("echo")] }) } })
    return registry((servers) =>
      Effect.gen(function* () {
        yield* servers.activate("a")
        broken = true
        fake.links[0]?.send({ jsonrpc: "2.0", method: "notifications/tools/list_changed" })
        for (let second = 0; second < 20; second += 1) {
          yield* rest
          yield* TestClock.adjust(1_000)
        }
        assert.equal(servers.status("a").state, "stale tools")
        yield* call("echo")
        assert.include(
          [...(servers.status("a").generation?.lists.failures().values() ?? [])].join(),
          "no array 'tools'"
        )
      })
    ).pipe(one(fake.server))
  })
})

/** What a supervised server does when starts fail, connections end, lists change and callers leave. */
import { describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as TestClock from "effect/TestClock"
import { assert } from "vitest"
import type { MemoryLink } from "../../src/transport/MemoryTransport.ts"
import { declared, withFakes } from "../support/FakeRuntime.ts"
import { fakeServer, text, tool } from "../support/FakeServer.ts"

import { call, mortal, one, registry, rest, silent } from "../support/Supervised.ts"

describe("a start", () => {
  it.effect("is shared, and goes on when one of those who wait leaves", () => {
    const fake = mortal()
    return registry((servers) =>
      Effect.gen(function* () {
        const first = yield* Effect.fork(servers.activate("a"))
        const second = yield* Effect.fork(servers.activate("a"))
        yield* Effect.yieldNow()
        yield* Fiber.interrupt(first)
        const generation = yield* Fiber.join(second)
        assert.equal(fake.links.length, 1)
        assert.equal(servers.status("a").generation?.id, generation.id)
      })
    ).pipe(one(fake.server))
  })

  it.effect("is given up when nobody waits for it any more, and leaves nothing", () => {
    const fake = mortal(silent)
    return registry((servers) =>
      Effect.gen(function* () {
        const waiting = yield* Effect.fork(servers.activate("a"))
        yield* rest
        assert.equal(servers.status("a").state, "activating")
        yield* Fiber.interrupt(waiting)
        yield* rest
        assert.equal(servers.status("a").state, "deferred")
        assert.equal(fake.closed.length, 1)
      })
    ).pipe(one(fake.server))
  })

  it.effect("waits for its turn as queued, and its budget begins then", () => {
    const names = ["b", "c", "d", "e"]
    return registry((servers) =>
      Effect.gen(function* () {
        const slow = yield* Effect.forEach(names, (name) => Effect.fork(Effect.flip(servers.activate(name))))
        yield* rest
        const last = yield* Effect.fork(servers.activate("a"))
        yield* rest
        assert.deepInclude(servers.status("a"), { state: "activating", queued: true })
        // The others use up their whole budget, which is as long as this one's.
        yield* TestClock.adjust(10_000)
        yield* Effect.forEach(slow, Fiber.join)
        yield* Fiber.join(last)
        assert.equal(servers.status("a").state, "ready")
      })
    ).pipe(
      withFakes({
        servers: { a: fakeServer(), ...Object.fromEntries(names.map((name) => [name, fakeServer(silent)])) }
      })
    )
  })
})

describe("a server that dies", () => {
  it.effect("fails its calls at once, and comes back by itself after a quarter of a second", () => {
    const arrived = Deferred.unsafeMake<void>(FiberId.none)
    const fake = mortal({
      methods: {
        "tools/call": (params) => {
          if (params["name"] !== "hang") return text("answer")
          Deferred.unsafeDone(arrived, Effect.void)
          return undefined
        }
      },
      tools: [tool("echo"), tool("hang")]
    })
    return registry((servers) =>
      Effect.gen(function* () {
        const waiting = yield* Effect.fork(Effect.flip(call("hang")))
        yield* Deferred.await(arrived)
        fake.links[0]?.end("The server was ended by SIGKILL.")
        const error = yield* Fiber.join(waiting)
        assert.equal(error.code, "SIGIL_CONNECTION_LOST")
        assert.include(error.text, "SIGKILL")
        yield* rest
        assert.equal(servers.status("a").state, "restarting")
        yield* TestClock.adjust(249)
        assert.equal(fake.links.length, 1)
        yield* TestClock.adjust(1)
        yield* rest
        assert.equal(servers.status("a").state, "ready")
        assert.equal(fake.links.length, 2)
      })
    ).pipe(one(fake.server))
  })

  it.effect("is not shown as ready in the moment of its end", () => {
    const fake = mortal()
    return registry((servers) =>
      Effect.gen(function* () {
        const generation = yield* servers.activate("a")
        generation.connection.end({ reason: "connection_closed", text: "It is gone." })
        assert.equal(servers.status("a").state, "restarting")
      })
    ).pipe(one(fake.server))
  })

  it.effect("is started at once for a call, and only for one of them", () => {
    const fake = mortal()
    return registry((servers) =>
      Effect.gen(function* () {
        yield* servers.activate("a")
        fake.links[0]?.end()
        yield* rest
        yield* Effect.all([call(), call(), call()], { concurrency: "unbounded" })
        assert.equal(fake.links.length, 2)
      })
    ).pipe(one(fake.server))
  })

  it.effect("stays down with restart = never: calls fail at once with the first cause, asking brings it back", () => {
    const fake = mortal()
    return registry((servers) =>
      Effect.gen(function* () {
        yield* servers.activate("a")
        fake.links[0]?.end("It is gone.")
        yield* rest
        const error = yield* Effect.flip(call())
        assert.equal(error.code, "SIGIL_CONNECTION_LOST")
        assert.include(error.text, "The server 'a' is down: It is gone.")
        assert.equal(servers.status("a").state, "failed")
        assert.equal(fake.links.length, 1)
        yield* servers.activate("a")
        yield* call()
        assert.equal(fake.links.length, 2)
      })
    ).pipe(one(fake.server, { restart: "never" }))
  })

  it.effect("stays down after a message that is no MCP", () => {
    const fake = mortal()
    return registry((servers) =>
      Effect.gen(function* () {
        yield* servers.activate("a")
        fake.links[0]?.sendText("this is no JSON")
        yield* rest
        const error = yield* Effect.flip(call())
        assert.equal(error.code, "SIGIL_PROTOCOL_FAULT")
        yield* TestClock.adjust(60_000)
        assert.equal(fake.links.length, 1)
      })
    ).pipe(one(fake.server))
  })

  it.effect("is left alone after five attempts in five minutes, and says so", () => {
    let broken = false
    const fake = mortal()
    const server = (link: MemoryLink) => {
      const made = fake.server(link)
      if (broken) queueMicrotask(() => link.end("It crashed at its start."))
      return made
    }
    return registry((servers) =>
      Effect.gen(function* () {
        yield* servers.activate("a")
        broken = true
        fake.links[0]?.end()
        for (let turn = 0; turn < 12; turn += 1) {
          yield* TestClock.adjust(30_000)
          yield* rest
        }
        assert.equal(fake.links.length, 6)
        const { failure, state } = servers.status("a")
        assert.equal(state, "failed")
        assert.include(failure?.text ?? "", "started again 5 times within 5 minutes")
        broken = false
        yield* servers.activate("a")
        assert.equal(servers.status("a").state, "ready")
      })
    ).pipe(one(server))
  })

  it.effect("is not started again with a grant that changed", () => {
    const fake = mortal()
    const variables = { TOKEN: "first-value-of-the-token" }
    return registry((servers) =>
      Effect.gen(function* () {
        yield* servers.activate("a")
        yield* call()
        variables.TOKEN = "another-value-of-the-token"
        const error = yield* Effect.flip(call())
        assert.equal(error.code, "SIGIL_ENVIRONMENT_CHANGED")
        assert.include(error.text, "'TOKEN'")
        assert.notInclude(error.text, "value-of-the-token")
        yield* rest
        assert.equal((yield* Effect.flip(call())).code, "SIGIL_ENVIRONMENT_CHANGED")
        assert.equal(fake.links.length, 1)
        // Whoever asks for it starts it with the grant as it is now.
        yield* servers.activate("a")
        yield* call()
      })
    ).pipe(
      withFakes({
        servers: { a: fake.server },
        variables,
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
        ]
      })
    )
  })
})

describe("the servers of a run", () => {
  const crashing = (link: MemoryLink) => {
    queueMicrotask(() => link.end("It crashed at its start."))
    return fakeServer()(link)
  }

  it.effect("come up together; an optional one that fails is reported and skipped", () =>
    registry((servers) =>
      Effect.gen(function* () {
        const report = yield* servers.startEager
        assert.deepEqual(
          report.ready.map(({ server }) => server),
          ["a"]
        )
        assert.deepEqual(
          report.failed.map(({ failure, server }) => [server, failure.code]),
          [["b", "SIGIL_START_FAILED"]]
        )
        assert.equal(servers.status("lazy").state, "deferred")
      })
    ).pipe(
      withFakes({
        servers: { a: fakeServer(), b: crashing, lazy: fakeServer() },
        entries: [
          declared("a", { required: true }),
          declared("b"),
          declared("lazy", { startup: "lazy", required: true })
        ]
      })
    )
  )

  it.effect("are taken back in reverse order when a required one fails; the optional ones stay", () => {
    const closed: Array<string> = []
    const noting = (name: string) => (link: MemoryLink) => ({ ...fakeServer()(link), close: () => closed.push(name) })
    const late = (link: MemoryLink) => {
      setTimeout(() => link.end("It crashed at its start."), 30)
      return fakeServer(silent)(link)
    }
    return registry((servers) =>
      Effect.gen(function* () {
        yield* servers.activate("a")
        yield* servers.activate("b")
        const error = yield* Effect.flip(servers.startEager)
        assert.equal(error.code, "SIGIL_START_FAILED")
        assert.include(error.text, "It crashed at its start.")
        assert.include(error.text, "Taken back: 'b', 'a'.")
        assert.deepEqual(error.details?.["rolled_back"], ["b", "a"])
        assert.deepEqual(closed, ["b", "a"])
        assert.equal(servers.status("optional").state, "ready")
        for (const name of ["a", "b"]) assert.equal(servers.status(name).state, "deferred")
        assert.deepInclude(servers.status("late"), { state: "failed" })
        assert.equal(servers.status("late").failure?.code, "SIGIL_START_FAILED")
      })
    ).pipe(
      withFakes({
        servers: { a: noting("a"), b: noting("b"), late, optional: noting("optional") },
        entries: [
          declared("a", { required: true }),
          declared("b", { required: true }),
          declared("late", { required: true }),
          declared("optional")
        ]
      })
    )
  })
})

describe("an end that cannot be confirmed", () => {
  const sticky = {
    complete: false,
    reason: "survivors",
    survivors: [{ pid: 4711, command: "node" }],
    steps: [],
    durationMs: 1
  }
  const crashing = (link: MemoryLink) => {
    queueMicrotask(() => link.end("It crashed at its start."))
    return fakeServer()(link)
  }

  it.effect("of a crashed server keeps the next one from being started beside it", () => {
    const fake = mortal()
    let left = true
    return registry((servers) =>
      Effect.gen(function* () {
        yield* servers.activate("a")
        fake.links[0]?.end()
        yield* rest
        const error = yield* Effect.flip(call())
        assert.equal(error.code, "SIGIL_CLEANUP_INCOMPLETE")
        assert.include(error.text, "node (4711)")
        yield* TestClock.adjust(600_000)
        assert.equal(fake.links.length, 1)
        left = false
        yield* servers.activate("a")
        const cleanups = yield* servers.closeAll
        assert.deepEqual(
          cleanups.map(({ report }) => report.complete),
          [false, true]
        )
      })
    ).pipe(withFakes({ servers: { a: fake.server }, cleanup: () => (left ? sticky : undefined) }))
  })

  it.effect("of a replaced generation takes the replacement with it", () => {
    const fake = mortal()
    let old: string | undefined
    return registry((servers) =>
      Effect.gen(function* () {
        const generation = yield* servers.activate("a")
        old = generation.id
        const error = yield* Effect.flip(servers.refresh("a"))
        assert.equal(error.code, "SIGIL_CLEANUP_INCOMPLETE")
        assert.equal(servers.status("a").state, "failed")
        assert.equal(fake.closed.length, 2)
      })
    ).pipe(
      withFakes({ servers: { a: fake.server }, cleanup: ({ generation }) => (generation === old ? sticky : undefined) })
    )
  })

  it.effect("of an optional server fails the set it belongs to", () =>
    registry((servers) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(servers.startEager)
        assert.include(error.text, "It crashed at its start.")
        assert.equal(error.details?.["cleanup_completed"], false)
        assert.equal(servers.status("fine").state, "deferred")
      })
    ).pipe(
      withFakes({
        servers: { fine: fakeServer(), b: crashing },
        cleanup: ({ server }) => (server === "b" ? sticky : undefined)
      })
    )
  )
})

/**
 * Random refreshes and crashes under load: at the end one live generation per server, and no answer ever came from
 * another generation than the one it is said to come from.
 */
import { describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import * as fc from "fast-check"
import { assert } from "vitest"
import * as RestartPolicy from "../../src/server/RestartPolicy.ts"
import { Registry } from "../../src/server/Registry.ts"
import { headless } from "../../src/tools/Caller.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"
import type { MemoryLink } from "../../src/transport/MemoryTransport.ts"
import { declared, withFakes } from "../support/FakeRuntime.ts"
import { fakeServer, text, tool } from "../support/FakeServer.ts"

/** A server whose answers say which connection gave them and to which token. */
const herd = () => {
  const live = new Map<string, MemoryLink>()
  const starting = new Set<string>()
  let most = 0
  const server = (link: MemoryLink) => {
    const id = link.request.generation
    live.set(id, link)
    most = Math.max(most, live.size)
    return {
      ...fakeServer({
        tools: [tool("echo"), tool("slow")],
        methods: {
          "tools/call": (params, _link, request) => {
            const answer = text(`${id} ${JSON.stringify(params["arguments"])}`)
            if (params["name"] !== "slow") return answer
            setImmediate(() => link.send({ jsonrpc: "2.0", id: request, result: answer }))
            return undefined
          }
        }
      })(link),
      close: () => live.delete(id)
    }
  }
  const crash = (): void => {
    const [link] = live.values()
    if (link === undefined) return
    live.delete(link.request.generation)
    link.end("It crashed.")
  }
  return { server, live, starting, crash, most: () => most }
}

const tick = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

/** Runs the events against one server under load; what it came to. */
const run = (events: ReadonlyArray<"refresh" | "reload" | "crash" | "wait">, refresh: "overlap" | "exclusive") => {
  const { crash, live, most, server } = herd()
  let version = 0
  const fake = {
    servers: { a: server },
    /** Another entry after each reload. */
    get entries() {
      return [declared("a", { refresh, toolTimeoutMs: 30_000 + version })]
    }
  }
  return Effect.gen(function* () {
    const servers = yield* Registry
    const pipeline = yield* Pipeline
    let over = false
    let answered = 0
    let failed = 0
    let calls = 0
    const caller = (tool: string) =>
      Effect.gen(function* () {
        const token = String((calls += 1))
        const exit = yield* Effect.either(pipeline.call(headless("load"), { server: "a", tool, args: { token } }))
        if (exit._tag === "Left") failed += 1
        else {
          answered += 1
          const content = JSON.stringify(exit.right.result["content"])
          assert.include(
            content,
            JSON.stringify(`${exit.right.generation.id} ${JSON.stringify({ token })}`),
            "the answer is of its own generation and call"
          )
        }
        yield* tick
      }).pipe(Effect.repeat({ until: () => over }))
    yield* servers.activate("a")
    const load = yield* Effect.forEach(["echo", "slow", "echo", "slow"], (tool) => Effect.fork(caller(tool)))
    for (const event of events) {
      if (event === "refresh") yield* Effect.ignore(servers.refresh("a"))
      if (event === "reload") {
        version += 1
        assert.deepEqual((yield* servers.reload).changed, ["a"])
      }
      if (event === "crash") {
        crash()
        // Attempts are counted by the minute; this test is about order.
        yield* TestClock.adjust(RestartPolicy.WINDOW_MS)
      }
      yield* tick
    }
    over = true
    yield* Effect.forEach(load, Fiber.join)
    yield* servers.activate("a")
    const { generation, state } = servers.status("a")
    assert.equal(state, "ready")
    assert.equal(generation?.declaration.toolTimeoutMs, 30_000 + version, "of the entry that holds now")
    assert.deepEqual([...live.keys()], [generation?.id], "one live generation, and it is the one that answers")
    assert.isAtMost(most(), refresh === "exclusive" ? 1 : 2)
    const reports = yield* servers.closeAll
    assert.isTrue(reports.every(({ report }) => report.complete))
    assert.equal(live.size, 0)
    return { answered, failed, calls }
  }).pipe(withFakes(fake))
}

const events = fc.array(fc.constantFrom("refresh" as const, "reload" as const, "crash" as const, "wait" as const), {
  minLength: 1,
  maxLength: 25
})

describe("generations under load", () => {
  for (const refresh of ["overlap", "exclusive"] as const) {
    it.effect(
      `are one at a time and keep their answers apart through 250 refreshes, reloads and crashes (${refresh})`,
      () =>
        Effect.gen(function* () {
          const lists = fc.sample(events, { numRuns: 60, seed: 42 })
          let happened = 0
          let answered = 0
          for (const list of lists) {
            if (happened >= 250) break
            happened += list.filter((event) => event !== "wait").length
            answered += (yield* run(list, refresh)).answered
          }
          assert.isAtLeast(happened, 250)
          assert.isAtLeast(answered, 1_000)
        }),
      60_000
    )
  }
})

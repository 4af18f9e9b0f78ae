/** Fifty random refreshes and crashes of a real server under load, and the end of a host that is killed. */
import { describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as fc from "fast-check"
import { afterAll, assert, beforeAll } from "vitest"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import * as Library from "../../src/runtime/Library.ts"
import * as Transports from "../../src/runtime/Transports.ts"
import { Registry } from "../../src/server/Registry.ts"
import { headless } from "../../src/tools/Caller.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"
import { isAlive, repository } from "../support/Command.ts"

const server = path.join(repository, "test", "support", "servers", "pid.mjs")
let base = ""
beforeAll(() => {
  base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-generations-")))
})
afterAll(() => fs.rmSync(base, { recursive: true, force: true }))

const layer = (refresh: "overlap" | "exclusive", file: string) => {
  const options = {
    mcpConfig: [
      JSON.stringify({
        mcpServers: {
          a: { command: process.execPath, args: [server, file], refresh, trust: { approvalDefault: "allow" } }
        }
      })
    ],
    strict: true
  }
  return Library.layerWithTransport(options).pipe(
    Layer.provide(Transports.layerProcesses),
    Layer.provide(
      HostEnvironment.layerTest({ variables: { PATH: process.env["PATH"] ?? "" }, homeDirectory: base, cwd: base })
    )
  )
}

/** Pids of every process of the server that ever ran. */
const started = (file: string): ReadonlyArray<number> => fs.readFileSync(file, "utf8").trim().split("\n").map(Number)

describe("real generations under load", () => {
  for (const refresh of ["overlap", "exclusive"] as const) {
    it.live(
      `are one at the end of 25 random refreshes and crashes, and gone afterwards (${refresh})`,
      () => {
        const file = path.join(base, `pids-${refresh}`)
        return Effect.gen(function* () {
          const servers = yield* Registry
          const pipeline = yield* Pipeline
          let over = false
          let answered = 0
          const load = Effect.gen(function* () {
            const token = String(Math.random())
            const exit = yield* Effect.either(
              pipeline.call(headless("load"), { server: "a", tool: "pid", args: { token } })
            )
            if (exit._tag === "Left") {
              // In the moment of a crash, or a refused sixth attempt; never anything else.
              assert.include(["SIGIL_CONNECTION_LOST", "SIGIL_START_FAILED"], exit.left.code, exit.left.text)
              yield* Effect.sleep("5 millis")
            } else {
              answered += 1
              const { generation, result } = exit.right
              assert.deepEqual(result["content"], [{ type: "text", text: `${generation.wire.pid} ${token}` }])
            }
          }).pipe(Effect.repeat({ until: () => over }))
          yield* servers.activate("a")
          const fibers = yield* Effect.forEach([1, 2, 3, 4], () => Effect.fork(load))
          const events = fc.sample(fc.constantFrom("refresh" as const, "refresh" as const, "crash" as const), {
            numRuns: 25,
            seed: 7
          })
          const turbulence = Effect.forEach(
            events,
            (event) =>
              Effect.gen(function* () {
                const before = answered
                if (event === "refresh") yield* servers.refresh("a")
                else {
                  const { generation } = servers.status("a")
                  if (generation?.wire.pid !== undefined) {
                    process.kill(generation.wire.pid, "SIGKILL")
                    // Explicit asks are not counted as attempts of sigil's own, but they have to find it dead.
                    yield* Deferred.await(generation.connection.ended)
                  }
                  yield* servers.activate("a")
                }
                // Every generation gets to answer.
                yield* Effect.repeat(Effect.sleep("2 millis"), { until: () => answered > before })
              }),
            { discard: true }
          )
          // A caller that saw something wrong ends the test at once.
          yield* Effect.raceFirst(turbulence, Fiber.joinAll(fibers))
          over = true
          yield* Effect.forEach(fibers, Fiber.join)
          const generation = yield* servers.activate("a")
          assert.deepEqual(started(file).filter(isAlive), [generation.wire.pid])
          assert.isAbove(answered, 20)
          const reports = yield* servers.closeAll
          assert.isTrue(reports.every(({ report }) => report.complete))
          assert.deepEqual(started(file).filter(isAlive), [])
        }).pipe(Effect.provide(layer(refresh, file)))
      },
      90_000
    )
  }
})

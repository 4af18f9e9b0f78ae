/** A plugin counts as its manifest was read: a change is met before the start, in the wait for a turn, and by a reload. */
import type { OpenRequest, StdioPlan } from "../../src/transport/Transport.ts"
import { describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { assert } from "vitest"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import * as Library from "../../src/runtime/Library.ts"
import { Registry } from "../../src/server/Registry.ts"
import type { DynamicServers } from "../../src/server/DynamicServers.ts"
import * as MemoryTransport from "../../src/transport/MemoryTransport.ts"
import { fakeServer } from "../support/FakeServer.ts"

const SERVER = "plugin:p:s"
const manifest = [
  'id = "p"',
  "[[mcp_servers]]",
  'name = "s"',
  'transport = "stdio"',
  'command = "node"',
  'args = ["${PLUGIN_ROOT}/s.mjs"]',
  ""
].join("\n")

/** The plan of the first process. */
const launched = (opened: ReadonlyArray<{ readonly request: OpenRequest }>): StdioPlan => {
  const plan = opened[0]?.request.plan
  if (plan?._tag !== "stdio") throw new Error("nothing was launched")
  return plan
}

/** A home with one plugin of the user's, over in-process servers. */
const world = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-plugin-")))),
    (base) => Effect.sync(() => fs.rmSync(base, { recursive: true, force: true }))
  ),
  (base) => {
    const file = path.join(base, ".sigil/plugins/p/plugin.toml")
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.mkdirSync(path.join(base, "project"))
    fs.writeFileSync(file, manifest)
    const opened: Array<MemoryTransport.MemoryLink> = []
    const server: MemoryTransport.MemoryServer = (link) => {
      opened.push(link)
      return fakeServer()(link)
    }
    return {
      base,
      file,
      opened,
      run: <A, E>(program: Effect.Effect<A, E, Registry>, servers: DynamicServers = {}) =>
        Effect.provide(
          program,
          Library.layerWithTransport({ servers }).pipe(
            Layer.provide(MemoryTransport.layer({ [SERVER]: server, lax: server })),
            Layer.provide(
              HostEnvironment.layerTest({
                variables: { PATH: path.dirname(process.execPath) },
                homeDirectory: base,
                cwd: path.join(base, "project")
              })
            )
          )
        )
    }
  }
)

/** Lets everything happen that needs no time. */
const rest = Effect.repeatN(Effect.yieldNow(), 50).pipe(
  Effect.zipRight(Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))),
  Effect.repeatN(5)
)

describe("the manifest of a plugin", () => {
  it.scoped("is the one that was read, or nothing starts", () =>
    Effect.gen(function* () {
      const { base, file, opened, run } = yield* world
      yield* run(
        Effect.gen(function* () {
          const registry = yield* Registry
          fs.appendFileSync(file, "# a remark\n")
          const failure = yield* Effect.flip(registry.activate(SERVER))
          assert.deepEqual(
            [failure.code, failure.reason],
            ["SIGIL_PLUGIN_CHANGED", "plugin_origin_attestation_mismatch"]
          )
          fs.writeFileSync(file, manifest)
          yield* registry.activate(SERVER)
          assert.deepEqual(launched(opened).args, [path.join(base, ".sigil/plugins/p/s.mjs")])
          assert.equal(launched(opened).cwd, path.join(base, ".sigil/plugins/p"))
        })
      )
      assert.lengthOf(opened, 1)
    })
  )

  it.scoped("is looked at again when a start that had to wait gets its turn", () =>
    Effect.gen(function* () {
      const { file, opened, run } = yield* world
      const mute: MemoryTransport.MemoryServer = () => ({ receive: () => undefined })
      const many = Array.from({ length: 64 }, (_, index) => `mute${index}`)
      yield* run(
        Effect.gen(function* () {
          const registry = yield* Registry
          const others = yield* Effect.forEach(many, (name) => Effect.fork(registry.activate(name)))
          yield* rest
          const start = yield* Effect.fork(Effect.flip(registry.activate(SERVER)))
          yield* rest
          assert.isTrue(registry.status(SERVER).queued)
          fs.appendFileSync(file, "# a remark\n")
          yield* Effect.forEach(others, Fiber.interrupt, { concurrency: "unbounded" })
          assert.equal((yield* Fiber.join(start)).code, "SIGIL_PLUGIN_CHANGED")
        }),
        Object.fromEntries(many.map((name) => [name, { inProcess: mute }]))
      )
      assert.lengthOf(opened, 0)
    })
  )

  it.scoped("that changed or went is taken over by a reload", () =>
    Effect.gen(function* () {
      const { file, opened, run } = yield* world
      yield* run(
        Effect.gen(function* () {
          const registry = yield* Registry
          yield* registry.activate(SERVER)
          assert.deepEqual((yield* registry.reload).unchanged, [SERVER])
          fs.appendFileSync(file, "# a remark\n")
          assert.deepEqual((yield* registry.reload).changed, [SERVER])
          assert.lengthOf(opened, 1)
          yield* registry.activate(SERVER)
          assert.lengthOf(opened, 2)
          fs.rmSync(path.dirname(file), { recursive: true })
          assert.deepEqual((yield* registry.reload).removed, [SERVER])
          assert.equal((yield* Effect.flip(registry.activate(SERVER))).code, "SIGIL_UNKNOWN_SERVER")
        })
      )
    })
  )
})

describe("missing_env", () => {
  it.scoped("refuses a start, or leaves the text as it is and says so", () =>
    Effect.gen(function* () {
      const { base, opened, run } = yield* world
      const servers = { lax: { command: "node", args: ["${NOT_SET}"] } }
      const ask = Effect.flatMap(Registry, (registry) => registry.activate("lax"))
      assert.equal((yield* Effect.flip(run(ask, servers))).code, "SIGIL_MISSING_VARIABLE")
      fs.writeFileSync(path.join(base, ".sigil/sigil.toml"), '[mcp]\nmissing_env = "literal"\n')
      const generation = yield* run(ask, servers)
      assert.deepEqual(launched(opened).args, ["${NOT_SET}"])
      assert.include(generation.warnings.join(), "NOT_SET")
    })
  )
})

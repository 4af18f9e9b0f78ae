/** The library's compositions: servers as values, their place among other sources, parts replaced by others. */
import { describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { assert } from "vitest"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import { layerMemory as approvalsMemory } from "../../src/policy/ApprovalStore.ts"
import { emptyApprovals } from "../../src/policy/ProjectApproval.ts"
import type { DynamicServer, DynamicServers } from "../../src/server/DynamicServers.ts"
import * as Library from "../../src/runtime/Library.ts"
import { Registry } from "../../src/server/Registry.ts"
import { headless } from "../../src/tools/Caller.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"
import * as MemoryTransport from "../../src/transport/MemoryTransport.ts"
import * as ToolServer from "../../src/transport/ToolServer.ts"

/** A server whose only tool says which server it is. */
const says = (word: string): MemoryTransport.MemoryServer =>
  ToolServer.make({
    tools: { who: { description: "", inputSchema: { type: "object" }, run: () => Effect.succeed(word) } }
  })
const allow = { trust: { approvalDefault: "allow" } } as const

const who = (server: string) =>
  Effect.flatMap(Pipeline, (pipeline) =>
    Effect.map(pipeline.call(headless("test"), { server, tool: "who", args: {} }), ({ result }) =>
      JSON.stringify(result["content"])
    )
  )

/** A home and a project, both empty, and the environment of a program that runs there. */
const home = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-library-")))),
    (base) => Effect.sync(() => fs.rmSync(base, { recursive: true, force: true }))
  ),
  (base) => {
    const project = path.join(base, "project")
    fs.mkdirSync(project)
    return {
      project,
      write: (file: string, text: string) => {
        const target = path.join(base, file)
        fs.mkdirSync(path.dirname(target), { recursive: true })
        fs.writeFileSync(target, text)
      },
      environment: HostEnvironment.layerTest({
        variables: { PATH: path.dirname(process.execPath) },
        homeDirectory: base,
        cwd: project
      })
    }
  }
)

/** A declaration file of one server. */
const declares = (name: string, command: string, more: object = {}): string =>
  JSON.stringify({ mcpServers: { [name]: { command, ...more } } })

describe("servers as values", () => {
  it.scoped("have the names of `user` and below, and not those of `cli`", () =>
    Effect.gen(function* () {
      const { environment, write } = yield* home
      write("project/.mcp.json", declares("mine", "node"))
      write(".sigil/settings.json", JSON.stringify({ mcpServers: { mine: { command: "node", transport: "stdio" } } }))
      const servers: DynamicServers = {
        mine: { inProcess: says("value"), ...allow },
        theirs: { inProcess: says("value"), ...allow }
      }
      const layer = Library.layerWithTransport({ servers, mcpConfig: [declares("theirs", "node", allow)] }).pipe(
        Layer.provide(MemoryTransport.layer({ theirs: says("file") })),
        Layer.provide(environment)
      )
      const program = Effect.gen(function* () {
        const { snapshot } = yield* Registry
        assert.deepEqual(
          snapshot.shadowed.map(({ name, scope, by }) => [name, scope, by.scope]),
          [
            ["theirs", "dynamic", "cli"],
            ["mine", "user", "dynamic"],
            ["mine", "project", "dynamic"]
          ]
        )
        assert.include(yield* who("mine"), "value")
        // Shadowed by name, so the value of this name is not opened: the transport of the program is.
        assert.include(yield* who("theirs"), "file")
      })
      yield* Effect.provide(program, layer)
    })
  )

  it.effect("that are no tables of keys are broken entries, at the start and later", () =>
    Effect.gen(function* () {
      const bad: ReadonlyArray<unknown> = [null, undefined, 7, "node", true, ["node"], () => "node", Symbol("node")]
      // What a program without types may hand over.
      const servers = Object.fromEntries(bad.map((entry, index) => [`s${index}`, entry])) as unknown as DynamicServers
      const program = Effect.gen(function* () {
        const registry = yield* Registry
        const isRefused = ({ code, text }: { readonly code: string; readonly text: string }): void => {
          assert.equal(code, "SIGIL_CONFIG_INVALID")
          assert.include(text, "expected a server entry")
        }
        for (const [index, entry] of bad.entries()) {
          isRefused(yield* Effect.flip(registry.activate(`s${index}`)))
          // As above.
          isRefused(yield* Effect.flip(registry.declare("late", entry as DynamicServer)))
        }
        assert.include(yield* who("mine"), "value")
      })
      const mine = { inProcess: says("value"), ...allow }
      yield* Effect.provide(program, Library.layerTest({ servers: { ...servers, mine } }))
    })
  )

  it.scoped("are the only ones under `strict`", () =>
    Effect.gen(function* () {
      const { environment, write } = yield* home
      write("project/.mcp.json", declares("other", "node"))
      const options = { strict: true, servers: { mine: { inProcess: says("value"), ...allow } } }
      const layer = Library.layerWithTransport(options).pipe(
        Layer.provide(MemoryTransport.layer({})),
        Layer.provide(environment)
      )
      const names = yield* Effect.provide(
        Effect.map(Registry, ({ snapshot }) => snapshot.servers.length),
        layer
      )
      assert.equal(names, 1)
    })
  )

  it.effect("cost only themselves when they are faulty", () =>
    Effect.gen(function* () {
      const wrong = { command: "node", args: [1] }
      // A caller without types can write anything.
      const servers = { wrong, fine: { inProcess: says("value"), ...allow } } as unknown as DynamicServers
      const program = Effect.gen(function* () {
        const refused = yield* Effect.flip(who("wrong"))
        assert.equal(refused.code, "SIGIL_CONFIG_INVALID")
        assert.equal(refused.where?.field, "mcpServers.wrong.args[0]")
        assert.include(yield* who("fine"), "value")
      })
      yield* Effect.provide(program, Library.layerTest({ servers }))
    })
  )

  it.effect("may have any name", () =>
    Effect.gen(function* () {
      const servers = Object.fromEntries(
        ["a b", "${HOME}", "$$", "constructor"].map((name) => [name, { inProcess: says(name), ...allow }])
      )
      const program = Effect.forEach(Object.keys(servers), (name) =>
        Effect.map(who(name), (said) => assert.include(said, name))
      )
      yield* Effect.provide(program, Library.layerTest({ servers }))
    })
  )

  it.effect("start nothing in memory: a command is refused by the transport", () =>
    Effect.gen(function* () {
      const servers = { real: { command: process.execPath, ...allow } }
      const refused = yield* Effect.flip(Effect.provide(who("real"), Library.layerTest({ servers })))
      assert.equal("reason" in refused ? refused.reason : "", "unknown_memory_server")
    })
  )

  it.scoped("start under any network policy, and their calls obey it", () =>
    Effect.gen(function* () {
      const { environment, write } = yield* home
      write(".sigil/sigil.toml", '[web]\nnetwork_mode = "deny"\n')
      const servers = { mine: { inProcess: says("value"), ...allow }, real: { command: "node", ...allow } }
      const layer = Library.layerWithTransport({ servers }).pipe(
        Layer.provide(MemoryTransport.layer({ real: says("never") })),
        Layer.provide(environment)
      )
      const program = Effect.gen(function* () {
        const pipeline = yield* Pipeline
        assert.equal((yield* pipeline.tools("mine")).length, 1)
        assert.equal((yield* Effect.flip(who("mine"))).code, "SIGIL_DENIED")
        assert.equal((yield* Effect.flip(pipeline.tools("real"))).code, "SIGIL_NETWORK_REFUSED")
      })
      yield* Effect.provide(program, layer)
    })
  )

  it.effect("give the environment to nobody in this process", () =>
    Effect.gen(function* () {
      let seen: object | undefined
      const inProcess: MemoryTransport.MemoryServer = (link) => {
        const { plan } = link.request
        seen = plan._tag === "stdio" ? plan.env : undefined
        return says("value")(link)
      }
      const layer = Library.layerTest({ servers: { mine: { inProcess, ...allow } }, variables: { PATH: "/bin" } })
      yield* Effect.provide(who("mine"), layer)
      assert.deepEqual(seen, {})
    })
  )
})

describe("parts", () => {
  it.scoped("that are provided to the core decide in place of the stored ones", () =>
    Effect.gen(function* () {
      const { environment, project, write } = yield* home
      write("project/.mcp.json", declares("theirs", "node"))
      const parts = Library.layerParts()
      const transport = MemoryTransport.layer({ theirs: says("approved") })
      const ask = Effect.flatMap(Registry, (registry) => registry.activate("theirs"))
      const stored = Library.layerCore.pipe(Layer.provide(parts), Layer.provide(transport), Layer.provide(environment))
      const pending = yield* Effect.flip(Effect.scoped(Effect.provide(ask, stored)))
      assert.equal(pending.code, "SIGIL_PENDING_APPROVAL")

      const everything = approvalsMemory({ ...emptyApprovals, approveAllProjects: [project] })
      const own = Library.layerCore.pipe(
        Layer.provide(everything),
        Layer.provide(parts),
        Layer.provide(transport),
        Layer.provide(environment)
      )
      const generation = yield* Effect.provide(ask, own)
      assert.equal(generation.server, "theirs")
    })
  )
})

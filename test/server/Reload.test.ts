/** What a configuration that changes while servers run does to them: what goes on, what ends, what starts anew. */
import { describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as fc from "fast-check"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Layer from "effect/Layer"
import { assert } from "vitest"
import { defaultTrust } from "../../src/config/Scopes.ts"
import { defaultSettings } from "../../src/config/Settings.ts"
import { type Entry, nameOf } from "../../src/config/ServerDeclaration.ts"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import { Toggles } from "../../src/policy/Toggles.ts"
import * as Library from "../../src/runtime/Library.ts"
import { Registry } from "../../src/server/Registry.ts"
import { changesBetween } from "../../src/server/Reload.ts"
import { type Caller, headless } from "../../src/tools/Caller.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"
import * as MemoryTransport from "../../src/transport/MemoryTransport.ts"
import * as ToolServer from "../../src/transport/ToolServer.ts"
import { declared, type FakeRuntime, withFakes } from "../support/FakeRuntime.ts"
import { fakeServer, text, tool } from "../support/FakeServer.ts"

/** A server that counts its generations and answers `slow` when it is told to. */
const counted = () => {
  const links: Array<MemoryTransport.MemoryLink> = []
  const held: Array<() => void> = []
  const server: MemoryTransport.MemoryServer = (link) => {
    links.push(link)
    const number = links.length
    return fakeServer({
      tools: [tool("which"), tool("slow")],
      methods: {
        "tools/call": (params, _link, id) => {
          const answer = text(`generation ${number}`)
          if (params["name"] !== "slow") return answer
          held.push(() => link.send({ jsonrpc: "2.0", id, result: answer }))
          return undefined
        }
      }
    })(link)
  }
  return { links, held, server }
}

const which = (server: string, name = "which") =>
  Effect.flatMap(Pipeline, (pipeline) =>
    Effect.map(pipeline.call(headless("test"), { server, tool: name, args: {} }), ({ result }) =>
      JSON.stringify(result["content"])
    )
  )
/** Lets everything happen that needs no time. */
const rest = Effect.repeatN(Effect.yieldNow(), 50).pipe(
  Effect.zipRight(Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))),
  Effect.repeatN(3)
)

/** A runtime whose entries a test replaces. */
const changing = (servers: FakeRuntime["servers"], entries: ReadonlyArray<Entry>, more: Partial<FakeRuntime> = {}) => {
  const state = { entries, settings: defaultSettings }
  const fake: FakeRuntime = {
    servers,
    snapshot: {
      get servers() {
        return state.entries
      },
      get settings() {
        return state.settings
      }
    },
    ...more
  }
  return { state, run: withFakes(fake) }
}

describe("reload", () => {
  it.effect("keeps what is unchanged, retires what is not, and starts nothing by itself", () => {
    const [a, b, c] = [counted(), counted(), counted()]
    const { run, state } = changing({ a: a.server, b: b.server, c: c.server }, [
      declared("a"),
      declared("b"),
      declared("c")
    ])
    return run(
      Effect.gen(function* () {
        const registry = yield* Registry
        for (const name of ["a", "b", "c"]) yield* registry.activate(name)
        // Another line of the file is no change; another argument is one.
        state.entries = [
          declared("a", { source: { file: "test", line: 9, column: 1 } }),
          declared("b", { toolTimeoutMs: 1_000 }),
          declared("d")
        ]
        const report = yield* registry.reload
        assert.deepEqual([report.unchanged, report.changed, report.removed, report.added], [["a"], ["b"], ["c"], ["d"]])
        assert.deepEqual([report.refused, report.incomplete, report.problems], [[], [], []])
        assert.deepEqual(registry.snapshot.servers.map(nameOf), ["a", "b", "d"])
        assert.deepEqual([a.links.length, b.links.length, c.links.length], [1, 1, 1])
        assert.deepEqual(
          ["a", "b", "c", "d"].map((name) => registry.status(name).state),
          ["ready", "deferred", "deferred", "deferred"]
        )
        assert.include(yield* which("b"), "generation 2")
        assert.equal(registry.status("b").generation?.declaration.toolTimeoutMs, 1_000)
        assert.include(yield* which("a"), "generation 1")
        assert.equal((yield* Effect.flip(which("c"))).code, "SIGIL_UNKNOWN_SERVER")
        // The end of the one that left is still evidence.
        assert.deepEqual((yield* registry.closeAll).map(({ server }) => server).toSorted(), ["a", "b", "b", "c"])
      })
    )
  })

  it.effect("lets calls in flight end on what they began with, and gives later ones the new entry", () => {
    const a = counted()
    const { run, state } = changing({ a: a.server }, [declared("a")])
    return run(
      Effect.gen(function* () {
        const registry = yield* Registry
        yield* registry.activate("a")
        const early = yield* Effect.fork(which("a", "slow"))
        yield* rest
        state.entries = [declared("a", { excludeTools: ["none"] })]
        const reload = yield* Effect.fork(registry.reload)
        yield* rest
        const late = yield* Effect.fork(which("a"))
        yield* rest
        assert.equal(a.links.length, 1, "nothing starts beside the old one")
        for (const answer of a.held) answer()
        assert.include(yield* Fiber.join(early), "generation 1")
        assert.deepEqual((yield* Fiber.join(reload)).changed, ["a"])
        assert.include(yield* Fiber.join(late), "generation 2")
      })
    )
  })

  it.effect("gives those who wait for a start the new entry", () => {
    let mute = true
    const seen: Array<number> = []
    const server: MemoryTransport.MemoryServer = (link) =>
      fakeServer(mute ? { methods: { initialize: () => undefined } } : {})(link)
    const { run, state } = changing({ a: server }, [declared("a")])
    return run(
      Effect.gen(function* () {
        const registry = yield* Registry
        const waiting = yield* Effect.fork(registry.activate("a"))
        yield* rest
        mute = false
        state.entries = [declared("a", { toolTimeoutMs: 5 })]
        yield* registry.reload
        const generation = yield* Fiber.join(waiting)
        seen.push(generation.declaration.toolTimeoutMs)
        assert.deepEqual(seen, [5])
      })
    )
  })

  it.effect("ends a running server that its user switched off meanwhile, though its entry is the same", () => {
    const a = counted()
    const { run } = changing({ a: a.server }, [declared("a")])
    return run(
      Effect.gen(function* () {
        const registry = yield* Registry
        yield* registry.activate("a")
        yield* Effect.flatMap(Toggles, (toggles) => toggles.set("/", "a", false))
        const report = yield* registry.reload
        assert.deepEqual(report.unchanged, ["a"])
        assert.deepEqual(
          report.refused.map(({ failure, name }) => [name, failure.code]),
          [["a", "SIGIL_DISABLED"]]
        )
        assert.isUndefined(registry.status("a").generation)
        assert.equal((yield* Effect.flip(registry.activate("a"))).code, "SIGIL_DISABLED")
      })
    )
  })

  it.effect("judges calls by the settings that hold now", () => {
    const a = counted()
    const { run, state } = changing({ a: a.server }, [declared("a")])
    return run(
      Effect.gen(function* () {
        const registry = yield* Registry
        yield* which("a")
        const { permission } = defaultSettings
        state.settings = { ...defaultSettings, permission: { ...permission, tools: { mcp__a__which: "deny" } } }
        yield* registry.reload
        assert.equal((yield* Effect.flip(which("a"))).code, "SIGIL_DENIED")
        assert.equal(a.links.length, 1)
      })
    )
  })

  it.effect("asks again about the calls of a server that is another one now", () => {
    const [a, b] = [counted(), counted()]
    const ask = { ...defaultTrust, approvalDefault: "ask" } as const
    const { run, state } = changing({ a: a.server, b: b.server }, [
      declared("a", { trust: ask }),
      declared("b", { trust: ask })
    ])
    const asked: Array<string> = []
    const caller: Caller = {
      ...headless("test"),
      approver: {
        ask: ({ server }) =>
          Effect.sync(() => {
            asked.push(server)
            return "session" as const
          })
      }
    }
    const both = Effect.flatMap(Pipeline, (pipeline) =>
      Effect.forEach(["a", "b"], (server) => pipeline.call(caller, { server, tool: "which", args: {} }))
    )
    return run(
      Effect.gen(function* () {
        const registry = yield* Registry
        yield* both
        yield* both
        assert.deepEqual(asked, ["a", "b"])
        state.entries = [declared("a", { trust: ask, toolTimeoutMs: 5_000 }), declared("b", { trust: ask })]
        yield* registry.reload
        yield* both
        assert.deepEqual(asked, ["a", "b", "a"])
      })
    )
  })

  it("finds what a naive comparison finds", () => {
    const facts = fc.uniqueArray(
      fc.tuple(fc.constantFrom("a", "b", "c", "__proto__"), fc.integer({ min: 1, max: 2 })),
      {
        selector: ([name]) => name
      }
    )
    fc.assert(
      fc.property(facts, facts, fc.boolean(), (before, after, moved) => {
        const side = (list: typeof before, workspace: string) => ({
          workspace,
          servers: list.map(([name, toolTimeoutMs]) => declared(name, { toolTimeoutMs }))
        })
        const found = changesBetween(side(before, "/"), side(after, moved ? "/other" : "/"))
        const was = new Map(before)
        const is = new Map(after)
        assert.deepEqual(found, {
          added: after.map(([name]) => name).filter((name) => !was.has(name)),
          changed: after
            .map(([name]) => name)
            .filter((name) => was.has(name) && (moved || was.get(name) !== is.get(name))),
          removed: before.map(([name]) => name).filter((name) => !is.has(name)),
          unchanged: after.map(([name]) => name).filter((name) => !moved && was.get(name) === is.get(name))
        })
      })
    )
  })
})

const says = (word: string): MemoryTransport.MemoryServer =>
  ToolServer.make({
    tools: { which: { description: "", inputSchema: { type: "object" }, run: () => Effect.succeed(word) } }
  })
const allow = { trust: { approvalDefault: "allow" } } as const

/** A home and a project, and the whole over them with in-process servers. */
const world = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-reload-")))),
    (base) => Effect.sync(() => fs.rmSync(base, { recursive: true, force: true }))
  ),
  (base) => {
    fs.mkdirSync(path.join(base, "project"))
    const file = (name: string) => path.join(base, name)
    return {
      write: (name: string, content: string) => {
        fs.mkdirSync(path.dirname(file(name)), { recursive: true })
        fs.writeFileSync(file(name), content)
      },
      layer: (options: Library.Options, servers: { readonly [name: string]: MemoryTransport.MemoryServer }) =>
        Library.layerWithTransport(options).pipe(
          Layer.provide(MemoryTransport.layer(servers)),
          Layer.provide(
            HostEnvironment.layerTest({
              variables: { PATH: path.dirname(process.execPath) },
              homeDirectory: base,
              cwd: file("project")
            })
          )
        )
    }
  }
)
const toml = (...lines: ReadonlyArray<string>): string =>
  [
    "[[mcp_servers]]",
    'name = "a"',
    'transport = "stdio"',
    'command = "node"',
    'trust = { approval_default = "allow" }',
    ...lines,
    ""
  ].join("\n")

describe("reload of files", () => {
  it.scoped("reads them again on request only, and changes nothing when one of the user's own is broken", () =>
    Effect.gen(function* () {
      const { layer, write } = yield* world
      write(".sigil/sigil.toml", toml())
      const a = counted()
      const program = Effect.gen(function* () {
        const registry = yield* Registry
        assert.include(yield* which("a"), "generation 1")
        write(".sigil/sigil.toml", `${toml()}x = = 1\n`)
        const before = registry.snapshot
        const failure = yield* Effect.flip(registry.reload)
        assert.equal(failure.code, "SIGIL_CONFIG_UNREADABLE")
        assert.strictEqual(registry.snapshot, before)
        assert.include(yield* which("a"), "generation 1")
        // A repository's broken file costs that file, as at the start; it keeps nobody from tightening a policy.
        write("project/.mcp.json", "{")
        write(".sigil/sigil.toml", `# another line\n${toml()}`)
        const report = yield* registry.reload
        assert.deepEqual(report.unchanged, ["a"])
        assert.lengthOf(report.problems, 1)
        assert.include(yield* which("a"), "generation 1")
        write(".sigil/sigil.toml", toml('args = ["more"]'))
        assert.deepEqual((yield* registry.reload).changed, ["a"])
        assert.include(yield* which("a"), "generation 2")
      })
      yield* Effect.provide(program, layer({}, { a: a.server }))
    })
  )

  it.scoped("keeps what a program declared", () =>
    Effect.gen(function* () {
      const { layer } = yield* world
      const program = Effect.gen(function* () {
        const registry = yield* Registry
        yield* registry.declare("b", { inProcess: says("declared"), ...allow })
        assert.include(yield* which("b"), "declared")
        const report = yield* registry.reload
        assert.deepEqual(report.unchanged, ["a", "b"])
        assert.include(yield* which("b"), "declared")
      })
      yield* Effect.provide(program, layer({ servers: { a: { inProcess: says("first"), ...allow } } }, {}))
    })
  )
})

describe("declare and withdraw", () => {
  it.scoped("put a server over those of files and take it away again", () =>
    Effect.gen(function* () {
      const { layer, write } = yield* world
      write(".sigil/sigil.toml", toml())
      const program = Effect.gen(function* () {
        const registry = yield* Registry
        assert.include(yield* which("a"), "generation 1")
        const over = yield* registry.declare("a", { inProcess: says("mine"), ...allow }, { origin: "ide" })
        assert.deepEqual([over.changed, over.added], [["a"], []])
        const [entry] = registry.snapshot.servers
        assert.deepEqual(entry?._tag === "Valid" ? [entry.declaration.scope, entry.declaration.origin] : [], [
          "dynamic",
          "ide"
        ])
        assert.include(yield* which("a"), "mine")
        // The same words with other code behind them are another server.
        assert.deepEqual(
          (yield* registry.declare("a", { inProcess: says("newer"), ...allow }, { origin: "ide" })).changed,
          ["a"]
        )
        assert.include(yield* which("a"), "newer")
        assert.deepEqual((yield* registry.withdraw("a")).changed, ["a"])
        assert.include(yield* which("a"), "generation 2")
        assert.equal((yield* Effect.flip(registry.withdraw("a"))).code, "SIGIL_UNKNOWN_SERVER")
      })
      yield* Effect.provide(program, layer({}, { a: counted().server }))
    })
  )

  it.scoped("refuse a faulty entry whole, and stay below the command line", () =>
    Effect.gen(function* () {
      const { layer } = yield* world
      const cli = JSON.stringify({ mcpServers: { a: { command: "node", ...allow } } })
      const program = Effect.gen(function* () {
        const registry = yield* Registry
        // A caller without types can write anything.
        const wrong = yield* Effect.flip(registry.declare("b", { command: "node", args: [1] } as never))
        assert.equal(wrong.code, "SIGIL_CONFIG_INVALID")
        assert.deepEqual(registry.snapshot.servers.map(nameOf), ["a"])
        const under = yield* registry.declare("a", { inProcess: says("mine"), ...allow })
        assert.deepEqual(under.unchanged, ["a"])
        assert.include(yield* which("a"), "generation 1")
      })
      yield* Effect.provide(program, layer({ mcpConfig: [cli] }, { a: counted().server }))
    })
  )

  it.effect("work on the servers of the start, too", () => {
    const program = Effect.gen(function* () {
      const registry = yield* Registry
      assert.include(yield* which("a"), "first")
      assert.deepEqual((yield* registry.withdraw("a")).removed, ["a"])
      assert.equal((yield* Effect.flip(which("a"))).code, "SIGIL_UNKNOWN_SERVER")
      yield* registry.declare("a", { inProcess: says("second"), ...allow })
      assert.include(yield* which("a"), "second")
    })
    return Effect.provide(program, Library.layerTest({ servers: { a: { inProcess: says("first"), ...allow } } }))
  })
})

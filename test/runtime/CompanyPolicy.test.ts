/** Company policy and servers that are declared as values: what an IDE declares is spared by the limit, and only that. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import type { DynamicServers } from "../../src/server/DynamicServers.ts"
import * as Library from "../../src/runtime/Library.ts"
import { Registry } from "../../src/server/Registry.ts"
import { headless } from "../../src/tools/Caller.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"
import * as MemoryTransport from "../../src/transport/MemoryTransport.ts"
import * as ToolServer from "../../src/transport/ToolServer.ts"

const server = ToolServer.make({
  tools: { t: { description: "", inputSchema: { type: "object" }, run: () => Effect.succeed("here") } }
})
const allow = { trust: { approvalDefault: "allow" } } as const
const servers: DynamicServers = {
  ide: { inProcess: server, origin: "ide", ...allow },
  own: { inProcess: server, ...allow }
}

const home = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-company-")))),
  (base) => Effect.sync(() => fs.rmSync(base, { recursive: true, force: true }))
)

/** Runs a program in a home with these settings and this managed file. */
const under = <A, E>(
  given: { readonly settings?: object; readonly managed?: object; readonly mcpJson?: object },
  program: Effect.Effect<A, E, Registry | Pipeline>
) =>
  Effect.gen(function* () {
    const base = yield* home
    const write = (file: string, content: object | undefined): void => {
      if (content === undefined) return
      fs.mkdirSync(path.dirname(path.join(base, file)), { recursive: true })
      fs.writeFileSync(path.join(base, file), JSON.stringify(content), { mode: 0o644 })
    }
    fs.mkdirSync(path.join(base, "project"))
    write(".sigil/settings.json", given.settings)
    write("etc/managed.json", given.managed)
    write("project/.mcp.json", given.mcpJson)
    const environment = HostEnvironment.layerTest({
      homeDirectory: base,
      cwd: path.join(base, "project"),
      managed: { file: path.join(base, "etc/managed.json"), ownerId: process.getuid?.() ?? 0 }
    })
    const layer = Library.layerWithTransport({ servers }).pipe(
      Layer.provide(MemoryTransport.layer({})),
      Layer.provide(environment)
    )
    return yield* Effect.provide(program, layer)
  })

/** What calls of both servers come to. */
const calls = Effect.flatMap(Pipeline, (pipeline) =>
  Effect.forEach(["ide", "own"], (name) =>
    Effect.match(pipeline.call(headless("test"), { server: name, tool: "t", args: {} }), {
      onFailure: ({ reason }) => reason,
      onSuccess: () => "called"
    })
  )
)

describe("servers as values under a company policy", () => {
  it.scoped("run where none is set", () =>
    Effect.map(under({}, calls), (found) => assert.deepEqual(found, ["called", "called"]))
  )

  for (const [where, given] of [
    ["the user's file", { settings: { policyLimits: { mcp: false } } }],
    [
      "the managed file",
      { managed: { policyLimits: { mcp: { allowed: false } } }, settings: { policyLimits: { mcp: true } } }
    ]
  ] as const)
    it.scoped(`are off by the limit of ${where}, but for an IDE's`, () =>
      Effect.map(under(given, calls), (found) => assert.deepEqual(found, ["called", "company_limit"]))
    )

  it.scoped("are denied by mcpPolicy, an IDE's too", () =>
    Effect.map(under({ managed: { mcpPolicy: { deniedServers: [{ name: "ide" }] } } }, calls), (found) =>
      assert.deepEqual(found, ["mcp_policy_denied", "called"])
    )
  )

  it.scoped("are the only ones that can be an IDE's: in a file the key means nothing", () =>
    under(
      { mcpJson: { mcpServers: { f: { command: "node", origin: "ide" } } } },
      Effect.gen(function* () {
        const entry = yield* Effect.flatMap(Registry, ({ find }) => find("f"))
        if (entry._tag === "Broken") return assert.fail(entry.broken.error.text)
        assert.isUndefined(entry.declaration.origin)
        assert.isNotEmpty(entry.declaration.warnings)
        const ide = yield* Effect.flatMap(Registry, ({ find }) => find("ide"))
        assert.deepEqual(ide._tag === "Valid" && [ide.declaration.origin, ide.declaration.warnings], ["ide", []])
      })
    )
  )
})

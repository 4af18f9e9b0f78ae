/** A name that means another address at the second dial: what listens there gets not even a connection. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as net from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import * as GuardedClient from "../../../src/net/GuardedClient.ts"
import * as Presenter from "../../../src/net/Presenter.ts"
import * as Resolver from "../../../src/net/Resolver.ts"
import * as HostEnvironment from "../../../src/platform/HostEnvironment.ts"
import * as Random from "../../../src/platform/Random.ts"
import * as Library from "../../../src/runtime/Library.ts"
import * as Transports from "../../../src/runtime/Transports.ts"
import { Registry } from "../../../src/server/Registry.ts"
import { headless } from "../../../src/tools/Caller.ts"
import { Pipeline } from "../../../src/tools/Pipeline.ts"
import * as RemoteTransport from "../../../src/transport/RemoteTransport.ts"
import { hostile } from "./Hostile.ts"

/** The one name that may be called unencrypted; the resolver of the test says what it means. */
const NAME = "localhost"
/** This machine as well, but no address that the rules admit. */
const ELSEWHERE = "127.0.0.2"
const SETTINGS = `[web]
proxy_mode = "direct"
allowed_private_hosts = ["${NAME}"]
allowed_private_cidrs = ["127.0.0.1/32"]
`

const temporary = Effect.acquireRelease(
  Effect.sync(() => {
    const home = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-rebinding-")))
    fs.writeFileSync(path.join(home, "sigil.toml"), SETTINGS)
    return home
  }),
  (home) => Effect.sync(() => fs.rmSync(home, { recursive: true, force: true }))
)

/** A server on the other address; counts who comes. */
const listeningElsewhere = (port: number) =>
  Effect.acquireRelease(
    Effect.async<{ readonly connections: () => number; readonly server: net.Server }>((resume) => {
      let connections = 0
      const server = net.createServer((socket) => {
        connections += 1
        socket.destroy()
      })
      server.listen(port, ELSEWHERE, () => resume(Effect.succeed({ connections: () => connections, server })))
    }),
    ({ server }) => Effect.async<void>((resume) => void server.close(() => resume(Effect.void)))
  )

describe("a name that resolves elsewhere at the second dial", () => {
  it.scopedLive("is refused for that message, and what listens there gets nothing", () =>
    Effect.gen(function* () {
      const home = yield* temporary
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => hostile({ era: "modern" })),
        ({ close }) => Effect.promise(close)
      )
      const other = yield* listeningElsewhere(server.port)
      let address = "127.0.0.1"
      const transport = RemoteTransport.layer.pipe(
        Layer.provide(Transports.layerProcesses),
        Layer.provide(GuardedClient.layer),
        Layer.provide(
          Layer.mergeAll(
            Resolver.layerTest((host) => (host === NAME ? [address] : undefined)),
            Presenter.layerTest(),
            Random.layer
          )
        )
      )
      const url = `http://${NAME}:${server.port}/mcp`
      const mcpServers = { dev: { type: "http", url, trust: { approvalDefault: "allow" } } }
      const options = { mcpConfig: [JSON.stringify({ mcpServers })], strict: true, cwd: home }
      const layer = Library.layerCore.pipe(
        Layer.provide(transport),
        Layer.provideMerge(Library.layerParts(options)),
        Layer.provide(HostEnvironment.layerTest({ variables: { SIGIL_HOME: home }, homeDirectory: home, cwd: home }))
      )
      yield* Effect.gen(function* () {
        const pipeline = yield* Pipeline
        const registry = yield* Registry
        const call = (text: string) => pipeline.call(headless("test"), { server: "dev", tool: "echo", args: { text } })
        const before = yield* call("before")
        address = ELSEWHERE
        // Every connection is gone, so that the next message needs another one.
        yield* Effect.promise(server.restart)
        const failure = yield* Effect.flip(call("meanwhile"))
        assert.strictEqual(failure.code, "SIGIL_NETWORK_REFUSED")
        assert.strictEqual(other.connections(), 0)
        address = "127.0.0.1"
        const after = yield* call("after")
        assert.deepStrictEqual(after.result["content"], [{ type: "text", text: "after" }])
        assert.strictEqual(after.generation, before.generation)
        yield* registry.closeAll
        assert.notInclude(server.seen.map(({ body }) => body).join("\n"), "meanwhile")
        assert.strictEqual(other.connections(), 0)
      }).pipe(Effect.provide(layer))
    })
  )
})

import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Presenter from "../../src/net/Presenter.ts"
import * as Terminal from "../../src/platform/Terminal.ts"

describe("a disclosure", () => {
  it.effect("is a block on stderr, one line per fact, and nothing on stdout", () =>
    Effect.gen(function* () {
      const presenter = yield* Presenter.Presenter
      const terminal = yield* Terminal.TestTerminal
      yield* presenter.present({
        server: "demo\u001b[2J\nroute: direct",
        surface: "MCP",
        destination: "https://mcp.example.com",
        route: "proxy_remote",
        proxy: "http://proxy.example:3128",
        data: "workspace_root_uri"
      })
      assert.strictEqual(presenter.sink, "cli-stderr-flush-v1")
      assert.strictEqual(terminal.stdout(), "")
      assert.deepStrictEqual(terminal.stderr().split("\n"), [
        "[sigil network disclosure]",
        "demo\\u001b[2J\\nroute: direct",
        "surface: MCP",
        "destination: https://mcp.example.com",
        "route: environment proxy http://proxy.example:3128",
        "data: workspace root URI",
        ""
      ])
    }).pipe(Effect.provide(Presenter.layer.pipe(Layer.provideMerge(Terminal.layerTest()))))
  )
})

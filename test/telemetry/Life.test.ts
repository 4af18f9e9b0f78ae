import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "../../src/platform/Random.ts"
import * as SpanTree from "../../src/telemetry/SpanTree.ts"
import { headless } from "../../src/tools/Caller.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"
import { declared, layer as fakeRuntime } from "../support/FakeRuntime.ts"
import { fakeServer, type Received } from "../support/FakeServer.ts"

const shown = {
  durations: false,
  attributes: ["jsonrpc.request.id", "mcp.protocol.version", "error.type", "sigil.admission.gate"]
}

describe("a server's life in spans", () => {
  it.effect("nests start and call, measures requests and the session, and shows no data", () =>
    Effect.gen(function* () {
      const collector = yield* SpanTree.collector
      const received: Array<Received> = []
      const call = (server: string, tool: string) =>
        Effect.flatMap(Pipeline, (pipeline) =>
          pipeline.call(headless("test"), { server, tool, args: { text: "an argument" } })
        )
      yield* call("files", "echo").pipe(
        Effect.zipRight(call("files", "echo")),
        Effect.zipRight(Effect.flip(call("off", "echo"))),
        Effect.provide(
          Layer.provideMerge(
            fakeRuntime({
              servers: { files: fakeServer({ received }) },
              entries: [declared("files"), declared("off", { enabled: false })]
            }),
            Layer.setTracer(collector.tracer)
          )
        )
      )
      const version = "mcp.protocol.version=2025-11-25"
      assert.deepEqual(SpanTree.render(collector.spans(), shown), [
        `tools/call echo  ${version} jsonrpc.request.id=4`,
        "└─ sigil.start",
        "   ├─ sigil.admission",
        "   ├─ sigil.spawn",
        "   ├─ server/discover  failed  jsonrpc.request.id=1 error.type=-32601",
        `   ├─ initialize  jsonrpc.request.id=2 ${version}`,
        `   └─ tools/list  ${version} jsonrpc.request.id=3`,
        `tools/call echo  ${version} jsonrpc.request.id=5`,
        "tools/call echo  failed  error.type=SIGIL_DISABLED",
        "└─ sigil.start  failed  error.type=SIGIL_DISABLED",
        "   └─ sigil.admission  failed  sigil.admission.gate=enabled error.type=SIGIL_DISABLED",
        `sigil.close  ${version}`
      ])
      assert.deepEqual(
        collector.measured().map(({ instrument, series }) => [instrument.name, series.map(({ count }) => count)]),
        [
          ["mcp.client.operation.duration", [1, 1, 1, 2]],
          ["mcp.client.session.duration", [1]]
        ]
      )
      assert.notInclude(
        JSON.stringify(collector.spans().map(({ name, attributes }) => [name, ...attributes])),
        "an argument"
      )
      assert.notInclude(JSON.stringify(received), "traceparent")
    }).pipe(Effect.provide(Random.layerTest))
  )
})

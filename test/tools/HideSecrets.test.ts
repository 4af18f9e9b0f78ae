/** What comes beside a result: progress, log messages, names, instructions, spans, refusals, in an in-process runtime. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Json } from "../../src/base/Json.ts"
import type { Progress } from "../../src/server/Progress.ts"
import { Registry } from "../../src/server/Registry.ts"
import { make as makeTracer, type RecordedSpan } from "../../src/telemetry/RecordingTracer.ts"
import { headless } from "../../src/tools/Caller.ts"
import { hideInPointer } from "../../src/tools/HideSecrets.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"
import { declared, withFakes } from "../support/FakeRuntime.ts"
import { fakeServer, text, tool } from "../support/FakeServer.ts"

const SECRET = "s3cr3t-of-the-server"
const [FIRST, SECOND] = [SECRET.slice(0, 10), SECRET.slice(10)]

const chatty = fakeServer({
  tools: [
    tool("echo"),
    tool(`do-${SECRET}`),
    tool("strict", { outputSchema: { type: "object", additionalProperties: { type: "integer" } } })
  ],
  methods: {
    initialize: () => ({
      protocolVersion: "2025-11-25",
      capabilities: { tools: {}, logging: {} },
      serverInfo: { name: `n ${SECRET}`, version: `${"v".repeat(250)}${SECRET}` },
      instructions: `say ${SECRET}`
    }),
    "tools/call": (params, link) => {
      const meta = params["_meta"] as { readonly progressToken?: Json } | undefined
      const note = (progress: number, message: string): void =>
        link.send({
          jsonrpc: "2.0",
          method: "notifications/progress",
          params: { progressToken: meta?.progressToken ?? 0, progress, message }
        })
      note(1, `a ${FIRST}`)
      note(2, `${SECOND} b`)
      for (const data of [`c ${FIRST}`, `${SECOND} d`]) {
        link.send({ jsonrpc: "2.0", method: "notifications/message", params: { level: SECRET, logger: SECRET, data } })
      }
      return params["name"] === "strict" ? { content: [], structuredContent: { [SECRET]: "text" } } : text("ok")
    }
  }
})
const entries = [
  declared("a", {
    endpoint: { _tag: "stdio", command: process.execPath, args: [], inheritEnv: ["TOKEN"], publicEnv: [], env: {} }
  })
]
const runtime = withFakes({ servers: { a: chatty }, entries, variables: { TOKEN: SECRET } })

const call = (name: string, notes: Array<Progress> = []) =>
  Effect.flatMap(Pipeline, (pipeline) =>
    pipeline.call(
      { ...headless("test"), onProgress: (note) => notes.push(note) },
      { server: "a", tool: name, args: {} }
    )
  )

describe("what comes beside a result", () => {
  it.effect("holds no secret: progress and log messages also where they come in two pieces", () =>
    Effect.gen(function* () {
      const notes: Array<Progress> = []
      const outcome = yield* call("echo", notes)
      assert.deepEqual(
        notes.map(({ message }) => message),
        ["a [hidden]", "[hidden] b"]
      )
      const { generation } = outcome
      assert.deepEqual(generation.notices.messages(), [
        { level: "[hidden]", logger: "[hidden]", text: "c [hidden]" },
        { level: "[hidden]", logger: "[hidden]", text: "[hidden] d" }
      ])
      assert.equal(generation.info.name, "n [hidden]")
      assert.equal(generation.instructions, "say [hidden]")
      assert.notInclude(generation.info.version, SECRET.slice(0, 2))
    }).pipe(runtime)
  )

  it.effect("holds no secret: names for models, spans, refusals and broken promises", () =>
    Effect.gen(function* () {
      const spans: Array<RecordedSpan> = []
      let count = 0
      const tracer = makeTracer({
        uuid: () => `00000000-0000-4000-8000-${String((count += 1)).padStart(12, "0")}`,
        onEnd: (span) => spans.push(span)
      })
      const registry = yield* Registry
      yield* registry.activate("a")
      yield* call(`do-${SECRET}`).pipe(Effect.withTracer(tracer))
      assert.isNotEmpty(spans)
      for (const span of spans) assert.notInclude(JSON.stringify([span.name, [...span.attributes]]), SECRET)
      const tools = yield* Effect.flatMap(Pipeline, (pipeline) => pipeline.tools("a"))
      assert.deepEqual(
        tools.map(({ visibleName }) => visibleName),
        ["mcp__a__echo", "mcp__a__do-_hidden", "mcp__a__strict"]
      )
      assert.equal((yield* call("mcp__a__do-_hidden")).tool.name, `do-${SECRET}`)
      const strict = yield* call("strict")
      assert.include(strict.outputProblem?.text ?? "", "[hidden]")
      assert.notInclude(JSON.stringify(strict.outputProblem), SECRET)
      const unknown = yield* Effect.flip(call(`de-${SECRET}`))
      assert.notInclude(JSON.stringify(unknown), SECRET)
      assert.deepEqual(unknown.candidates, ["do-[hidden]"])
    }).pipe(runtime)
  )

  it("reads the segments of a pointer before it searches them", () => {
    const redact = (word: string): string => word.replaceAll("a/b~c", "[hidden]")
    assert.equal(hideInPointer(redact, "/x/a~1b~0c/y~1z"), "/x/[hidden]/y~1z")
    assert.equal(hideInPointer(redact, ""), "")
  })
})

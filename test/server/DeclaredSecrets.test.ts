/** Secrets of entries are known with each change of the configuration, and stay known: no start decides. */
import { describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import type { Entry } from "../../src/config/ServerDeclaration.ts"
import * as Library from "../../src/runtime/Library.ts"
import { Registry } from "../../src/server/Registry.ts"
import { headless } from "../../src/tools/Caller.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"
import { declared, withFakes } from "../support/FakeRuntime.ts"
import { fakeServer, text, tool } from "../support/FakeServer.ts"

const SECRET = "s3cret-value-of-h"
const variables = { MYSECRET: SECRET }
const echo = fakeServer({ tools: [tool("echo")], methods: { "tools/call": (params) => text(JSON.stringify(params)) } })
const holder = declared("h", {
  endpoint: { _tag: "stdio", command: "h", args: [], inheritEnv: ["MYSECRET"], publicEnv: [], env: {} }
})
/** How a call that sends the value to the other server ends. */
const send = Effect.flatMap(Pipeline, (pipeline) =>
  pipeline.call(headless("test"), { server: "g", tool: "echo", args: { a: SECRET } })
).pipe(
  Effect.as("sent"),
  Effect.catchAll((error) => Effect.succeed(error.code))
)

describe("secrets of declared entries", () => {
  it.effect("are known before anything was started", () =>
    withFakes({ servers: { g: echo }, entries: [holder, declared("g")], variables })(send).pipe(
      Effect.map((outcome) => assert.equal(outcome, "SIGIL_SECRET_BLOCKED"))
    )
  )

  it.effect("are known with the reload that brings them, and after the one that takes them away", () => {
    const state: { entries: ReadonlyArray<Entry> } = { entries: [declared("g")] }
    const snapshot = {
      get servers() {
        return state.entries
      }
    }
    return withFakes({ servers: { g: echo }, snapshot, variables })(
      Effect.gen(function* () {
        const registry = yield* Registry
        assert.equal(yield* send, "sent")
        state.entries = [declared("g"), holder]
        yield* registry.reload
        assert.equal(yield* send, "SIGIL_SECRET_BLOCKED")
        state.entries = [declared("g")]
        yield* registry.reload
        assert.equal(yield* send, "SIGIL_SECRET_BLOCKED")
      })
    )
  })

  it.effect("are known once a program declares them, and after it takes them back", () =>
    Effect.gen(function* () {
      const registry = yield* Registry
      assert.equal(yield* send, "sent")
      yield* registry.declare("h", { command: "h", inheritEnv: ["MYSECRET"] })
      assert.equal(yield* send, "SIGIL_SECRET_BLOCKED")
      yield* registry.withdraw("h")
      assert.equal(yield* send, "SIGIL_SECRET_BLOCKED")
    }).pipe(
      Effect.provide(
        Library.layerTest({ servers: { g: { inProcess: echo, trust: { approvalDefault: "allow" } } }, variables })
      )
    )
  )
})

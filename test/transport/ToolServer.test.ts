/** Servers made of functions: results, failures, and calls that are given up. */
import { describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { assert } from "vitest"
import { isJsonObject, type JsonObject, own } from "../../src/base/Json.ts"
import * as ToolServer from "../../src/transport/ToolServer.ts"
import { connect, request } from "../support/Wires.ts"

const open = (tools: { readonly [name: string]: ToolServer.Tool }) =>
  Effect.gen(function* () {
    const connection = yield* connect(ToolServer.make({ tools }))
    return (name: string, args: JsonObject = {}) =>
      connection.request("tools/call", { name, arguments: args }, request(`tools/call ${name}`))
  })

const plain = (run: ToolServer.Tool["run"]): ToolServer.Tool => ({
  description: "",
  inputSchema: { type: "object" },
  run
})

describe("ToolServer", () => {
  it.scoped("answers with a text, or with a whole result", () =>
    Effect.gen(function* () {
      const whole = { content: [], structuredContent: { a: 1 } }
      const call = yield* open({
        text: plain(() => Effect.succeed("hello")),
        whole: plain(() => Effect.succeed(whole))
      })
      assert.deepEqual(yield* call("text"), { content: [{ type: "text", text: "hello" }] })
      assert.deepEqual(yield* call("whole"), whole)
    })
  )

  it.scoped("turns a failure into isError and a defect into an error of the protocol", () =>
    Effect.gen(function* () {
      const call = yield* open({
        fail: plain(() => Effect.fail("no such file")),
        die: plain(() => Effect.dieMessage("a secret detail")),
        thrown: plain(() => {
          throw new Error("a secret detail")
        })
      })
      assert.deepEqual(yield* call("fail"), { content: [{ type: "text", text: "no such file" }], isError: true })
      for (const name of ["die", "thrown"]) {
        const error = yield* Effect.flip(call(name))
        assert.equal(error._tag === "RemoteError" ? error.rpcCode : 0, -32603)
        assert.notInclude(error.text, "secret")
      }
      const unknown = yield* Effect.flip(call("toString"))
      assert.equal(unknown._tag === "RemoteError" ? unknown.rpcCode : 0, -32602)
    })
  )

  it.scoped("describes and decodes arguments by their schema", () =>
    Effect.gen(function* () {
      const add = ToolServer.tool({
        description: "Adds.",
        input: Schema.Struct({ a: Schema.Number, b: Schema.NumberFromString }),
        run: ({ a, b }) => Effect.succeed(String(a + b))
      })
      const properties = own(add.inputSchema, "properties")
      assert.isTrue(isJsonObject(properties))
      assert.deepEqual(own(add.inputSchema, "required"), ["a", "b"])
      const call = yield* open({ add })
      assert.deepEqual(yield* call("add", { a: 1, b: "2" }), { content: [{ type: "text", text: "3" }] })
      assert.equal((yield* call("add", { a: "1" }))["isError"], true)
    })
  )

  it.scoped("interrupts a call that the host gives up", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      const stopped = yield* Deferred.make<void>()
      const call = yield* open({
        wait: plain(() =>
          Deferred.succeed(started, undefined).pipe(
            Effect.andThen(Effect.never),
            Effect.onInterrupt(() => Deferred.succeed(stopped, undefined))
          )
        )
      })
      const fiber = yield* Effect.fork(call("wait"))
      yield* Deferred.await(started)
      yield* Fiber.interrupt(fiber)
      yield* Deferred.await(stopped)
    })
  )

  it.effect("interrupts what runs when the connection closes", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      const stopped = yield* Deferred.make<void>()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const call = yield* open({
            wait: plain(() =>
              Deferred.succeed(started, undefined).pipe(
                Effect.andThen(Effect.never),
                Effect.onInterrupt(() => Deferred.succeed(stopped, undefined))
              )
            )
          })
          yield* Effect.fork(Effect.ignore(call("wait")))
          yield* Deferred.await(started)
        })
      )
      yield* Deferred.await(stopped)
    })
  )
})

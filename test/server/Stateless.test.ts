/** Servers of revision 2026-07-28: asked in full, in rounds, by tasks, from the cache. */
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import { assert, describe } from "vitest"
import { isJsonObject, type JsonObject, own } from "../../src/base/Json.ts"
import { ClientFeatures } from "../../src/server/ClientFeatures.ts"
import type { FormAnswer } from "../../src/server/Elicitor.ts"
import { Registry } from "../../src/server/Registry.ts"
import { headless } from "../../src/tools/Caller.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"
import { Surfaces } from "../../src/tools/Surfaces.ts"
import { declared, type FakeRuntime, withFakes } from "../support/FakeRuntime.ts"
import { type Received, text, tool } from "../support/FakeServer.ts"
import { key, meta, statelessServer, type StatelessParts } from "../support/StatelessServer.ts"
import { settle } from "../support/Wires.ts"

const done = (words: string): JsonObject => ({ resultType: "complete", ...text(words) })
const modern = (parts: StatelessParts, more: Partial<FakeRuntime> = {}) =>
  withFakes({ servers: { a: statelessServer({ tools: [tool("t")], ...parts }) }, ...more })
const caller = (answer?: FormAnswer) => ({
  ...headless("test"),
  ...(answer === undefined ? {} : { elicitor: { form: () => Effect.succeed(answer) } })
})
const call = (answer?: FormAnswer) =>
  Effect.flatMap(Pipeline, (pipeline) => pipeline.call(caller(answer), { server: "a", tool: "t", args: {} }))
const textOf = (result: JsonObject): string => JSON.stringify(own(result, "content"))
const withForms = Effect.provideService(ClientFeatures, { forms: true, urls: false })

describe("a call in rounds", () => {
  const asks = (inputRequests: JsonObject | undefined, requestState?: string): JsonObject => ({
    resultType: "input_required",
    ...(inputRequests === undefined ? {} : { inputRequests }),
    ...(requestState === undefined ? {} : { requestState })
  })
  const form = {
    method: "elicitation/create",
    params: {
      mode: "form",
      message: "Your name?",
      requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] }
    }
  }
  const calls = (received: ReadonlyArray<Received>) => received.filter(({ method }) => method === "tools/call")

  it.effect("answers what the server asks, and gives its state back as it came", () => {
    const received: Array<Received> = []
    const state = 'opaque "state" \u{1F980}'
    return Effect.gen(function* () {
      const { result } = yield* call({ action: "accept", content: { name: "Ada" } })
      assert.include(textOf(result), "Ada")
      const [first, second] = calls(received)
      assert.notEqual(first?.id, second?.id)
      assert.isUndefined(first?.params?.["requestState"])
      assert.equal(second?.params?.["requestState"], state)
      assert.deepEqual(second?.params?.["inputResponses"], { who: { action: "accept", content: { name: "Ada" } } })
      assert.deepEqual(meta(first)[key("clientCapabilities")], { roots: {}, elicitation: { form: {} } })
    }).pipe(
      modern({
        received,
        methods: {
          "tools/call": (params) =>
            params["inputResponses"] === undefined
              ? asks({ who: form }, state)
              : done(JSON.stringify(params["inputResponses"]))
        }
      }),
      withForms
    )
  })

  it.effect("names the fields where nobody can answer, and does not declare what nobody can", () => {
    const received: Array<Received> = []
    return Effect.gen(function* () {
      const error = yield* Effect.flip(call())
      assert.equal(error.code, "SIGIL_INPUT_REQUIRED")
      assert.include(error.text, "name")
      assert.deepEqual(meta(calls(received)[0])[key("clientCapabilities")], { roots: {} })
      assert.equal(calls(received).length, 1)
    }).pipe(modern({ received, methods: { "tools/call": () => asks({ who: form }) } }), withForms)
  })

  it.effect("sends it again where the server only wants time, and gives up one that always wants more", () => {
    let rounds = 0
    return Effect.gen(function* () {
      const fiber = yield* Effect.fork(Effect.flip(call()))
      for (let turn = 0; turn < 20; turn += 1) {
        yield* settle
        yield* TestClock.adjust(5_000)
      }
      const error = yield* Fiber.join(fiber)
      assert.equal(error.reason, "input_rounds_limit")
      assert.equal(rounds, 16)
    }).pipe(
      modern(
        {
          methods: {
            "tools/call": () => {
              rounds += 1
              return asks(undefined, `state ${rounds}`)
            }
          }
        },
        { entries: [declared("a", { toolTimeoutMs: 600_000 })] }
      )
    )
  })

  it.effect("keeps the deadline of the whole, pauses of sigil's own included, and says it", () =>
    Effect.gen(function* () {
      const pipeline = yield* Pipeline
      const fiber = yield* Effect.fork(
        Effect.flip(pipeline.call(caller(), { server: "a", tool: "t", args: {}, timeoutMs: 1_000 }))
      )
      for (let turn = 0; turn < 10; turn += 1) {
        yield* settle
        yield* TestClock.adjust(100)
      }
      yield* settle
      const error = yield* Fiber.join(fiber)
      assert.equal(error.code, "SIGIL_CALL_TIMEOUT")
      assert.include(error.text, "1000 ms")
    }).pipe(modern({ methods: { "tools/call": () => asks(undefined, "wait") } }))
  )

  const broken: ReadonlyArray<readonly [what: string, result: JsonObject, reason: string]> = [
    ["neither inputs nor a state", asks(undefined), "invalid_input_request"],
    ["a state that is no text", { ...asks({ who: form }), requestState: 5 }, "invalid_input_request"],
    ["inputs that are a list", { resultType: "input_required", inputRequests: [] }, "invalid_input_request"],
    ["an input without a method", asks({ who: {} }), "invalid_input_request"],
    ["an input that no host gives", asks({ who: { method: "x/y" } }), "input_not_available"],
    ["a result of a kind that nobody knows", { resultType: "riddle" }, "invalid_result_type"],
    ["a task that nobody declared", { resultType: "task", taskId: "1", status: "working" }, "invalid_result_type"]
  ]
  for (const [what, result, reason] of broken)
    it.effect(`refuses ${what}, and the connection lives on`, () =>
      Effect.gen(function* () {
        assert.equal((yield* Effect.flip(call({ action: "decline" }))).reason, reason)
        const registry = yield* Registry
        assert.equal(registry.status("a").state, "ready")
      }).pipe(modern({ methods: { "tools/call": () => result } }), withForms)
    )

  it.effect("takes a result that does not say its kind for complete", () =>
    Effect.map(call(), ({ result }) => assert.include(textOf(result), "plain")).pipe(
      modern({ methods: { "tools/call": () => text("plain") } })
    )
  )

  it.effect("does not count the time of a person", () => {
    let answered = false
    const slow = {
      ...headless("test"),
      elicitor: {
        form: () => Effect.as(Effect.sleep("9 minutes"), { action: "accept" as const, content: { name: "Ada" } })
      }
    }
    return Effect.gen(function* () {
      const pipeline = yield* Pipeline
      const fiber = yield* Effect.fork(pipeline.call(slow, { server: "a", tool: "t", args: {} }))
      for (let turn = 0; turn < 10; turn += 1) {
        yield* settle
        yield* TestClock.adjust("1 minute")
      }
      yield* Fiber.join(fiber)
      assert.isTrue(answered)
    }).pipe(
      modern({
        methods: {
          "tools/call": (params) => {
            answered = params["inputResponses"] !== undefined
            return answered ? done("ok") : asks({ who: form })
          }
        }
      }),
      withForms
    )
  })
})

describe("a task", () => {
  const taskTool = tool("t", { execution: { taskSupport: "optional" } })
  const task = (status: string, more: JsonObject = {}): JsonObject => ({
    taskId: "job-1",
    status,
    pollIntervalMs: 1_000,
    ttlMs: 60_000,
    ...more
  })
  const polled = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.fork(effect)
      for (let turn = 0; turn < 8; turn += 1) {
        yield* settle
        yield* TestClock.adjust(1_000)
      }
      return yield* Fiber.join(fiber)
    })

  it.effect("is declared where the tool asks for it, polled, answered in the middle, and gives its result", () => {
    const received: Array<Received> = []
    let polls = 0
    const form = {
      method: "elicitation/create",
      params: { message: "Sure?", requestedSchema: { type: "object", properties: { sure: { type: "boolean" } } } }
    }
    return Effect.gen(function* () {
      const { result } = yield* polled(call({ action: "accept", content: { sure: true } }))
      assert.include(textOf(result), "finished")
      const first = received.find(({ method }) => method === "tools/call")
      const declaredOnCall = meta(first)[key("clientCapabilities")]
      assert.deepEqual(isJsonObject(declaredOnCall) ? declaredOnCall["extensions"] : undefined, { [key("tasks")]: {} })
      const update = received.find(({ method }) => method === "tasks/update")
      assert.deepEqual(update?.params?.["inputResponses"], { q: { action: "accept", content: { sure: true } } })
      assert.equal(received.filter(({ method }) => method === "tasks/update").length, 1)
      assert.isFalse(received.some(({ method }) => method === "tasks/cancel"))
    }).pipe(
      modern({
        received,
        tools: [taskTool],
        methods: {
          "tools/call": () => ({ resultType: "task", ...task("working") }),
          "tasks/get": () => {
            polls += 1
            if (polls === 1) return task("working")
            if (polls <= 3) return task("input_required", { inputRequests: { q: form } })
            return task("completed", { result: text("finished") })
          },
          "tasks/update": () => ({ resultType: "complete" })
        }
      }),
      withForms
    )
  })

  const ends: ReadonlyArray<readonly [what: string, task: JsonObject, code: string, reason: string]> = [
    ["failed", task("failed", { error: { code: -1, message: "no luck" } }), "SIGIL_REMOTE_ERROR", "task_failed"],
    ["cancelled", task("cancelled"), "SIGIL_CALL_CANCELLED", "task_cancelled"],
    ["completed without a result", task("completed"), "SIGIL_PROTOCOL_FAULT", "invalid_task"],
    ["in no known state", task("pondering"), "SIGIL_PROTOCOL_FAULT", "invalid_task"],
    ["no task any more", {}, "SIGIL_PROTOCOL_FAULT", "invalid_task"],
    ["another one", { ...task("working"), taskId: "job-2" }, "SIGIL_PROTOCOL_FAULT", "invalid_task"]
  ]
  for (const [what, state, code, reason] of ends)
    it.effect(`that is ${what} fails its call`, () =>
      Effect.gen(function* () {
        const error = yield* polled(Effect.flip(call()))
        assert.deepEqual([error.code, error.reason], [code, reason])
      }).pipe(
        modern({
          tools: [taskTool],
          methods: {
            "tools/call": () => ({ resultType: "task", ...task("working") }),
            "tasks/get": () => state,
            "tasks/cancel": () => ({ resultType: "complete" })
          }
        })
      )
    )

  it.effect("is cancelled by its own method when its caller leaves", () => {
    const received: Array<Received> = []
    return Effect.gen(function* () {
      const fiber = yield* Effect.fork(call())
      yield* settle
      yield* TestClock.adjust(1_500)
      yield* settle
      yield* Fiber.interrupt(fiber)
      yield* settle
      assert.equal(received.find(({ method }) => method === "tasks/cancel")?.params?.["taskId"], "job-1")
      assert.isFalse(received.some(({ method }) => method === "notifications/cancelled"))
    }).pipe(
      modern({
        received,
        tools: [taskTool],
        methods: {
          "tools/call": () => ({ resultType: "task", ...task("working") }),
          "tasks/get": () => task("working"),
          "tasks/cancel": () => ({ resultType: "complete" })
        }
      })
    )
  })
})

describe("results that may be kept", () => {
  const read = Effect.flatMap(Surfaces, (surfaces) => surfaces.read(caller(), { server: "a", uri: "x:1" }))
  const parts = (received: Array<Received>, ttlMs: number): StatelessParts => ({
    received,
    capabilities: { tools: {}, resources: { listChanged: true } },
    methods: {
      "resources/read": () => ({
        resultType: "complete",
        contents: [{ uri: "x:1", text: "data" }],
        ttlMs,
        cacheScope: "private"
      }),
      "subscriptions/listen": (_params, link, id) => {
        link.send({
          jsonrpc: "2.0",
          method: "notifications/subscriptions/acknowledged",
          params: { _meta: { [key("subscriptionId")]: id }, notifications: {} }
        })
        changes.tell = () => link.send({ jsonrpc: "2.0", method: "notifications/resources/list_changed" })
        return undefined
      }
    }
  })
  const changes: { tell?: () => void } = {}
  const reads = (received: ReadonlyArray<Received>): number =>
    received.filter(({ method }) => method === "resources/read").length

  it.effect("are asked for once while they are fresh, and again after their time or a change", () => {
    const received: Array<Received> = []
    return Effect.gen(function* () {
      yield* read
      yield* read
      assert.equal(reads(received), 1)
      yield* TestClock.adjust(1_000)
      yield* read
      assert.equal(reads(received), 2)
      changes.tell?.()
      yield* settle
      yield* read
      assert.equal(reads(received), 3)
      assert.deepEqual(received.find(({ method }) => method === "subscriptions/listen")?.params?.["notifications"], {
        resourcesListChanged: true
      })
    }).pipe(modern(parts(received, 1_000)))
  })

  it.effect("are never kept without a time", () => {
    const received: Array<Received> = []
    return Effect.gen(function* () {
      yield* read
      yield* read
      assert.equal(reads(received), 2)
    }).pipe(modern(parts(received, 0)))
  })
})

/** What servers with a handshake ask back: who is asked, what the wait costs, and what the server hears. */
import { it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import { assert, describe } from "vitest"
import { isJsonObject, type JsonObject } from "../../src/base/Json.ts"
import { defaultSettings } from "../../src/config/Settings.ts"
import { ClientFeatures, type Features } from "../../src/server/ClientFeatures.ts"
import type { Elicitor } from "../../src/server/Elicitor.ts"
import { Registry } from "../../src/server/Registry.ts"
import { type Caller, headless } from "../../src/tools/Caller.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"
import type { MemoryLink } from "../../src/transport/MemoryTransport.ts"
import { declared, type FakeRuntime, withFakes } from "../support/FakeRuntime.ts"
import { fakeServer, type Received, text } from "../support/FakeServer.ts"
import { settle } from "../support/Wires.ts"

const form: JsonObject = {
  message: "Your name?",
  requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] }
}
/** A server that asks in the middle of each call and answers the call once it heard back. */
const asking = (
  received: Array<Received>,
  box: { link?: MemoryLink; calls?: Array<string | number> } = {},
  ask: boolean = true
) => {
  const calls: Array<string | number> = []
  box.calls = calls
  const server = fakeServer({
    received,
    methods: {
      "tools/call": (_params, link, id) => {
        box.link = link
        calls.push(id)
        if (ask) link.send({ jsonrpc: "2.0", id: `q${calls.length}`, method: "elicitation/create", params: form })
        return undefined
      }
    }
  })
  return (link: MemoryLink) => {
    const made = server(link)
    return {
      ...made,
      receive: (line: string) => {
        made.receive(line)
        // The host's own output.
        const { id, method, result, error } = JSON.parse(line) as Received
        if (method !== undefined || typeof id !== "string" || !id.startsWith("q")) return
        const call = calls[Number(id.slice(1)) - 1]
        if (call !== undefined) link.send({ jsonrpc: "2.0", id: call, result: text(JSON.stringify(result ?? error)) })
      }
    }
  }
}
const answering = (elicitor: Elicitor, identity = "one"): Caller => ({ ...headless(identity), elicitor })
const ada: Elicitor = { form: () => Effect.succeed({ action: "accept", content: { name: "Ada" } }) }
const call = (caller: Caller) =>
  Effect.flatMap(Pipeline, (pipeline) => pipeline.call(caller, { server: "a", tool: "echo", args: {} }))
const world = (
  server: FakeRuntime["servers"][string],
  more: Partial<FakeRuntime> = {},
  features: Features = { forms: true, urls: false }
) => {
  const provide = withFakes({ servers: { a: server }, ...more })
  return <A, E>(effect: Effect.Effect<A, E, Pipeline | Registry>) =>
    effect.pipe(provide, Effect.provideService(ClientFeatures, features))
}
const answerTo = (received: ReadonlyArray<Received>, id: string) =>
  received.find((message) => message.id === id && message.method === undefined)

describe("a form in the middle of a call", () => {
  it.effect("goes to the caller whose call is open, and its answer back to the server", () => {
    const received: Array<Received> = []
    return Effect.gen(function* () {
      const { result } = yield* call(answering(ada))
      assert.include(JSON.stringify(result), "Ada")
      assert.deepEqual(answerTo(received, "q1")?.result, { action: "accept", content: { name: "Ada" } })
      const initialize = received.find(({ method }) => method === "initialize")
      assert.deepEqual(initialize?.params?.["capabilities"], {
        roots: { listChanged: true },
        elicitation: { form: {} }
      })
    }).pipe(world(asking(received)))
  })

  it.effect("is nobody's when calls of several callers are open, or none", () => {
    const received: Array<Received> = []
    const box: { link?: MemoryLink; calls?: Array<string | number> } = {}
    return Effect.gen(function* () {
      const fibers = yield* Effect.forEach(["one", "two"], (identity) => Effect.fork(call(answering(ada, identity))))
      yield* settle
      yield* settle
      box.link?.send({ jsonrpc: "2.0", id: "both", method: "elicitation/create", params: form })
      yield* settle
      assert.equal(answerTo(received, "both")?.error?.["code"], -32601)
      for (const id of box.calls ?? []) box.link?.send({ jsonrpc: "2.0", id, result: text("done") })
      yield* Effect.forEach(fibers, Fiber.join)
      box.link?.send({ jsonrpc: "2.0", id: "none", method: "elicitation/create", params: form })
      yield* settle
      assert.equal(answerTo(received, "none")?.error?.["code"], -32601)
      const registry = yield* Registry
      assert.isTrue(registry.status("a").generation?.connection.oddities.declined.has("elicitation/create"))
    }).pipe(world(asking(received, box, false)))
  })

  it.effect("stops the clock of its call, and only of that", () => {
    const received: Array<Received> = []
    const box: { link?: MemoryLink; calls?: Array<string | number> } = {}
    return Effect.gen(function* () {
      const opened = yield* Deferred.make<void>()
      const answer = yield* Deferred.make<void>()
      const slow: Elicitor = {
        form: () =>
          Deferred.succeed(opened, undefined).pipe(
            Effect.zipRight(Deferred.await(answer)),
            Effect.as({ action: "accept" as const, content: { name: "Ada" } })
          )
      }
      const mine = yield* Effect.fork(call(answering(slow)))
      yield* Deferred.await(opened)
      yield* TestClock.adjust("9 minutes")
      yield* settle
      assert.isNull(mine.unsafePoll())
      yield* Deferred.succeed(answer, undefined)
      yield* Fiber.join(mine)
      // The time that was left goes on afterwards.
      const late = yield* Effect.fork(Effect.flip(call({ ...answering(ada), identity: "late" })))
      yield* settle
      yield* TestClock.adjust("31 seconds")
      assert.equal((yield* Fiber.join(late)).code, "SIGIL_CALL_TIMEOUT")
    }).pipe(
      world((link) => {
        const first = asking(received, box)(link)
        return {
          receive: (line) => {
            // The host's own output; the second call is never answered.
            const { method } = JSON.parse(line) as Received
            if (method === "tools/call" && (box.calls?.length ?? 0) > 0) return
            first.receive(line)
          }
        }
      })
    )
  })

  it.effect("that nobody fills in fails the call with the names of its fields, and the server hears it", () => {
    const received: Array<Received> = []
    const silent: Elicitor = {
      form: ({ form: { fields } }) => Effect.succeed({ action: "unanswered", fields: fields.map(({ name }) => name) })
    }
    return Effect.gen(function* () {
      const error = yield* Effect.flip(call(answering(silent)))
      assert.equal(error.code, "SIGIL_INPUT_REQUIRED")
      assert.include(error.text, "name")
      yield* settle
      assert.deepEqual(answerTo(received, "q1")?.result, { action: "cancel" })
      assert.isTrue(received.some(({ method }) => method === "notifications/cancelled"))
      const registry = yield* Registry
      assert.equal(registry.status("a").state, "ready")
    }).pipe(world(asking(received)))
  })

  it.effect("is refused where it was not declared", () => {
    const received: Array<Received> = []
    return Effect.gen(function* () {
      const { result } = yield* call(answering(ada))
      assert.include(JSON.stringify(result), "-32601")
    }).pipe(world(asking(received), {}, { forms: false, urls: false }))
  })
})

describe("sampling", () => {
  const server = (received: Array<Received>, box: { link?: MemoryLink }) =>
    fakeServer({
      received,
      methods: {
        "tools/call": (_params, link) => {
          box.link = link
          link.send({ jsonrpc: "2.0", id: "s", method: "sampling/createMessage", params: { messages: [] } })
          return text("done")
        }
      }
    })

  it.effect("is refused unless the program gives a handler", () => {
    const received: Array<Received> = []
    return Effect.gen(function* () {
      yield* call(headless("x"))
      yield* settle
      assert.equal(answerTo(received, "s")?.error?.["code"], -32601)
    }).pipe(world(server(received, {})))
  })

  it.effect("is answered by the handler of the program", () => {
    const received: Array<Received> = []
    const sampling = () => Effect.succeed({ role: "assistant", content: { type: "text", text: "hello" }, model: "m" })
    return Effect.gen(function* () {
      yield* call(headless("x"))
      yield* settle
      assert.equal(answerTo(received, "s")?.result?.["model"], "m")
    }).pipe(world(server(received, {}), {}, { forms: false, urls: false, sampling }))
  })
})

describe("addresses to open", () => {
  const required: JsonObject = {
    code: -32042,
    message: "open it",
    data: {
      elicitations: [{ mode: "url", elicitationId: "1", url: "https://example.com/consent", message: "Consent" }]
    }
  }
  const server = (received: Array<Received>) => {
    let opened = false
    return (link: MemoryLink) => {
      const plain = fakeServer({ received })(link)
      return {
        receive: (line: string) => {
          // The host's own output.
          const { id, method } = JSON.parse(line) as Received
          if (method !== "tools/call" || opened) return plain.receive(line)
          opened = true
          received.push(JSON.parse(line) as Received)
          link.send({ jsonrpc: "2.0", id: id ?? 0, error: required })
        }
      }
    }
  }
  const settings = { ...defaultSettings, mcp: { ...defaultSettings.mcp, elicitationUrl: true } }
  const calls = (received: ReadonlyArray<Received>) => received.filter(({ method }) => method === "tools/call").length
  const shown: Array<string> = []
  const opener = (action: "accept" | "decline"): Elicitor => ({
    ...ada,
    url: ({ url }) => {
      shown.push(url)
      return Effect.succeed({ action })
    }
  })

  it.effect("are shown, and after consent the call is made once more", () => {
    const received: Array<Received> = []
    return Effect.gen(function* () {
      yield* call(answering(opener("accept")))
      assert.deepEqual(shown.splice(0), ["https://example.com/consent"])
      assert.equal(calls(received), 2)
    }).pipe(world(server(received), { snapshot: { settings } }, { forms: true, urls: true }))
  })

  it.effect("end the call where the person declines, or nobody can open one", () => {
    const received: Array<Received> = []
    return Effect.gen(function* () {
      const declined = yield* Effect.flip(call(answering(opener("decline"))))
      assert.deepEqual([declined.code, declined.reason], ["SIGIL_INPUT_REQUIRED", "url_elicitation_declined"])
      assert.equal(calls(received), 1)
      const other = yield* Effect.flip(call(answering(ada))).pipe(
        world(server([]), { snapshot: { settings } }, { forms: true, urls: true })
      )
      assert.equal(other.reason, "url_elicitation_unavailable")
    }).pipe(world(server(received), { snapshot: { settings } }, { forms: true, urls: true }))
  })

  it.effect("are not shown without the user's switch", () => {
    shown.length = 0
    return Effect.gen(function* () {
      const error = yield* Effect.flip(call(answering(opener("accept"))))
      assert.equal(error.code, "SIGIL_INPUT_REQUIRED")
      assert.deepEqual(shown, [])
    }).pipe(world(server([]), {}, { forms: true, urls: true }))
  })
})

describe("a secret in an answer", () => {
  it.effect("does not leave, and its call fails", () => {
    const received: Array<Received> = []
    const token = "s3cr3t-token-value"
    const entry = declared("a", {
      endpoint: {
        _tag: "stdio",
        command: process.execPath,
        args: [],
        inheritEnv: ["MY_TOKEN"],
        publicEnv: [],
        env: {}
      }
    })
    const leaking: Elicitor = { form: () => Effect.succeed({ action: "accept", content: { name: token } }) }
    return Effect.gen(function* () {
      const error = yield* Effect.flip(call(answering(leaking)))
      assert.equal(error.code, "SIGIL_SECRET_BLOCKED")
      yield* settle
      assert.notInclude(JSON.stringify(received), token)
      const answer = answerTo(received, "q1")?.result
      assert.isTrue(isJsonObject(answer) && answer["action"] === "cancel")
    }).pipe(world(asking(received), { entries: [entry], variables: { MY_TOKEN: token } }))
  })
})

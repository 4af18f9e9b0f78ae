/** The stream for what no request asked for: taken up again after a wait, and not for ever (K section 9.9). */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
import type { Client } from "../../src/net/GuardedClient.ts"
import type { HttpResponse } from "../../src/net/HttpResponse.ts"
import * as Revisions from "../../src/protocol/Revisions.ts"
import * as HttpTransport from "../../src/transport/HttpTransport.ts"
import type { RemotePlan } from "../../src/transport/Transport.ts"

const plan: RemotePlan = {
  _tag: "remote",
  transport: "streamable_http",
  url: "https://mcp.example.com/mcp",
  shown: "http://127.0.0.1:1",
  headers: [],
  rules: { allowedPrivateHosts: [], allowedPrivateCidrs: [], blockedDomains: [], allowedDomains: [] },
  proxyMode: "direct",
  connectTimeoutMs: 5_000
}

/** An answer of these headers whose stream says what `events` hands on, and ends. */
const answer = (status: number, type: string, events: HttpResponse["events"] = () => Effect.void): HttpResponse => ({
  status,
  header: (name) => (name === "content-type" ? type : undefined),
  text: () => Effect.succeed(""),
  events,
  cancel: () => undefined
})

/** A wire whose every stream says this and ends; how often it was opened. */
const opened = (events: HttpResponse["events"]) =>
  Effect.gen(function* () {
    let streams = 0
    const client: Client = {
      send: ({ method }) =>
        Effect.sync(() => {
          if (method !== "GET") return answer(202, "")
          streams += 1
          return answer(200, "text/event-stream", events)
        }),
      authorise: () => Effect.void,
      upgrade: () => Effect.dieMessage("not asked for")
    }
    const wire = yield* HttpTransport.open(plan, client, () => 0.5)
    wire.listen({ message: () => true, end: () => undefined })
    wire.agreed?.(Revisions.newest)
    wire.send("{}", { method: "notifications/initialized" })
    yield* wire.drained
    yield* TestClock.adjust(0)
    return () => streams
  })

describe("a stream that always ends", () => {
  it.scoped("is opened again after two seconds, then after twice that, and given up", () =>
    Effect.gen(function* () {
      const streams = yield* opened(() => Effect.void)
      assert.strictEqual(streams(), 1)
      yield* TestClock.adjust(1_999)
      assert.strictEqual(streams(), 1)
      yield* TestClock.adjust(1)
      assert.strictEqual(streams(), 2)
      yield* TestClock.adjust(3_999)
      assert.strictEqual(streams(), 2)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(streams(), 6)
    })
  )

  it.scoped("and asks for no wait is waited for all the same, also when it says something each time", () =>
    Effect.gen(function* () {
      const streams = yield* opened(({ onEvent, onRetry }) =>
        Effect.sync(() => {
          onRetry?.(0)
          onEvent({ data: "{}" })
        })
      )
      assert.strictEqual(streams(), 1)
      yield* TestClock.adjust(249)
      assert.strictEqual(streams(), 1)
      yield* TestClock.adjust(1)
      assert.strictEqual(streams(), 2)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(streams(), 6)
    })
  )

  it.scoped("and asks for an absurd wait is opened again within a minute", () =>
    Effect.gen(function* () {
      const streams = yield* opened(({ onRetry }) => Effect.sync(() => onRetry?.(99_999_999_999_999)))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(streams(), 2)
    })
  )
})

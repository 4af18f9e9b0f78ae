/** The stream of a request that breaks before the answer: taken up again, and not for ever (K section 9.9). */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
import type { Client } from "../../src/net/GuardedClient.ts"
import type { HttpResponse } from "../../src/net/HttpResponse.ts"
import { maybeSent, type NetError, notSent, REFUSED } from "../../src/net/NetError.ts"
import * as Revisions from "../../src/protocol/Revisions.ts"
import * as HttpTransport from "../../src/transport/HttpTransport.ts"
import type { DeliveryFault, RemotePlan } from "../../src/transport/Transport.ts"

const plan: RemotePlan = {
  _tag: "remote",
  transport: "streamable_http",
  url: "https://mcp.example.com/mcp",
  shown: "test",
  headers: [],
  rules: { allowedPrivateHosts: [], allowedPrivateCidrs: [], blockedDomains: [], allowedDomains: [] },
  proxyMode: "direct",
  connectTimeoutMs: 5_000
}
const refusal = notSent("SIGIL_CONNECTION_LOST", REFUSED, "Nothing listens there.")
const cut = maybeSent("SIGIL_CONNECTION_LOST", "connection_closed", "It broke.")

const stream = (retryMs: number | undefined): HttpResponse => ({
  status: 200,
  header: (name) => (name === "content-type" ? "text/event-stream" : undefined),
  text: () => Effect.succeed(""),
  events: ({ onEvent, onRetry }) =>
    Effect.suspend(() => {
      if (retryMs !== undefined) onRetry?.(retryMs)
      onEvent({ id: "1", data: "" })
      return Effect.fail(cut)
    }),
  cancel: () => undefined
})
/** A stream that opens and breaks without a word. */
const empty: HttpResponse = { ...stream(undefined), events: () => Effect.fail(cut) }

/** A call whose stream broke, and what each attempt to take it up again comes to; the last one counts on. */
const broken = (attempts: ReadonlyArray<HttpResponse | NetError>, retryMs?: number) =>
  Effect.gen(function* () {
    const faults: Array<DeliveryFault> = []
    let dials = 0
    const client: Client = {
      send: ({ method }) =>
        Effect.suspend(() => {
          if (method !== "GET") return Effect.succeed(stream(retryMs))
          const result = attempts[Math.min(dials, attempts.length - 1)] ?? refusal
          dials += 1
          return result instanceof Error ? Effect.fail(result) : Effect.succeed(result)
        }),
      authorise: () => Effect.void,
      upgrade: () => Effect.dieMessage("not asked for")
    }
    const wire = yield* HttpTransport.open(plan, client, () => 0.5)
    wire.listen({
      message: () => true,
      waits: () => faults.length === 0,
      failed: (_id, fault) => faults.push(fault),
      end: () => undefined
    })
    wire.agreed?.(Revisions.newest)
    wire.send("{}", { id: 1, method: "tools/call" })
    yield* TestClock.adjust(0)
    return { faults, dials: () => dials }
  })

describe("a server that is gone in the middle of an answer", () => {
  for (const retryMs of [undefined, 1_000, 30_000])
    it.scoped(`is dialled three times, a second apart (retry: ${retryMs ?? "none"}); then the call fails`, () =>
      Effect.gen(function* () {
        const { dials, faults } = yield* broken([refusal], retryMs)
        assert.strictEqual(dials(), 0)
        yield* TestClock.adjust(retryMs ?? 1_000)
        assert.strictEqual(dials(), 1)
        yield* TestClock.adjust(999)
        assert.strictEqual(dials(), 1)
        yield* TestClock.adjust(1)
        assert.strictEqual(dials(), 2)
        assert.deepStrictEqual(faults, [])
        yield* TestClock.adjust(1_000)
        assert.strictEqual(dials(), 3)
        // The dial was not delivered; the call was.
        assert.deepStrictEqual(
          faults.map(({ code, delivered, reason }) => [code, reason, delivered]),
          [["SIGIL_CONNECTION_LOST", REFUSED, "unknown"]]
        )
        yield* TestClock.adjust("1 hour")
        assert.strictEqual(dials(), 3)
      })
    )
})

describe("a stream of a call", () => {
  it.scoped("that opens and breaks is taken up five times, at growing distances", () =>
    Effect.gen(function* () {
      const { dials, faults } = yield* broken([empty])
      yield* TestClock.adjust("14 seconds")
      assert.strictEqual(dials(), 3)
      assert.deepStrictEqual(faults, [])
      yield* TestClock.adjust("17 seconds")
      assert.strictEqual(dials(), 5)
      assert.strictEqual(faults[0]?.delivered, "unknown")
    })
  )

  it.scoped("whose server comes back between two refusals begins to count anew", () =>
    Effect.gen(function* () {
      const { dials, faults } = yield* broken([refusal, refusal, stream(undefined), refusal])
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(dials(), 5)
      assert.deepStrictEqual(faults, [])
      yield* TestClock.adjust("1 second")
      assert.strictEqual(dials(), 6)
      assert.lengthOf(faults, 1)
    })
  )
})

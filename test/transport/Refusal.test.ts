/** A connection that is refused before anybody asked for anything: the first request hears why, and not that it is gone. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { Client } from "../../src/net/GuardedClient.ts"
import { notSent } from "../../src/net/NetError.ts"
import * as SseTransport from "../../src/transport/SseTransport.ts"
import type { RemotePlan } from "../../src/transport/Transport.ts"
import * as WebSocketTransport from "../../src/transport/WebSocketTransport.ts"

const refusal = notSent("SIGIL_NETWORK_REFUSED", "address_private", "It is private.", "Admit it.")
const client: Client = {
  send: () => Effect.fail(refusal),
  authorise: () => Effect.void,
  upgrade: () => Effect.fail(refusal)
}
const planOf = (transport: "sse" | "ws"): RemotePlan => ({
  _tag: "remote",
  transport,
  shown: "test",
  url: "https://mcp.example.com/mcp",
  headers: [],
  rules: { allowedPrivateHosts: [], allowedPrivateCidrs: [], blockedDomains: [], allowedDomains: [] },
  proxyMode: "direct",
  connectTimeoutMs: 5_000
})

describe("a refusal at once", () => {
  for (const [name, opening] of [
    ["sse", SseTransport.open(planOf("sse"), client)],
    ["ws", WebSocketTransport.open(planOf("ws"), client)]
  ] as const)
    it.scoped(`(${name}) waits for the first request, after which the wire ends`, () =>
      Effect.gen(function* () {
        const wire = yield* opening
        const steps: Array<string> = []
        const ended = yield* Deferred.make<void>()
        wire.listen({
          message: () => true,
          failed: (id, { code, fix }) => steps.push(`${id} ${code} ${fix}`),
          end: ({ reason }) => {
            steps.push(reason)
            Effect.runSync(Deferred.succeed(ended, undefined))
          }
        })
        assert.isTrue(wire.send("{}", { id: 1, method: "initialize" }))
        assert.deepStrictEqual(steps, [])
        yield* Deferred.await(ended)
        assert.deepStrictEqual(steps, ["1 SIGIL_NETWORK_REFUSED Admit it.", "address_private"])
        assert.isFalse(wire.send("{}", { id: 2, method: "initialize" }))
      })
    )
})

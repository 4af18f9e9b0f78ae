/**
 * Remote servers beside those of this machine: opens the ones through the guarded client, hands the others on.
 *
 * What a transport does is in a file of its own and loaded when a server first wants it: most commands reach none.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { GuardedClient } from "../net/GuardedClient.ts"
import type { NetError } from "../net/NetError.ts"
import { Random } from "../platform/Random.ts"
import { type OpenRequest, type RemotePlan, Transport, type Wire } from "./Transport.ts"
import { TransportError } from "./TransportError.ts"

const failure = (
  request: OpenRequest,
  { code, delivered, details, fix, reason, status, text }: NetError
): TransportError =>
  new TransportError({
    code,
    reason,
    text: `The server '${request.server}' cannot be reached: ${text}`,
    fix,
    where: { server: request.server, operation: "connect" },
    details: { ...details, delivered, ...(status === undefined ? {} : { http_status: status }) }
  })

/** Opens remote servers, and everything else through the transport below. */
export const layer: Layer.Layer<Transport, never, Transport | GuardedClient | Random> = Layer.effect(
  Transport,
  Effect.gen(function* () {
    const others = yield* Transport
    const guarded = yield* GuardedClient
    const random = yield* Random
    const remote = (request: OpenRequest, plan: RemotePlan): Effect.Effect<Wire, NetError, Scope.Scope> =>
      Effect.gen(function* () {
        const { connectTimeoutMs, headers, proxyMode, rules, shown, url } = plan
        const client = yield* guarded.open({
          server: request.server,
          surface: "MCP server",
          url,
          shown,
          headers,
          rules,
          proxyMode,
          connectTimeoutMs
        })
        if (plan.transport === "sse") {
          const { open } = yield* Effect.promise(() => import("./SseTransport.ts"))
          return yield* open(plan, client)
        }
        if (plan.transport === "ws") {
          const { open } = yield* Effect.promise(() => import("./WebSocketTransport.ts"))
          return yield* open(plan, client)
        }
        const { open } = yield* Effect.promise(() => import("./HttpTransport.ts"))
        return yield* open(plan, client, random.fraction)
      })
    return Transport.of({
      open: (request) =>
        request.plan._tag === "remote"
          ? Effect.mapError(remote(request, request.plan), (error) => failure(request, error))
          : others.open(request)
    })
  })
)

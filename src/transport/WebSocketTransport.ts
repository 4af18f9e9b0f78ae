/**
 * WebSocket: one JSON message per text frame, both ways (S section 3.6). The socket is dialled under the guard of
 * `net/`, and each message is put on record before it leaves, in its turn.
 *
 * The wire is there before the socket is: messages wait for it, so the deadline of whoever asks bounds the upgrade too,
 * and closing the wire ends it. An upgrade that fails fails what waits for it, told like the same status over HTTP, and
 * then the wire; nothing of it was sent, so all of it may be asked again.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type { Client } from "../net/GuardedClient.ts"
import type { NetError } from "../net/NetError.ts"
import { type GuardedSocket, UPGRADE_REFUSED } from "../net/WebSocketClient.ts"
import type { Id } from "../protocol/JsonRpc.ts"
import * as RemoteWire from "./RemoteWire.ts"
import { retryAfter, statusFault } from "./StatusFault.ts"
import type { DeliveryFault, Outgoing, RemotePlan, Wire } from "./Transport.ts"

/** What the official SDKs offer and select; some of their servers insist on it. */
const SUBPROTOCOL = "mcp"

/** The fault of everything that waits for a socket which will not be there. `now` is ms. */
const upgradeFault = (error: NetError, credential: boolean, now: number): DeliveryFault => {
  const { reason, status } = error
  if (reason !== UPGRADE_REFUSED || status === undefined || status < 400)
    return { ...RemoteWire.faultOf(error), delivered: "no" }
  const fault = statusFault(status, { credential, retryAfterMs: retryAfter(error.retryAfter, now) })
  return { ...fault, delivered: "no", ...(status >= 500 ? { fix: "Try again later." } : {}) }
}

/** Opens a wire over a client; its socket is dialled at once, and nobody waits for that here. */
export const open = (plan: RemotePlan, client: Client): Effect.Effect<Wire, never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Effect.clock
    const scope = yield* Effect.scope
    const core = yield* RemoteWire.make
    const turn = yield* Effect.makeSemaphore(1)
    const credential = plan.headers.some((header) => header.credential)
    const opened = yield* Deferred.make<GuardedSocket>()
    /** Requests that wait for the socket. */
    const waiting = new Set<Id>()
    let socket: GuardedSocket | undefined

    const refused = (error: NetError): void =>
      core.refuse(upgradeFault(error, credential, clock.unsafeCurrentTimeMillis()), waiting)
    const adopt = (given: GuardedSocket): void => {
      socket = given
      waiting.clear()
      given.listen({
        message: (text, bytes) => core.deliver(text, bytes),
        end: ({ reason, text }) => core.finish({ reason, text })
      })
      Effect.runSync(Deferred.succeed(opened, given))
    }
    core.background(
      client
        .upgrade(plan.url, "connection_metadata", { subprotocol: SUBPROTOCOL })
        .pipe(Scope.extend(scope), Effect.match({ onFailure: refused, onSuccess: adopt }))
    )

    const post = (text: string, about: Outgoing | undefined): Effect.Effect<void> => {
      const id = about?.method === undefined ? undefined : about.id
      if (id !== undefined && socket === undefined) waiting.add(id)
      const sent = Effect.flatMap(Deferred.await(opened), (to) =>
        client.authorise(RemoteWire.dataKindOf(about)).pipe(
          Effect.map(() => void to.send(text)),
          Effect.catchAll((error) =>
            Effect.sync(() => {
              if (id !== undefined) core.failed(id, RemoteWire.faultOf(error))
            })
          )
        )
      )
      return turn.withPermits(1)(sent)
    }
    return core.wire({
      perMessage: false,
      send: (text, about) => {
        // What is on its way keeps its place, also when nobody waits for its answer any more.
        core.run(post(text, about))
        return true
      },
      backlogBytes: () => socket?.backlogBytes() ?? 0,
      parting: Effect.suspend(() => socket?.close ?? Effect.void)
    })
  })

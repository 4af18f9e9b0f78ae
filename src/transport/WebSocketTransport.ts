/**
 * WebSocket: one JSON message per text frame, both ways (S section 3.6). The socket is dialled under the guard of
 * `net/`, and each message is put on record before it leaves, in its turn.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Client } from "../net/GuardedClient.ts"
import type { NetError } from "../net/NetError.ts"
import * as RemoteWire from "./RemoteWire.ts"
import type { RemotePlan, Wire } from "./Transport.ts"

/** What the official SDKs offer and select; some of their servers insist on it. */
const SUBPROTOCOL = "mcp"

/** Opens the socket; fails when it cannot be opened. */
export const open = (plan: RemotePlan, client: Client): Effect.Effect<Wire, NetError, Scope.Scope> =>
  Effect.gen(function* () {
    const core = yield* RemoteWire.make
    const socket = yield* client.upgrade(plan.url, "connection_metadata", { subprotocol: SUBPROTOCOL })
    const turn = yield* Effect.makeSemaphore(1)
    socket.listen({
      message: (text, bytes) => core.deliver(text, bytes),
      end: ({ reason, text }) => core.finish({ reason, text })
    })
    return core.wire({
      perMessage: false,
      send: (text, about) => {
        const id = about?.method === undefined ? undefined : about.id
        const sent = client.authorise(RemoteWire.dataKindOf(about)).pipe(
          Effect.map(() => void socket.send(text)),
          Effect.catchAll((error) =>
            Effect.sync(() => {
              if (id !== undefined) core.failed(id, RemoteWire.faultOf(error))
            })
          )
        )
        // What is on its way keeps its place, also when nobody waits for its answer any more.
        core.run(turn.withPermits(1)(sent))
        return true
      },
      backlogBytes: socket.backlogBytes,
      parting: socket.close
    })
  })

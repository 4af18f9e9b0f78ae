/** WebSocket: one JSON message per text frame, both ways (S section 3.6). The socket is dialled under the guard of `net/`. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Client } from "../net/GuardedClient.ts"
import type { NetError } from "../net/NetError.ts"
import * as RemoteWire from "./RemoteWire.ts"
import type { RemotePlan, Wire } from "./Transport.ts"

/** Opens the socket; fails when it cannot be opened. */
export const open = (plan: RemotePlan, client: Client): Effect.Effect<Wire, NetError, Scope.Scope> =>
  Effect.gen(function* () {
    const core = yield* RemoteWire.make
    const socket = yield* client.upgrade(plan.url, "request")
    socket.listen({
      message: (text, bytes) => core.deliver(text, bytes),
      end: ({ reason, text }) => core.finish({ reason, text })
    })
    return core.wire({
      perMessage: false,
      send: (text) => socket.send(text),
      backlogBytes: socket.backlogBytes,
      parting: socket.close
    })
  })

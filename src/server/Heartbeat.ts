/**
 * Whether the peer behind a long connection is still there (S section 3.9): `ping` every half minute over SSE and
 * WebSocket, whose silence would otherwise look like a server with nothing to say.
 *
 * Any answer counts, an error too. Without one the connection ends, and a restart opens the next through all gates.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { SECOND_MS } from "../base/Units.ts"
import type { Connection } from "./Connection.ts"

/** Between two pings, ms. */
export const INTERVAL_MS = 30 * SECOND_MS
/** How long one may take, ms. */
const DEADLINE_MS = 20 * SECOND_MS

/** Pings in the scope until the connection ends. */
export const start = (connection: Connection): Effect.Effect<void, never, Scope.Scope> => {
  const ping = connection
    .request("ping", undefined, {
      deadlineMs: DEADLINE_MS,
      operation: "ping",
      deadlineField: "",
      background: true,
      cancellable: false,
      onTimeout: "keep",
      quietLate: true
    })
    .pipe(
      Effect.catchTag("RemoteError", () => Effect.void),
      Effect.catchAll(() =>
        Effect.sync(() =>
          connection.end({ reason: "heartbeat_lost", text: "The server did not answer a ping any more." })
        )
      )
    )
  const beat: Effect.Effect<void> = Effect.suspend(() =>
    connection.terminal() === undefined
      ? Effect.zipRight(
          Effect.sleep(Duration.millis(INTERVAL_MS)),
          Effect.zipRight(
            ping,
            Effect.suspend(() => beat)
          )
        )
      : Effect.void
  )
  return Effect.asVoid(Effect.forkScoped(beat))
}

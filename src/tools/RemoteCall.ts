/** What a call to a remote server takes with it besides its message, and when it may go to the next session. */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { type JsonObject, own } from "../base/Json.ts"
import { paramHeaderValues } from "../protocol/ParamHeaders.ts"
import type { AskOptions } from "../server/Asking.ts"
import * as CallDeadline from "../server/CallDeadline.ts"
import type { Generation } from "../server/Generation.ts"
import type { ConnectionError, RemoteError } from "../server/ServerError.ts"
import type { CatalogTool } from "./Catalog.ts"

/** The options of one call. `current` finds the tool again once its list was read anew. */
export const remoteOptions = (
  generation: Generation,
  tool: CatalogTool,
  args: JsonObject,
  clock: Clock.Clock,
  current: () => CatalogTool | undefined
): Partial<AskOptions> => {
  const { trustClass } = generation.declaration.trust
  return {
    headers: paramHeaderValues(tool.headers, args),
    // A hint counts only from a server that is the user's own or official (S section 12.3 row 27).
    idempotent:
      trustClass !== "third_party" &&
      tool.annotations !== undefined &&
      own(tool.annotations, "idempotentHint") === true,
    freshHeaders: Effect.gen(function* () {
      const { deadlineField, deadlineMs } = CallDeadline.of(generation.declaration, {})
      const end = clock.unsafeCurrentTimeMillis() + deadlineMs
      yield* generation.lists.read("tools", { remainingMs: () => end - clock.unsafeCurrentTimeMillis(), deadlineField })
      const now = current()
      return now?.status === "available" ? paramHeaderValues(now.headers, args) : undefined
    }).pipe(Effect.catchAll(() => Effect.succeed(undefined)))
  }
}

/** Whether the server forgot the session and never saw the request. */
export const isForgotten = (error: ConnectionError | RemoteError): boolean =>
  error.reason === "session_expired" && error.details?.["delivered"] === "no"

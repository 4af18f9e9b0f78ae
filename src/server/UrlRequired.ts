/**
 * Error -32042 of revision 2025-11-25: a request can only go on after a person opened addresses (K section 9.14).
 *
 * Each address is shown for consent by the way of every elicitation; after consent to all of them the request is sent
 * once more. What happened at an address nobody knows here, so a server that asks again is believed to mean it.
 */
import * as Effect from "effect/Effect"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { askedInAnswer, type Asker, type ServerRequestHandler } from "./Request.ts"
import { ConnectionError, type RemoteError } from "./ServerError.ts"

/** Addresses of one error that are shown. */
const MAX_ADDRESSES = 8

const required = (server: string, operation: string, reason: string, why: string, fix?: string): ConnectionError =>
  new ConnectionError({
    code: "SIGIL_INPUT_REQUIRED",
    reason,
    text: `'${operation}' on server '${server}' needs a person who opens an address: ${why}`,
    fix,
    where: { server, operation }
  })

/** Asks for consent to every address; succeeds when the request may be sent again. */
export const consent = (
  facts: {
    readonly server: string
    readonly operation: string
    readonly asker: Asker | undefined
    readonly handler: ServerRequestHandler | undefined
  },
  error: RemoteError
): Effect.Effect<void, ConnectionError> =>
  Effect.gen(function* () {
    const { asker, handler, operation, server } = facts
    const data = error.rpcData
    const listed = isJsonObject(data) ? own(data, "elicitations") : undefined
    const wanted = Array.isArray(listed) ? listed.filter((entry: Json): entry is JsonObject => isJsonObject(entry)) : []
    if (wanted.length === 0 || wanted.length > MAX_ADDRESSES)
      return yield* required(server, operation, "url_elicitation_invalid", "the server does not say which.")
    if (handler === undefined || asker?.elicitor?.url === undefined)
      return yield* required(
        server,
        operation,
        "url_elicitation_unavailable",
        "nobody can do that here.",
        "Set [mcp] elicitation_url = true in sigil.toml and call from a terminal."
      )
    const { asked, failure } = askedInAnswer(asker, operation)
    for (const entry of wanted) {
      const answer = yield* handler({ ...entry, mode: "url" }, asked).pipe(
        Effect.mapError(({ message }) => required(server, operation, "url_elicitation_unavailable", message))
      )
      const failed = failure()
      if (failed !== undefined) return yield* failed
      if (own(answer, "action") !== "accept")
        return yield* required(server, operation, "url_elicitation_declined", "the person declined.")
    }
  })

/**
 * Noticing that a remote server is not what it was when it was asked: restarted with other revisions, or without the
 * session that it had (K section 9.7: what is known of the era is found out again when it does not hold).
 *
 * Over HTTP such a server refuses each message by itself and the connection never ends. One refusal proves nothing,
 * since it may be about that very request, so a doubtful one is followed by a question that every server of the agreed
 * revision answers. When that is refused too, the connection is ended, and the next start finds out anew. The request
 * keeps its own failure and is not sent again.
 */
import * as Effect from "effect/Effect"
import { SECOND_MS } from "../base/Units.ts"
import { ErrorCode } from "../protocol/JsonRpc.ts"
import type { Revision } from "../protocol/Revision.ts"
import type { Ask } from "./Asking.ts"
import type { Connection } from "./Connection.ts"
import { isModern } from "./Negotiation.ts"
import type { ConnectionError, RemoteError } from "./ServerError.ts"

/** How long the question may take, ms. */
const QUESTION_MS = 5 * SECOND_MS

/** HTTP statuses by which servers refuse what they do not speak or know (K sections 9.7 and 9.9). */
const refusing = new Set<unknown>([400, 404, 405])

/** JSON-RPC errors that are about one request. */
const aboutOne = new Set<number>([ErrorCode.methodNotFound, ErrorCode.invalidParams])

const isRefusal = (failure: ConnectionError | RemoteError): boolean => refusing.has(failure.details?.["http_status"])

/** Whether a failure may mean that the server does not speak the agreed revision any more. */
export const isDoubtful = (failure: ConnectionError | RemoteError): boolean =>
  isRefusal(failure) && !(failure._tag === "RemoteError" && aboutOne.has(failure.rpcCode))

/** Asks through `ask`, and ends the connection when the server turns out to be another one. */
export const watching =
  (connection: Connection, revision: Revision, ask: Ask): Ask =>
  (method, params, options) =>
    Effect.tapError(ask(method, params, options), (failure) =>
      isDoubtful(failure) && connection.terminal() === undefined ? settle(connection, revision) : Effect.void
    )

const settle = (connection: Connection, revision: Revision): Effect.Effect<void> => {
  const stateless = revision.era === "stateless"
  const method = stateless ? "server/discover" : "ping"
  return connection
    .request(
      method,
      {},
      {
        deadlineMs: QUESTION_MS,
        operation: method,
        deadlineField: "",
        background: true,
        onTimeout: "keep",
        quietLate: true
      }
    )
    .pipe(
      Effect.catchAll((failure) =>
        Effect.sync(() => {
          // A server of the stateless revision knows its own question and refuses it with words of its own at most.
          const unknown = failure._tag === "RemoteError" && failure.rpcCode === ErrorCode.methodNotFound
          const other = stateless ? (isRefusal(failure) || unknown) && !isModern(failure) : isRefusal(failure)
          if (!other) return
          connection.end({
            reason: stateless ? "revision_refused" : "session_expired",
            text: stateless
              ? `The server does not speak revision ${revision.version} any more.`
              : "The server does not know its connection any more: it refuses every message."
          })
        })
      ),
      Effect.asVoid
    )
}

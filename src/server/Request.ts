/**
 * One request in either direction, apart from how it is carried: what the host asks for, on whose behalf, and what a
 * request of the server belongs to.
 */
import type * as Effect from "effect/Effect"
import type { JsonObject } from "../base/Json.ts"
import type { Elicitor } from "./Elicitor.ts"
import type { Progress } from "./Progress.ts"
import type { ConnectionError } from "./ServerError.ts"

/** How one request is made. */
export interface RequestOptions {
  /** Deadline in ms, the time in the queue included. */
  readonly deadlineMs: number
  /** Names the request in errors, e.g. `tools/call read_file`. */
  readonly operation: string
  readonly onProgress?: (progress: Progress) => void
  /** The configuration field that sets the deadline; named by the timeout error. */
  readonly deadlineField: string
  /** The same with its unit, where the name does not tell it. */
  readonly deadlineHint?: string
  /** Whether an abandoned request is announced with `notifications/cancelled`; never for `initialize`. */
  readonly cancellable?: boolean
  /** Present: progress of this very request starts its deadline anew, up to this many ms in all. */
  readonly idleMaxMs?: number
  /** The field that sets `idleMaxMs`. */
  readonly idleMaxField?: string
  /** `keep`: a deadline never harms the connection, whatever the entry says, and is no sign of a bad one. */
  readonly onTimeout?: "keep"
  /** Of sigil's own accord: what the server says meanwhile is counted as if nothing were open. */
  readonly background?: boolean
  /** It stays open for the life of the connection: nobody waits for its answer, and it is nobody's call. */
  readonly standing?: boolean
  /** On whose behalf: whom the server may ask something back meanwhile. */
  readonly asker?: Asker
  /** What may be asked back in this very request, where a revision says so per request; the standing ones if absent. */
  readonly capabilities?: JsonObject
  /** Least severity of log messages for this request, where a revision says so per request. */
  readonly logLevel?: string
  /** Headers of this request, for transports that have some. */
  readonly headers?: { readonly [name: string]: string }
  /** An answer that comes after this request was given up is expected, and no oddity. */
  readonly quietLate?: boolean
}

/** Whoever a request is made for. */
export interface Asker {
  /** Tells callers apart, e.g. `cli`, `gateway:<session>`. */
  readonly identity: string
  /** Answers forms; absent: nobody can. */
  readonly elicitor?: Elicitor | undefined
}

/** What a request of the server is about. */
export interface Asked {
  /** The caller it belongs to; `undefined` when no call is open, or calls of several callers are. */
  readonly asker: Asker | undefined
  /** Names the call it belongs to, for messages. */
  readonly operation: string
  /** Fails the calls it belongs to: what the server asks for cannot be given. */
  readonly fail: (error: ConnectionError) => void
  /** Runs what a person takes time for; deadlines of the calls it belongs to stand still meanwhile. */
  readonly unhurried: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/**
 * What a request of the server is about that came inside an answer: no deadline runs meanwhile, so nothing has to stand
 * still, and the first failure is kept for whoever gathers the answers.
 */
export const askedInAnswer = (
  asker: Asker | undefined,
  operation: string
): { readonly asked: Asked; readonly failure: () => ConnectionError | undefined } => {
  let failure: ConnectionError | undefined
  return {
    asked: {
      asker,
      operation,
      fail: (error) => {
        failure ??= error
      },
      unhurried: (effect) => effect
    },
    failure: () => failure
  }
}

/** Answers one request of the server. Absent: -32601. */
export type ServerRequestHandler = (
  params: JsonObject,
  asked: Asked
) => Effect.Effect<JsonObject, { code: number; message: string }>

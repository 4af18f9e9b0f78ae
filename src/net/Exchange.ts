/**
 * One message on one connection, up to the headers of its answer: callbacks, no Effect per step.
 *
 * Redirects are refused, not followed: the answer of a server must not choose where the next message goes. So are
 * compressed answers, whose size on the wire bounds nothing, and answers that say an important header twice.
 */
import * as Effect from "effect/Effect"
import type { Dispatcher } from "undici"
import { doubled } from "./ClientHeaders.ts"
import { ConnectionGone, type Connections, type Kept } from "./Connections.ts"
import { type BodyReader, type HttpResponse, makeResponse } from "./HttpResponse.ts"
import { headTooLarge } from "./InterimAnswers.ts"
import { MIB } from "../base/Units.ts"
import { errorCodeOf, maybeSent, type NetError, notSent } from "./NetError.ts"

/** Bytes of a body that may come before somebody reads it, which is a moment later (spec section 6: 8 MiB a body). */
const MAX_HELD_BYTES = 8 * MIB

/** A message, ready to be written. */
export interface Outgoing {
  readonly method: "GET" | "POST" | "DELETE"
  /** Path and query. */
  readonly path: string
  readonly headers: { readonly [name: string]: string }
  readonly body: string | undefined
}

/** Where a redirect leads: the origin, which is all that may be shown. */
export const redirectFault = (status: number, location: string | undefined, base: string): NetError => {
  const target = location !== undefined && URL.canParse(location, base) ? new URL(location, base).origin : undefined
  return maybeSent(
    "SIGIL_REDIRECT_REFUSED",
    "redirect",
    target === undefined || target === "null"
      ? `The server answered with a redirect (status ${status}), which is not followed.`
      : `The server answered with a redirect to ${target} (status ${status}), which is not followed.`,
    status
  )
}

/** What ended a connection, in our words. */
const faultOf = (error: unknown, host: string, started: boolean): NetError => {
  const code = errorCodeOf(error)
  if (code === "UND_ERR_HEADERS_OVERFLOW") return headTooLarge()
  // The parser's word for a body of chunks that was cut: no invalid HTTP, but a lost connection.
  const cut = error instanceof Error && error.message.includes("(Invalid EOF state)")
  const invalid =
    code.startsWith("HPE_") || code === "HTTPParserError" || code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH"
  if (invalid && !cut)
    return maybeSent("SIGIL_PROTOCOL_FAULT", "invalid_http", `The server's answer is not valid HTTP (${code}).`)
  if (code === "UND_ERR_INVALID_ARG")
    return notSent("SIGIL_CONFIG_INVALID", "request_invalid", "The message has a header or path that cannot be sent.")
  const text = `The connection to '${host}' ended before the answer was complete.`
  return started
    ? maybeSent("SIGIL_CONNECTION_LOST", "connection_closed", text)
    : notSent("SIGIL_CONNECTION_LOST", "connection_closed", text)
}

/** What `exchange` leaves for whoever has to stop it. */
export interface Running {
  /** Closes the connection, unless the exchange is over. */
  stop: () => void
}

/**
 * Sends a message over a free connection. Answers with the response once its headers came, or with `undefined` when
 * no connection is free or the one taken was found closed before anything was written: then a new one is needed.
 */
export const exchange = (
  connections: Connections,
  origin: string,
  message: Outgoing,
  running: Running
): Effect.Effect<HttpResponse | undefined, NetError> =>
  Effect.async((resume) => {
    const kept = connections.take()
    if (kept === undefined) return resume(Effect.succeed(undefined))
    const handler = makeHandler(connections, kept, origin, running, (result) => resume(result))
    try {
      kept.client.dispatch(
        {
          origin,
          method: message.method,
          path: message.path,
          headers: { ...message.headers },
          body: message.body ?? null
        },
        handler
      )
    } catch (error) {
      connections.drop(kept, new ConnectionGone("refused"))
      resume(Effect.fail(faultOf(error, new URL(origin).host, false)))
    }
  })

const makeHandler = (
  connections: Connections,
  kept: Kept,
  origin: string,
  running: Running,
  answer: (result: Effect.Effect<HttpResponse | undefined, NetError>) => void
): Dispatcher.DispatchHandler => {
  let started = false
  let answered = false
  let over = false
  let reader: BodyReader | undefined
  let failed: NetError | undefined
  /** What came before there was a reader. undici's own pause is of no use: a reset meanwhile is an uncaught exception. */
  let held: Array<Buffer> = []
  let heldBytes = 0
  let ended = false

  const stop = (): void => {
    if (over) return
    over = true
    connections.drop(kept, new ConnectionGone("stopped"))
  }
  running.stop = stop
  /** The body was read to its end. */
  const finish = (by: BodyReader): void => {
    if (over) return
    over = true
    connections.free(kept)
    by.end()
  }
  /** Ends everything with a failure of ours. */
  const reject = (error: NetError): void => {
    const first = !answered
    answered = true
    stop()
    if (first) answer(Effect.fail(error))
  }
  kept.awaitAnswer(reject)
  return {
    onRequestStart: () => {
      started = true
    },
    onResponseStart: (_controller, status, headers) => {
      // Interim answers do not come this far; what is left is the switch to a protocol that nobody asked for.
      if (status < 200)
        return reject(
          maybeSent("SIGIL_PROTOCOL_FAULT", "invalid_http", "The server answered with a switch of protocols.", status)
        )
      const double = doubled(headers)
      if (double !== undefined)
        return reject(
          maybeSent(
            "SIGIL_PROTOCOL_FAULT",
            "header_duplicate",
            `The server answered with more than one header '${double}'.`,
            status
          )
        )
      const { location } = headers
      if (status >= 300 && status < 400)
        return reject(redirectFault(status, typeof location === "string" ? location : undefined, origin))
      const coding = headers["content-encoding"]
      if (typeof coding === "string" && coding.trim() !== "" && coding.trim().toLowerCase() !== "identity")
        return reject(
          maybeSent(
            "SIGIL_PROTOCOL_FAULT",
            "content_encoding",
            "The server answered with a compressed body, which was not asked for.",
            status
          )
        )
      answered = true
      const response = makeResponse(status, headers, {
        read: (given) => {
          reader = given
          const before = held
          held = []
          for (const chunk of before) given.data(chunk)
          if (failed !== undefined) given.fail(failed)
          else if (ended) finish(given)
        },
        cancel: stop
      })
      answer(Effect.succeed(response))
    },
    onResponseData: (_controller, chunk) => {
      if (over) return
      if (reader !== undefined) return reader.data(chunk)
      held.push(chunk)
      heldBytes += chunk.length
      if (heldBytes <= MAX_HELD_BYTES) return
      held = []
      failed = maybeSent(
        "SIGIL_LIMIT_EXCEEDED",
        "body_too_large",
        `The server sent an answer of more than ${MAX_HELD_BYTES} bytes.`
      )
      stop()
    },
    onResponseEnd: () => {
      ended = true
      if (reader !== undefined) finish(reader)
    },
    onResponseError: (_controller, error) => {
      const stopped = over
      over = true
      connections.drop(kept, new ConnectionGone("failed"))
      if (!answered) {
        answered = true
        return answer(
          !started && error instanceof ConnectionGone
            ? Effect.succeed(undefined)
            : Effect.fail(faultOf(error, new URL(origin).host, started))
        )
      }
      failed ??= faultOf(error, new URL(origin).host, true)
      if (!stopped) reader?.fail(failed)
    }
  }
}

/**
 * A WebSocket over a connection that the guard dialled: text frames only, bounded, not compressed.
 *
 * The library gets the socket and never dials itself; a redirect in the handshake is refused like any other.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { RawData, WebSocket } from "ws"
import { MIB } from "../base/Units.ts"
import type { Dialled } from "./Dial.ts"
import { redirectFault } from "./Exchange.ts"
import { MAX_RESPONSE_HEADER_BYTES } from "./InterimAnswers.ts"
import { errorCodeOf, maybeSent, NetError, notSent } from "./NetError.ts"

/** Bytes of one frame, the limit of a message on every transport. */
export const MAX_FRAME_BYTES = 4 * MIB

/** Who gets what comes. */
export interface SocketReceiver {
  /** One text frame and its size in bytes. */
  readonly message: (text: string, bytes: number) => void
  /** The connection is over; said once. */
  readonly end: (error: NetError) => void
}

/** An open WebSocket. */
export interface GuardedSocket {
  /** Starts delivery; what came before is delivered first. */
  readonly listen: (receiver: SocketReceiver) => void
  /** Sends a text frame; `false` when the connection is over. */
  readonly send: (text: string) => boolean
  /** Bytes that were sent and not yet taken by the system. */
  readonly backlogBytes: () => number
  /** Ends the connection in the ordinary way (1000). */
  readonly close: Effect.Effect<void>
}

const endFault = (code: number): NetError =>
  maybeSent("SIGIL_CONNECTION_LOST", "connection_closed", `The server closed the WebSocket (code ${code}).`)

/** Why a server that selected no subprotocol although one was offered is not spoken to; RFC 6455 lets it. */
export const NO_SUBPROTOCOL = "no_subprotocol"

/** Why there is no WebSocket: the answer to the upgrade has another status than 101, which the failure holds. */
export const UPGRADE_REFUSED = "upgrade_refused"

const refusedFault = (status: number, retryAfter: string | undefined): NetError =>
  new NetError({
    code: "SIGIL_CONNECTION_LOST",
    reason: UPGRADE_REFUSED,
    text: `The server answered without opening a WebSocket (HTTP ${status}).`,
    fix: "Check the URL of the entry and its transport: at this address the server may speak HTTP only.",
    delivered: "unknown",
    status,
    ...(retryAfter === undefined ? {} : { retryAfter })
  })

const errorFault = (error: Error): NetError => {
  // The library gives this error no code.
  if (error.message === "Server sent no subprotocol")
    return notSent("SIGIL_PROTOCOL_FAULT", NO_SUBPROTOCOL, "The server selected no subprotocol of the WebSocket.")
  const code = errorCodeOf(error)
  if (code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH")
    return maybeSent(
      "SIGIL_LIMIT_EXCEEDED",
      "frame_too_large",
      `The server sent a message of more than ${MAX_FRAME_BYTES} bytes.`
    )
  return code.startsWith("WS_ERR_")
    ? maybeSent("SIGIL_PROTOCOL_FAULT", "invalid_frame", `The server broke the WebSocket protocol (${code}).`)
    : maybeSent("SIGIL_CONNECTION_LOST", "connection_closed", `The WebSocket connection failed (${code}).`)
}

const makeSocket = (ws: WebSocket): GuardedSocket => {
  let receiver: SocketReceiver | undefined
  let early: Array<readonly [string, number]> = []
  let ended: NetError | undefined
  const end = (error: NetError): void => {
    if (ended !== undefined) return
    ended = error
    receiver?.end(error)
  }
  ws.on("message", (data: RawData, isBinary: boolean) => {
    if (ended !== undefined) return
    if (isBinary || !Buffer.isBuffer(data)) {
      end(maybeSent("SIGIL_PROTOCOL_FAULT", "binary_frame", "The server sent a binary frame; messages are text."))
      return ws.terminate()
    }
    const text = data.toString("utf8")
    if (receiver === undefined) {
      early.push([text, data.length])
      // Nobody listens yet: the server waits instead of filling memory.
      ws.pause()
    } else receiver.message(text, data.length)
  })
  ws.on("error", (error) => end(errorFault(error)))
  ws.on("close", (code) => end(endFault(code)))
  return {
    listen: (given) => {
      receiver = given
      const kept = early
      early = []
      for (const [text, bytes] of kept) given.message(text, bytes)
      if (ended !== undefined) given.end(ended)
      else ws.resume()
    },
    send: (text) => {
      if (ended !== undefined || ws.readyState !== ws.OPEN) return false
      ws.send(text)
      return true
    },
    backlogBytes: () => ws.bufferedAmount,
    close: Effect.sync(() => ws.close(1000))
  }
}

const handshake = (
  Socket: typeof WebSocket,
  url: URL,
  headers: { readonly [name: string]: string },
  { socket }: Dialled,
  subprotocol: string | undefined,
  opened: (stop: () => void) => void
): Effect.Effect<GuardedSocket, NetError> =>
  Effect.async((resume) => {
    const { "accept-encoding": _unused, ...sent } = headers
    const ws = new Socket(url, subprotocol === undefined ? [] : [subprotocol], {
      createConnection: () => socket,
      headers: sent,
      followRedirects: false,
      perMessageDeflate: false,
      maxPayload: MAX_FRAME_BYTES,
      maxHeaderSize: MAX_RESPONSE_HEADER_BYTES
    })
    const stop = (): void => {
      ws.terminate()
      socket.destroy()
    }
    const failed = (error: NetError): void => {
      stop()
      resume(Effect.fail(error))
    }
    opened(stop)
    // Listens from the beginning: frames may come in the same packet as the handshake.
    const guarded = makeSocket(ws)
    const onError = (error: Error): void => failed(errorFault(error))
    ws.once("error", onError)
    ws.once("unexpected-response", (_request, response) => {
      const status = response.statusCode ?? 0
      failed(
        status >= 300 && status < 400
          ? redirectFault(status, response.headers.location, url.origin)
          : refusedFault(status, response.headers["retry-after"])
      )
    })
    ws.once("open", () => {
      ws.off("error", onError)
      resume(Effect.succeed(guarded))
    })
    return Effect.sync(stop)
  })

/** Dials, upgrades, and gives the socket to the scope. Fails with `NO_SUBPROTOCOL` when the offered one is not selected. */
export const openSocket = (
  url: URL,
  headers: { readonly [name: string]: string },
  dialled: Effect.Effect<Dialled, NetError>,
  subprotocol?: string
): Effect.Effect<GuardedSocket, NetError, Scope.Scope> =>
  Effect.gen(function* () {
    const { WebSocket } = yield* Effect.promise(() => import("ws"))
    let stop = (): void => {}
    yield* Effect.addFinalizer(() => Effect.sync(() => stop()))
    return yield* Effect.flatMap(dialled, (connection) =>
      handshake(WebSocket, url, headers, connection, subprotocol, (given) => {
        stop = given
      })
    )
  })

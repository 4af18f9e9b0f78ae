/**
 * Drops interim answers (1xx) from what a connection reads, before the HTTP client sees them.
 *
 * RFC 9110 section 15.2 obliges a client to take them and lets it ignore them, whether it asked for them or not. undici
 * 7 ends the connection on a 100 and has no setting for it; so whole heads of interim answers are taken out of the
 * bytes where an answer begins, and nowhere else. A 101 is left in: no upgrade is asked for on these connections.
 *
 * Invariants: from the first byte that is not of an interim answer everything passes untouched, until the next answer
 * is awaited; what is held back is no more than a head may be.
 */
import type * as net from "node:net"
import { KIB } from "../base/Units.ts"
import { maybeSent, type NetError } from "./NetError.ts"

/** Bytes of the headers of an answer (R section 8.4). */
export const MAX_RESPONSE_HEADER_BYTES = 32 * KIB
/** Interim answers before the answer itself. */
export const MAX_INTERIM = 8

const NOTHING: Buffer = Buffer.alloc(0)
const END_OF_HEAD = "\r\n\r\n"
/** How one begins; the digits may be others. */
const BEGINNING = "HTTP/1.1 100"
const beginning = /^HTTP\/1\.\d 1(?!01)\d\d$/

/** Whether bytes begin an interim answer; `undefined` while they are too few to tell. */
const isInterim = (bytes: Buffer): boolean | undefined => {
  const seen = bytes.toString("latin1", 0, BEGINNING.length)
  if (!beginning.test(seen + BEGINNING.slice(seen.length))) return false
  return seen.length < BEGINNING.length ? undefined : true
}

/** A head above the limit, interim or not. */
export const headTooLarge = (): NetError =>
  maybeSent(
    "SIGIL_LIMIT_EXCEEDED",
    "headers_too_large",
    `The server answered with headers of more than ${MAX_RESPONSE_HEADER_BYTES} bytes.`
  )

const withoutEnd = (): NetError =>
  maybeSent("SIGIL_PROTOCOL_FAULT", "invalid_http", "The server sent interim answers without end.")

/** Says that an answer is awaited now; `onFault` is called once, instead of an answer, when a limit is exceeded. */
export type AwaitAnswer = (onFault: (error: NetError) => void) => void

/** Stands between a socket and whoever calls its `read`, which is how undici takes its bytes. */
export const dropInterim = (socket: net.Socket): AwaitAnswer => {
  const read = socket.read.bind(socket)
  let fail: ((error: NetError) => void) | undefined
  let held: Buffer = NOTHING
  let count = 0

  const over = (error: NetError): Buffer => {
    const tell = fail
    fail = undefined
    held = NOTHING
    tell?.(error)
    return NOTHING
  }
  /** What passes of the bytes that came. */
  const take = (chunk: Buffer): Buffer => {
    if (fail === undefined) return chunk
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    while (held.length > 0) {
      const interim = isInterim(held)
      if (interim === undefined) return NOTHING
      if (!interim) {
        const rest = held
        fail = undefined
        held = NOTHING
        return rest
      }
      if (count >= MAX_INTERIM) return over(withoutEnd())
      const end = held.indexOf(END_OF_HEAD)
      if ((end < 0 ? held.length : end) > MAX_RESPONSE_HEADER_BYTES) return over(headTooLarge())
      if (end < 0) return NOTHING
      count += 1
      held = held.subarray(end + END_OF_HEAD.length)
    }
    return NOTHING
  }
  socket.read = (size?: number): unknown => {
    for (;;) {
      const chunk: unknown = read(size)
      if (!Buffer.isBuffer(chunk)) return chunk
      const rest = take(chunk)
      if (rest.length > 0) return rest
      if (socket.destroyed) return null
    }
  }
  return (onFault) => {
    fail = onFault
    held = NOTHING
    count = 0
  }
}

/**
 * Bytes of HTTP/1.1 by hand, for what `node:http` is too polite to send.
 *
 * A response that is written by hand ends its connection, because the parser of `node:http` behind it would answer the
 * next request of the same connection before it.
 */
import type * as net from "node:net"

export type Headers = { readonly [name: string]: string }

export const JSON_TYPE = "application/json"
export const SSE_TYPE = "text/event-stream"

/** Status line and headers, with the empty line. */
export const head = (status: number, headers: Headers, version = "1.1"): string =>
  [
    `HTTP/${version} ${status} Status`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "",
    ""
  ].join("\r\n")

/** One chunk of a chunked body. */
export const chunk = (data: string | Buffer): Buffer => {
  const bytes = Buffer.from(data)
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")])
}

/** The end of a chunked body. */
export const LAST_CHUNK = "0\r\n\r\n"

/** One event with one message. */
export const event = (message: object): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`

/** Headers of a body of unknown length on a connection that ends with it. */
export const chunked = (type: string): Headers => ({
  "Content-Type": type,
  "Transfer-Encoding": "chunked",
  Connection: "close"
})

/** Writes `next()` as fast as it is taken, until the connection is gone. */
export const pump = (socket: net.Socket, next: () => string | Buffer): void => {
  const more = (): void => {
    while (!socket.destroyed && socket.writable) if (!socket.write(next())) return void socket.once("drain", more)
  }
  more()
}

/**
 * Everything that the hostile server can do about one request, by name.
 *
 * Each is a plain function over the bytes of one exchange. Some do no harm and must be tolerated; which are which says
 * `Table.ts`. Where a fault has a pace or a delay it is the exchange's `ms`.
 */
import { gzipSync } from "node:zlib"
import { KIB, MIB, SECOND_MS } from "../../../src/base/Units.ts"
import { notification } from "./Answers.ts"
import { chunk, chunked, event, head, JSON_TYPE, LAST_CHUNK, pump, SSE_TYPE } from "./Bytes.ts"
import type { Exchange } from "./Exchange.ts"

/** Notifications of a storm. */
export const STORM = 10_000
/** Size of a body that is too large, over the limit of 8 MiB (spec section 6). */
export const HUGE_BYTES = 9 * MIB
/** Depth of a result that no parser should follow. */
export const DEPTH = 100_000
/** What a compressed body unfolds to. */
export const BOMB_BYTES = 64 * MIB
/** Size of all headers of a flood. */
export const FLOOD_BYTES = MIB
/** Interim responses before an answer. */
export const INTERIM = 3

type Fault = (exchange: Exchange) => void

const bodyOf = ({ answer }: Exchange): string => JSON.stringify(answer.message ?? {})

/** A whole response with a length, through `node:http`. */
const send = (
  { response, headers }: Exchange,
  status: number,
  type: string | undefined,
  body: string | Buffer,
  more: { readonly [name: string]: string } = {}
): void => {
  response.writeHead(status, {
    ...headers,
    ...(type === undefined ? {} : { "content-type": type }),
    "content-length": Buffer.byteLength(body),
    ...more
  })
  response.end(body)
}

/** A response by hand that ends its connection; `bytes` follow the headers. */
const byHand = (
  { socket, headers }: Exchange,
  status: number,
  own: { readonly [name: string]: string },
  bytes: ReadonlyArray<string | Buffer>
): void => {
  socket.write(head(status, { ...headers, ...own }))
  for (const part of bytes) socket.write(part)
}

/** An event stream of these bytes; ended well unless `open`. */
const stream = (exchange: Exchange, parts: ReadonlyArray<string | Buffer>, open = false): void => {
  byHand(exchange, 200, chunked(SSE_TYPE), [...parts.map(chunk), ...(open ? [] : [LAST_CHUNK])])
  if (!open) exchange.socket.end()
}

/** The right answer as one event. */
const good = (exchange: Exchange): string => event(exchange.answer.message ?? {})

const withResult = (exchange: Exchange, more: object): object => {
  const { message } = exchange.answer
  const result = message?.["result"]
  return { ...message, result: { ...(typeof result === "object" ? result : {}), ...more } }
}

const html =
  (status: number): Fault =>
  (exchange) =>
    send(
      exchange,
      status,
      "text/html; charset=utf-8",
      `<!doctype html><title>${status}</title><h1>Status ${status}</h1>`
    )

const redirect =
  (status: number, to: (exchange: Exchange) => string): Fault =>
  (exchange) =>
    send(exchange, status, undefined, "", { location: to(exchange) })

const status =
  (code: number, headers: { readonly [name: string]: string } = {}): Fault =>
  (exchange) =>
    send(exchange, code, undefined, "", headers)

const jsonBody =
  (body: (exchange: Exchange) => string | Buffer): Fault =>
  (exchange) =>
    send(exchange, 200, JSON_TYPE, body(exchange))

const events =
  (list: (exchange: Exchange) => ReadonlyArray<string | Buffer>): Fault =>
  (exchange) =>
    stream(exchange, list(exchange))

const storm: Fault = (exchange) => {
  const { era, message, step } = exchange
  // A listen stream may only carry what was asked for; elsewhere the messages are of the log.
  const about =
    step === "stream" && era === "modern"
      ? notification("notifications/tools/list_changed", {}, message.id)
      : notification("notifications/message", { level: "info", data: "storm" })
  stream(
    exchange,
    [event(about).repeat(STORM), ...(exchange.answer.message === undefined ? [] : [good(exchange)])],
    step === "stream"
  )
}

/** The character `é` cut in two: its first byte, and its second. */
const splitLetter = (exchange: Exchange): readonly [Buffer, Buffer] => {
  const whole = Buffer.from(event(withResult(exchange, { _meta: { letter: "é" } })))
  const at = whole.indexOf(0xc3) + 1
  return [whole.subarray(0, at), whole.subarray(at)]
}

const bombs = new Map<string, Buffer>()
const bomb = (exchange: Exchange): Buffer => {
  const [before = "", after = ""] = JSON.stringify(withResult(exchange, { padding: "@" })).split("@")
  const known = bombs.get(before)
  if (known !== undefined) return known
  // Members one after the other unfold to one text, and cost this process little (RFC 1952 section 2.2).
  const member = gzipSync(Buffer.alloc(MIB, "a"))
  const members = Array.from({ length: BOMB_BYTES / MIB }, () => member)
  const made = Buffer.concat([gzipSync(before), ...members, gzipSync(after)])
  bombs.set(before, made)
  return made
}

const slowHeaders: Fault = ({ socket, ms, control }) => {
  const text = `HTTP/1.1 200 OK\r\nContent-Type: ${JSON_TYPE}\r\nX-Slow: `
  let at = 0
  // The last header never ends.
  control.every(ms, socket, () => socket.write(text[at++] ?? "a"))
}

const trickle: Fault = (exchange) => {
  const bytes = Buffer.from(bodyOf(exchange))
  const { socket, ms, control } = exchange
  byHand(exchange, 200, chunked(JSON_TYPE), [])
  let at = 0
  control.every(ms, socket, () => {
    if (at < bytes.length) socket.write(chunk(bytes.subarray(at, (at += 1))))
    else if (at++ === bytes.length) socket.end(LAST_CHUNK)
  })
}

const endlessBody: Fault = (exchange) => {
  byHand(exchange, 200, chunked(JSON_TYPE), [chunk('{"jsonrpc":"2.0","padding":"')])
  const block = chunk("a".repeat(64 * KIB))
  pump(exchange.socket, () => block)
}

const endlessComments: Fault = (exchange) => {
  stream(exchange, [": open\n\n"], true)
  exchange.control.every(exchange.ms, exchange.socket, () => exchange.socket.write(chunk(": still here\n\n")))
}

const commentFlood: Fault = (exchange) => {
  stream(exchange, [": open\n\n"], true)
  const block = chunk(": still here\n\n".repeat(4 * KIB))
  pump(exchange.socket, () => block)
}

const endlessEvent: Fault = (exchange) => {
  stream(exchange, ["data: {"], true)
  const block = chunk("a".repeat(64 * KIB))
  pump(exchange.socket, () => block)
}

/** By name. */
export const faults = {
  /** No harm: the right answer. */
  none: (exchange) => exchange.behave(),

  // Nothing, or not in time.
  "black hole": () => undefined,
  late: (exchange) => exchange.control.later(exchange.ms, exchange.behave),
  accepted: status(202),
  "no content": status(204),
  "slow headers": slowHeaders,
  trickle,
  "endless body": endlessBody,
  "endless comments": endlessComments,
  "comment flood": commentFlood,
  "endless event": endlessEvent,

  // The connection.
  refuse: ({ control }) => void control.refuse(),
  restart: ({ control }) => void control.restart(),
  "close before": ({ socket }) => void socket.end(),
  "reset before": ({ socket }) => void socket.resetAndDestroy(),
  "reset in body": (exchange) => {
    const body = bodyOf(exchange)
    byHand(exchange, 200, { "Content-Type": JSON_TYPE, "Content-Length": String(body.length + 1_000) }, [])
    exchange.socket.write(body.slice(0, body.length >> 1), () => exchange.socket.resetAndDestroy())
  },
  "close in body": (exchange) => {
    const body = bodyOf(exchange)
    byHand(exchange, 200, { "Content-Type": JSON_TYPE, "Content-Length": String(body.length + 1_000) }, [body])
    exchange.socket.end()
  },
  "close after": (exchange) => {
    const body = bodyOf(exchange)
    byHand(
      exchange,
      exchange.answer.status,
      { "Content-Type": JSON_TYPE, "Content-Length": String(Buffer.byteLength(body)), Connection: "keep-alive" },
      [body]
    )
    exchange.socket.end()
  },
  "http 1.0": (exchange) => {
    exchange.socket.write(head(200, { ...exchange.headers, "Content-Type": JSON_TYPE }, "1.0"))
    exchange.socket.end(bodyOf(exchange))
  },

  // Streams that break.
  "cut in event": events((exchange) => [good(exchange).slice(0, -20)]),
  "cut in character": events((exchange) => [splitLetter(exchange)[0]]),
  "split character": (exchange) => {
    const [before, after] = splitLetter(exchange)
    stream(exchange, [before], true)
    exchange.control.later(exchange.ms, () =>
      exchange.socket.end(Buffer.concat([chunk(after), Buffer.from(LAST_CHUNK)]))
    )
  },
  "reset in event": (exchange) => {
    stream(exchange, [], true)
    exchange.socket.write(chunk(good(exchange).slice(0, -20)), () => exchange.socket.resetAndDestroy())
  },
  "no event": events(() => []),
  "stream ends": events(() => [": open\n\n"]),
  "stream ends, retry 0": events(() => ["retry: 0\n\n"]),
  "stream ends, retry absurd": events(() => ["retry: 99999999999999\n\n"]),
  "events of other kinds": events((exchange) => [
    ": comment\n\n",
    "event: ping\ndata: not json\n\n",
    "data:\n\n",
    "id: 1\nretry: 500\n\n",
    `id: 2\r\ndata: ${bodyOf(exchange)}\r\n\r\n`
  ]),

  // What a status says.
  "html 200": html(200),
  "html 404": html(404),
  "html 500": html(500),
  "html 502": html(502),
  "empty 200": status(200),
  "redirect 301": redirect(301, ({ control }) => control.elsewhere),
  "redirect 302": redirect(302, ({ control }) => control.elsewhere),
  "redirect 307": redirect(307, ({ control }) => control.elsewhere),
  "redirect 308": redirect(308, ({ control }) => control.elsewhere),
  "redirect to itself": redirect(307, ({ control }) => control.url),
  "redirect nowhere": status(302),
  "401": status(401, { "www-authenticate": 'Bearer resource_metadata="http://127.0.0.1:1/none"' }),
  "401 bare": status(401),
  "403": status(403),
  "429 seconds": status(429, { "retry-after": "1" }),
  "429 date": (exchange) => status(429, { "retry-after": new Date(Date.now() + SECOND_MS).toUTCString() })(exchange),
  "429 absurd": status(429, { "retry-after": "99999999999" }),
  "429 garbage": status(429, { "retry-after": "soon" }),
  gone: status(404),
  "500 with error": (exchange) =>
    send(
      exchange,
      500,
      JSON_TYPE,
      JSON.stringify({ jsonrpc: "2.0", id: exchange.message.id, error: { code: -32_603, message: "inside" } })
    ),

  // Sessions.
  "session changed": (exchange) =>
    send(exchange, exchange.answer.status, JSON_TYPE, bodyOf(exchange), { "mcp-session-id": "another-session" }),
  "session invalid": (exchange) =>
    send(exchange, exchange.answer.status, JSON_TYPE, bodyOf(exchange), { "mcp-session-id": "two words" }),
  "session too long": (exchange) =>
    send(exchange, exchange.answer.status, JSON_TYPE, bodyOf(exchange), { "mcp-session-id": "s".repeat(4 * KIB) }),
  "session lost": (exchange) => {
    exchange.control.forget()
    status(404)(exchange)
  },

  // Bodies.
  "wrong type": (exchange) => send(exchange, 200, "text/plain", bodyOf(exchange)),
  "no type": (exchange) => send(exchange, 200, undefined, bodyOf(exchange)),
  "not json": jsonBody(() => "{not json"),
  "not utf-8": jsonBody((exchange) =>
    Buffer.concat([Buffer.from(bodyOf(exchange).slice(0, -2)), Buffer.of(0xff, 0xfe)])
  ),
  "byte order mark": jsonBody((exchange) => `\ufeff${bodyOf(exchange)}`),
  batch: jsonBody((exchange) => `[${bodyOf(exchange)}]`),
  "huge body": jsonBody((exchange) => JSON.stringify(withResult(exchange, { padding: "a".repeat(HUGE_BYTES) }))),
  "huge event": events((exchange) => [event(withResult(exchange, { padding: "a".repeat(HUGE_BYTES) }))]),
  "deep json": jsonBody((exchange) =>
    JSON.stringify(withResult(exchange, { deep: "@" })).replace('"@"', "[".repeat(DEPTH) + "]".repeat(DEPTH))
  ),
  "gzip bomb": (exchange) => send(exchange, 200, JSON_TYPE, bomb(exchange), { "content-encoding": "gzip" }),
  "gzip, good": (exchange) =>
    send(exchange, 200, JSON_TYPE, gzipSync(bodyOf(exchange)), { "content-encoding": "gzip" }),
  "gzip, broken": (exchange) => send(exchange, 200, JSON_TYPE, "no gzip", { "content-encoding": "gzip" }),
  "unknown coding": (exchange) => send(exchange, 200, JSON_TYPE, bodyOf(exchange), { "content-encoding": "none-such" }),

  // Headers.
  "header flood": (exchange) => {
    const line = `X-Flood: ${"a".repeat(KIB)}\r\n`
    exchange.socket.write(`HTTP/1.1 200 OK\r\n${line.repeat(FLOOD_BYTES / KIB)}Content-Length: 0\r\n\r\n`)
    exchange.socket.end()
  },
  "headers broken": ({ socket }) => void socket.end("HTTP/1.1 200 OK\r\nno colon here\r\n\r\n"),
  "two lengths": (exchange) => {
    const body = bodyOf(exchange)
    exchange.socket.end(
      `HTTP/1.1 200 OK\r\nContent-Type: ${JSON_TYPE}\r\nContent-Length: ${body.length}\r\nContent-Length: 5\r\n\r\n${body}`
    )
  },
  "not http": ({ socket }) => void socket.end("SSH-2.0-hostile\r\n"),
  "interim 100": (exchange) => {
    exchange.socket.write("HTTP/1.1 100 Continue\r\n\r\n".repeat(INTERIM))
    exchange.behave()
  },
  "interim 103": (exchange) => {
    exchange.socket.write("HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n")
    exchange.behave()
  },
  "interim for ever": (exchange) =>
    exchange.control.every(exchange.ms, exchange.socket, () => exchange.socket.write("HTTP/1.1 100 Continue\r\n\r\n")),
  "interim flood": ({ socket }) => {
    const block = "HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000)
    pump(socket, () => block)
  },
  "switching protocols": ({ socket }) =>
    void socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: none-such\r\n\r\n"),

  // Messages.
  "as a stream": events((exchange) => [good(exchange)]),
  "as a stream, left open": (exchange) => stream(exchange, [good(exchange)], true),
  storm,
  duplicate: events((exchange) => [good(exchange), good(exchange)]),
  "unknown ids": events((exchange) => [
    ...Array.from({ length: 10 }, (_, index) => event({ jsonrpc: "2.0", id: 900_000 + index, result: {} })),
    good(exchange)
  ]),
  "unknown id alone": jsonBody((exchange) => JSON.stringify({ ...exchange.answer.message, id: 900_000 })),
  crossed: jsonBody((exchange) =>
    JSON.stringify({ ...exchange.answer.message, id: exchange.control.other(exchange.message.id) ?? 900_000 })
  ),
  "error with a null id": jsonBody(() =>
    JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32_603, message: "whose?" } })
  ),
  "envelope broken": jsonBody(({ message }) => JSON.stringify({ jsonrpc: "1.0", id: message.id, result: {} }))
} as const satisfies { readonly [name: string]: Fault }

/** What can go wrong about one request. */
export type FaultName = keyof typeof faults

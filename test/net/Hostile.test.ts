import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import type * as net from "node:net"
import { gzipSync } from "node:zlib"
import type { NetError } from "../../src/net/NetError.ts"
import type { SseEvent } from "../../src/net/Sse.ts"
import { certificateFor } from "./support/Certificates.ts"
import { harness, HOST, openClient, post, serveHttp, serveRaw, serveTls } from "./support/Guarded.ts"

const KIB = 1024
const HEAD = "HTTP/1.1 200 OK\r\n"
const events = `${HEAD}content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n`
const chunk = (bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")])
const last = "0\r\n\r\n"

/** What `send` fails with when a server answers with these bytes; the server waits for the client to close. */
const failure = (talk: (socket: net.Socket) => void) => {
  const seen = harness()
  return Effect.gen(function* () {
    const closed = yield* Deferred.make<void>()
    const server = yield* serveRaw((socket) => {
      socket.on("close", () => Effect.runFork(Deferred.succeed(closed, undefined)))
      talk(socket)
    })
    const client = yield* openClient(server.port)
    const error = yield* Effect.flip(client.send(post(server.port)))
    yield* Deferred.await(closed)
    return error
  }).pipe(Effect.provide(seen.layer))
}

/** Reads a body that a server writes as these bytes; gives the events and how it ended. */
const stream = (talk: (socket: net.Socket) => void, maxEventBytes = 64 * KIB) => {
  const seen = harness()
  return Effect.gen(function* () {
    const server = yield* serveRaw(talk)
    const client = yield* openClient(server.port)
    const response = yield* client.send(post(server.port))
    const got: Array<SseEvent> = []
    const error = yield* response.events({ onEvent: (event) => got.push(event) }, { maxEventBytes }).pipe(
      Effect.as<NetError | undefined>(undefined),
      Effect.catchAll((fault) => Effect.succeed(fault))
    )
    return { data: got.map(({ data }) => data), error }
  }).pipe(Effect.provide(seen.layer))
}

describe("a redirect", () => {
  for (const status of [301, 302, 303, 307, 308])
    it.scopedLive(`${status} is not followed, and the other origin gets no credential`, () => {
      const seen = harness({ trusted: [certificate.cert] })
      return Effect.gen(function* () {
        const other = yield* serveTls(certificate, (_request, response) => response.end("{}"))
        const server = yield* serveTls(certificate, (_request, response) => {
          response.writeHead(status, { location: `https://${HOST}:${other.port}/stolen?secret=1` })
          response.end("moved")
        })
        const client = yield* openClient(server.port, {
          url: `https://${HOST}:${server.port}/mcp`,
          headers: [{ name: "authorization", value: Redacted.make("Bearer t"), credential: true }]
        })
        const url = `https://${HOST}:${server.port}/mcp`
        const error = yield* Effect.flip(client.send({ ...post(server.port), url }))
        assert.strictEqual(error.code, "SIGIL_REDIRECT_REFUSED")
        assert.strictEqual(error.status, status)
        assert.include(error.text, `https://${HOST}:${other.port} `)
        assert.notMatch(error.text, /stolen|secret/)
        assert.strictEqual(other.connections, 0)
        assert.deepStrictEqual(seen.asked, [HOST])
      }).pipe(Effect.provide(seen.layer))
    })

  it.scopedLive("without a usable target is refused as well", () =>
    Effect.gen(function* () {
      const error = yield* failure((socket) => socket.write("HTTP/1.1 302 Found\r\nlocation: data:x\r\n\r\n"))
      assert.strictEqual(error.code, "SIGIL_REDIRECT_REFUSED")
    })
  )
})

const certificate = certificateFor(HOST)

describe("TLS", () => {
  it.scopedLive("needs a certificate of the host from an authority that is trusted", () =>
    Effect.gen(function* () {
      const other = certificateFor("other.test")
      const server = yield* serveTls(certificate, (_request, response) => response.end("{}"))
      const wrong = yield* serveTls(other, (_request, response) => response.end("{}"))
      const attempt = (port: number, trusted: ReadonlyArray<string>) => {
        const url = `https://${HOST}:${port}/mcp`
        return Effect.flatMap(openClient(port, { url }), (client) => client.send({ ...post(port), url })).pipe(
          Effect.flatMap((response) => response.text(KIB)),
          Effect.either,
          Effect.provide(harness({ trusted }).layer)
        )
      }
      assert.strictEqual((yield* attempt(server.port, [certificate.cert]))._tag, "Right")
      for (const [port, trusted] of [
        [server.port, []],
        [wrong.port, [other.cert]]
      ] as const) {
        const result = yield* attempt(port, trusted)
        if (result._tag === "Right") return assert.fail("it was trusted")
        assert.strictEqual(result.left.reason, "tls_failed")
        assert.strictEqual(result.left.delivered, "no")
      }
      return undefined
    })
  )
})

describe("the head of an answer", () => {
  const table: ReadonlyArray<readonly [string, string, string, string]> = [
    [
      "compressed",
      `${HEAD}content-encoding: gzip\r\ncontent-length: 5\r\n\r\n`,
      "SIGIL_PROTOCOL_FAULT",
      "content_encoding"
    ],
    ["compressed twice", `${HEAD}content-encoding: identity, br\r\n\r\n`, "SIGIL_PROTOCOL_FAULT", "content_encoding"],
    [
      "with two content types",
      `${HEAD}content-type: a/b\r\nContent-Type: c/d\r\n\r\n`,
      "SIGIL_PROTOCOL_FAULT",
      "header_duplicate"
    ],
    [
      "with two sessions",
      `${HEAD}mcp-session-id: a\r\nmcp-session-id: b\r\n\r\n`,
      "SIGIL_PROTOCOL_FAULT",
      "header_duplicate"
    ],
    [
      "with two lengths",
      `${HEAD}content-length: 1\r\ncontent-length: 2\r\n\r\n`,
      "SIGIL_PROTOCOL_FAULT",
      "invalid_http"
    ],
    ["that is no HTTP", "SSH-2.0-OpenSSH_9\r\n", "SIGIL_PROTOCOL_FAULT", "invalid_http"],
    [
      "above 32 KiB",
      `${HEAD}${"x-flood: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".repeat(1000)}\r\n`,
      "SIGIL_LIMIT_EXCEEDED",
      "headers_too_large"
    ],
    ["in one endless header", `${HEAD}x-flood: ${"a".repeat(40 * KIB)}`, "SIGIL_LIMIT_EXCEEDED", "headers_too_large"],
    [
      "after interim answers without end",
      "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(20),
      "SIGIL_PROTOCOL_FAULT",
      "invalid_http"
    ]
  ]
  for (const [name, bytes, code, reason] of table)
    it.scopedLive(`${name} is refused and the connection closed`, () =>
      Effect.gen(function* () {
        const error = yield* failure((socket) => socket.write(bytes))
        assert.strictEqual(`${error.code} ${error.reason}`, `${code} ${reason}`)
        assert.strictEqual(error.delivered, "unknown")
      })
    )

  it.scopedLive("a real gzip bomb is not unpacked", () =>
    Effect.gen(function* () {
      const bomb = gzipSync(Buffer.alloc(32 * KIB * KIB))
      const error = yield* failure((socket) => {
        socket.write(
          `${HEAD}content-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`
        )
        socket.write(bomb)
      })
      assert.strictEqual(error.reason, "content_encoding")
    })
  )

  it.scopedLive("that drips in without end is waited for until the caller gives up; then the socket closes", () => {
    const seen = harness()
    return Effect.gen(function* () {
      const closed = yield* Deferred.make<void>()
      const dripping = yield* Deferred.make<void>()
      const server = yield* serveRaw((socket) => {
        const drip = (): void =>
          void socket.write("x-slow: 1\r\n", (error) => (error == null ? setImmediate(ended) : undefined))
        const ended = (): void => void Effect.runFork(Deferred.succeed(dripping, undefined))
        socket.on("close", () => Effect.runFork(Deferred.succeed(closed, undefined)))
        socket.write(HEAD)
        drip()
      })
      const client = yield* openClient(server.port)
      const sent = yield* Effect.fork(client.send(post(server.port)))
      yield* Deferred.await(dripping)
      yield* Fiber.interrupt(sent)
      yield* Deferred.await(closed)
    }).pipe(Effect.provide(seen.layer))
  })
})

describe("interim answers", () => {
  const whole = `${HEAD}content-length: 18\r\n\r\nHTTP/1.1 100 whole`
  const interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.0 199 X\r\n\r\n"
  for (const [name, talk] of [
    ["at once with it", (socket: net.Socket) => void socket.write(interim + whole)],
    [
      "byte for byte",
      (socket: net.Socket) => {
        socket.setNoDelay(true)
        const [first = "", ...rest] = interim + whole
        // The next byte leaves when the one before has.
        const next = (byte: string): void =>
          void socket.write(byte, () => {
            const then = rest.shift()
            if (then !== undefined) setImmediate(next, then)
          })
        next(first)
      }
    ]
  ] as const)
    it.scopedLive(`before the answer are ignored (${name}), and the connection is used again`, () => {
      const seen = harness()
      return Effect.gen(function* () {
        const server = yield* serveRaw(talk)
        const client = yield* openClient(server.port)
        for (let index = 0; index < 2; index += 1) {
          const response = yield* client.send(post(server.port))
          assert.strictEqual(yield* response.text(KIB), "HTTP/1.1 100 whole")
        }
        assert.strictEqual(server.connections, 1)
      }).pipe(Effect.provide(seen.layer))
    })

  for (const [name, bytes, reason] of [
    ["without end", "HTTP/1.1 100 Continue\r\n\r\n".repeat(9), "invalid_http"],
    ["above 32 KiB", `HTTP/1.1 100 Continue\r\nx-flood: ${"a".repeat(40 * KIB)}`, "headers_too_large"],
    ["that switch protocols", "HTTP/1.1 101 X\r\n\r\n", "invalid_http"]
  ] as const)
    it.scopedLive(`${name} are refused, and the connection closed`, () =>
      Effect.gen(function* () {
        const error = yield* failure((socket) => socket.write(bytes))
        assert.strictEqual(error.reason, reason)
        assert.strictEqual(error.delivered, "unknown")
      })
    )

  it.scopedLive("that are cut leave a lost connection", () =>
    Effect.gen(function* () {
      const error = yield* failure((socket) => socket.end("HTTP/1.1 100 Continue\r\n\r\nHTTP/1."))
      assert.strictEqual(error.reason, "connection_closed")
    })
  )
})

describe("the body of an answer", () => {
  it.scopedLive("without end is cut at the limit and the connection closed", () => {
    const seen = harness()
    return Effect.gen(function* () {
      const closed = yield* Deferred.make<void>()
      const server = yield* serveHttp((request, response) => {
        request.resume()
        response.on("close", () => Effect.runFork(Deferred.succeed(closed, undefined)))
        const more = (): void => {
          while (!response.destroyed)
            if (!response.write(Buffer.alloc(16 * KIB, "a"))) return void response.once("drain", more)
        }
        more()
      })
      const client = yield* openClient(server.port)
      const response = yield* client.send(post(server.port))
      const error = yield* Effect.flip(response.text(100 * KIB))
      assert.strictEqual(`${error.code} ${error.reason}`, "SIGIL_LIMIT_EXCEEDED body_too_large")
      yield* Deferred.await(closed)
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("that is reset before anybody reads it is a lost connection", () => {
    const seen = harness()
    return Effect.gen(function* () {
      const head = `${HEAD}connection: close\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n`
      let first: net.Socket | undefined
      const server = yield* serveRaw((socket) => {
        socket.write(head)
        if (first === undefined) return void (first = socket)
        first.once("close", () => socket.end(Buffer.concat([chunk(Buffer.from("whole")), Buffer.from(last)])))
        first.resetAndDestroy()
      })
      const client = yield* openClient(server.port)
      const response = yield* client.send(post(server.port))
      // Its end comes after the reset.
      const other = yield* Effect.flatMap(client.send(post(server.port)), ({ text }) => text(KIB))
      assert.strictEqual(other, "whole")
      const error = yield* Effect.flip(response.text(KIB))
      assert.strictEqual(error.code, "SIGIL_CONNECTION_LOST")
      assert.strictEqual(error.reason, "connection_closed")
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("is taken exactly up to the limit, and refused by its declared length above it", () => {
    const seen = harness()
    return Effect.gen(function* () {
      const server = yield* serveHttp((_request, response) => response.end("äb"))
      const client = yield* openClient(server.port)
      assert.strictEqual(yield* Effect.flatMap(client.send(post(server.port)), (response) => response.text(3)), "äb")
      const error = yield* Effect.flip(Effect.flatMap(client.send(post(server.port)), (response) => response.text(2)))
      assert.strictEqual(error.reason, "body_too_large")
    }).pipe(Effect.provide(seen.layer))
  })

  for (const [name, bytes, reason] of [
    ["shorter than declared", `${HEAD}content-length: 100\r\n\r\n{}`, "connection_closed"],
    ["cut between chunks", `${HEAD}transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n`, "connection_closed"],
    ["that is no UTF-8", Buffer.from(`${HEAD}content-length: 1\r\n\r\n\xff`, "latin1"), "invalid_utf8"]
  ] as const)
    it.scopedLive(`${name} is no answer`, () => {
      const seen = harness()
      return Effect.gen(function* () {
        const server = yield* serveRaw((socket) => socket.end(bytes))
        const client = yield* openClient(server.port)
        const error = yield* Effect.flip(
          Effect.flatMap(client.send(post(server.port)), (response) => response.text(KIB))
        )
        assert.strictEqual(error.reason, reason)
        assert.strictEqual(error.delivered, "unknown")
      }).pipe(Effect.provide(seen.layer))
    })
})

describe("a stream of events", () => {
  const first = Buffer.from("data: ä1\n\n")

  it.scopedLive("is whole although characters are split over chunks and packets", () =>
    Effect.gen(function* () {
      const { data, error } = yield* stream((socket) => {
        socket.setNoDelay(true)
        socket.write(events)
        for (const byte of Buffer.concat([first, first])) socket.write(chunk(Buffer.from([byte])))
        socket.write(last)
      })
      assert.isUndefined(error)
      assert.deepStrictEqual(data, ["ä1", "ä1"])
    })
  )

  for (const [name, body, ending, reason] of [
    ["cut inside an event", "data: ä1\n\ndata: tw", last, "stream_cut"],
    ["cut inside an event by the connection", "data: ä1\n\ndata: tw", "", "connection_closed"],
    ["cut between events by the connection", "data: ä1\n\n", "", "connection_closed"],
    ["with a character cut in two", Buffer.concat([first, Buffer.from("data: ä").subarray(0, -1)]), last, "stream_cut"],
    ["with bytes that are no UTF-8", Buffer.concat([first, Buffer.from([0xff])]), last, "invalid_utf8"],
    ["with an event above the limit", `data: ä1\n\ndata: ${"a".repeat(70 * KIB)}\n\n`, last, "event_too_large"]
  ] as const)
    it.scopedLive(`${name} fails`, () =>
      Effect.gen(function* () {
        const { data, error } = yield* stream((socket) => {
          socket.write(events)
          // The first event alone, so that it is seen to be given out.
          const bytes = Buffer.from(body)
          socket.write(chunk(bytes.subarray(0, first.length)))
          if (bytes.length > first.length) socket.write(chunk(bytes.subarray(first.length)))
          socket.end(ending)
        })
        assert.strictEqual(error?.reason, reason)
        assert.strictEqual(error?.delivered, "unknown")
        assert.deepStrictEqual(data, ["ä1"])
      })
    )

  it.scopedLive("is given out while it is open, and interruption closes the socket", () => {
    const seen = harness()
    return Effect.gen(function* () {
      const closed = yield* Deferred.make<void>()
      const came = yield* Deferred.make<string>()
      const server = yield* serveRaw((socket) => {
        socket.on("close", () => Effect.runFork(Deferred.succeed(closed, undefined)))
        socket.write(events)
        socket.write(chunk(first))
      })
      const client = yield* openClient(server.port)
      const response = yield* client.send({ ...post(server.port), method: "GET", body: undefined })
      const reading = yield* Effect.fork(
        response.events(
          { onEvent: ({ data }) => void Effect.runFork(Deferred.succeed(came, data)) },
          { maxEventBytes: KIB }
        )
      )
      assert.strictEqual(yield* Deferred.await(came), "ä1")
      yield* Fiber.interrupt(reading)
      yield* Deferred.await(closed)
    }).pipe(Effect.provide(seen.layer))
  })
})

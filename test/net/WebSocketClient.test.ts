import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as http from "node:http"
import * as https from "node:https"
import type * as net from "node:net"
import { type WebSocket, WebSocketServer } from "ws"
import type { NetError } from "../../src/net/NetError.ts"
import { type GuardedSocket, MAX_FRAME_BYTES } from "../../src/net/WebSocketClient.ts"
import { certificateFor } from "./support/Certificates.ts"
import { harness, HOST, openClient, serveRaw, serving } from "./support/Guarded.ts"

/** A WebSocket server; `talk` gets each connection and its upgrade request. */
const serveWs = (
  talk: (ws: WebSocket, request: http.IncomingMessage) => void,
  server: net.Server = http.createServer()
) => {
  const upgrades = new WebSocketServer({ noServer: true })
  server.on("upgrade", (request: http.IncomingMessage, socket: net.Socket, head: Buffer) =>
    upgrades.handleUpgrade(request, socket, head, (ws) => talk(ws, request))
  )
  return serving(server)
}

const upgrade = (port: number, scheme = "ws") => {
  const url = `${scheme}://${HOST}:${port}/mcp`
  return Effect.flatMap(openClient(port, { url }), (client) => client.upgrade(url, "request"))
}

/** Listens until the end; gives the messages and why it ended. */
const drain = (socket: GuardedSocket) =>
  Effect.async<{ readonly messages: ReadonlyArray<string>; readonly error: NetError }>((resume) => {
    const messages: Array<string> = []
    socket.listen({
      message: (text) => messages.push(text),
      end: (error) => resume(Effect.succeed({ messages, error }))
    })
  })

describe("a WebSocket", () => {
  it.scopedLive("is recorded, shown and resolved before it is dialled; text goes both ways", () => {
    const seen = harness()
    return Effect.gen(function* () {
      const server = yield* serveWs((ws, request) => {
        seen.steps.push("served")
        ws.send(JSON.stringify([request.url, request.headers.host, request.headers["sec-websocket-protocol"] ?? null]))
        ws.send(JSON.stringify(request.headers["sec-websocket-extensions"] ?? null))
        ws.on("message", (data, binary) => {
          ws.send(`${String(data)} ${binary}`)
          ws.close(1000)
        })
      })
      const socket = yield* upgrade(server.port)
      assert.isTrue(socket.send("hällo"))
      const { messages, error } = yield* drain(socket)
      assert.deepStrictEqual(messages, [`["/mcp","${HOST}:${server.port}",null]`, "null", "hällo false"])
      assert.strictEqual(error.reason, "connection_closed")
      assert.isFalse(socket.send("late"))
      assert.deepStrictEqual(seen.steps, [
        "record mcp_transport_authorization",
        "record egress_disclosure_presented",
        "present request",
        `resolve ${HOST}`,
        "served"
      ])
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("speaks TLS and carries credentials there only", () => {
    const certificate = certificateFor(HOST)
    const seen = harness({ trusted: [certificate.cert] })
    return Effect.gen(function* () {
      const server = yield* serveWs((ws, request) => {
        ws.send(request.headers.authorization ?? "none")
        ws.close(1000)
      }, https.createServer(certificate))
      const url = `wss://${HOST}:${server.port}/mcp`
      const headers = { authorization: Redacted.make("Bearer t") }
      const client = yield* openClient(server.port, { url })
      const { messages } = yield* Effect.flatMap(client.upgrade(url, "request", { headers }), drain)
      assert.deepStrictEqual(messages, ["Bearer t"])
      const plain = yield* openClient(server.port, { url: `ws://${HOST}:${server.port}/mcp` })
      const error = yield* Effect.flip(plain.upgrade(`ws://${HOST}:${server.port}/mcp`, "request", { headers }))
      assert.strictEqual(error.reason, "credentials_unencrypted")
    }).pipe(Effect.provide(seen.layer))
  })

  for (const [name, talk, reason] of [
    ["a binary frame", (ws: WebSocket) => ws.send(Buffer.from("{}")), "binary_frame"],
    ["a frame above 4 MiB", (ws: WebSocket) => ws.send("a".repeat(MAX_FRAME_BYTES + 1)), "frame_too_large"],
    ["a cut connection", (ws: WebSocket) => ws.terminate(), "connection_closed"]
  ] as const)
    it.scopedLive(`ends on ${name}`, () => {
      const seen = harness()
      return Effect.gen(function* () {
        const server = yield* serveWs(talk)
        const { messages, error } = yield* Effect.flatMap(upgrade(server.port), drain)
        assert.deepStrictEqual(messages, [])
        assert.strictEqual(error.reason, reason)
      }).pipe(Effect.provide(seen.layer))
    })

  for (const [name, answer, code] of [
    ["redirect", "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/secret\r\n\r\n", "SIGIL_REDIRECT_REFUSED"],
    ["refusal", "HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n", "SIGIL_CONNECTION_LOST"],
    ["false handshake", "HTTP/1.1 101 X\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n", "SIGIL_CONNECTION_LOST"]
  ] as const)
    it.scopedLive(`is not opened by a ${name}, and the connection is closed`, () => {
      const seen = harness()
      return Effect.gen(function* () {
        const closed = yield* Deferred.make<void>()
        const server = yield* serveRaw((socket) => {
          socket.on("close", () => Effect.runFork(Deferred.succeed(closed, undefined)))
          socket.write(answer)
        })
        const error = yield* Effect.flip(upgrade(server.port))
        assert.strictEqual(error.code, code)
        assert.notInclude(error.text, "secret")
        yield* Deferred.await(closed)
      }).pipe(Effect.provide(seen.layer))
    })

  it.scopedLive("closes with its scope", () => {
    const seen = harness()
    return Effect.gen(function* () {
      const closed = yield* Deferred.make<void>()
      const server = yield* serveWs((ws) => {
        ws.on("close", () => Effect.runFork(Deferred.succeed(closed, undefined)))
      })
      yield* Effect.scoped(upgrade(server.port))
      yield* Deferred.await(closed)
    }).pipe(Effect.provide(seen.layer))
  })
})

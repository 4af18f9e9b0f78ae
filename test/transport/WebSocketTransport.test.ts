/** A WebSocket that opens late, or never: nobody waits for it but the messages, and they hear why. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as http from "node:http"
import type * as net from "node:net"
import { WebSocketServer } from "ws"
import type { Client } from "../../src/net/GuardedClient.ts"
import { statusFault } from "../../src/transport/StatusFault.ts"
import type { DeliveryFault, RemotePlan, Wire, WireEnd } from "../../src/transport/Transport.ts"
import * as WebSocketTransport from "../../src/transport/WebSocketTransport.ts"
import { harness, HOST, loopback, openClient, serveRaw, serving } from "../net/support/Guarded.ts"

const planFor = (url: string, credential = false): RemotePlan => ({
  _tag: "remote",
  transport: "ws",
  url,
  shown: "wss://test",
  headers: credential ? [{ name: "authorization", value: Redacted.make("Bearer t"), credential }] : [],
  rules: loopback,
  proxyMode: "direct",
  connectTimeoutMs: 5_000
})

const openWire = (port: number, scheme = "ws") => {
  const url = `${scheme}://${HOST}:${port}/mcp`
  return Effect.flatMap(openClient(port, { url }), (client) => WebSocketTransport.open(planFor(url), client))
}

/** What a wire told, in its order. */
interface Told {
  readonly faults: Array<readonly [id: unknown, fault: DeliveryFault]>
  readonly messages: Array<string>
  readonly steps: Array<string>
}

/** Listens; the end completes `ended`. */
const hear = (wire: Wire) =>
  Effect.gen(function* () {
    const ended = yield* Deferred.make<WireEnd>()
    const told: Told = { faults: [], messages: [], steps: [] }
    wire.listen({
      message: (text) => {
        told.messages.push(text)
        return true
      },
      failed: (id, fault) => {
        told.faults.push([id, fault])
        told.steps.push(`failed ${id}`)
      },
      end: (end) => {
        told.steps.push("end")
        Effect.runSync(Deferred.succeed(ended, end))
      }
    })
    return { told, ended: Deferred.await(ended) }
  })

describe("a WebSocket whose server", () => {
  for (const [what, scheme] of [
    ["does not answer the upgrade", "ws"],
    ["does not answer the TLS handshake", "wss"]
  ] as const)
    it.scopedLive(`${what} gives a wire at once, whose end closes the connection`, () =>
      Effect.gen(function* () {
        const asked = yield* Deferred.make<void>()
        const closed = yield* Deferred.make<void>()
        const server = yield* serveRaw((socket) => {
          Effect.runFork(Deferred.succeed(asked, undefined))
          socket.on("close", () => Effect.runFork(Deferred.succeed(closed, undefined)))
        })
        const wire = yield* openWire(server.port, scheme)
        const { ended, told } = yield* hear(wire)
        assert.isTrue(wire.send("{}", { id: 1, method: "initialize" }))
        yield* Deferred.await(asked)
        assert.deepStrictEqual(told.steps, [])
        const report = yield* wire.close
        assert.isTrue(report.complete)
        yield* Deferred.await(closed)
        assert.strictEqual((yield* ended).reason, "closed")
        assert.isFalse(wire.send("{}"))
      }).pipe(Effect.provide(harness().layer))
    )

  for (const status of [400, 401, 403, 404, 429, 500, 503])
    it.scopedLive(`answers the upgrade with ${status} fails what waits as over HTTP, and then the wire`, () =>
      Effect.gen(function* () {
        const server = yield* serving(
          http.createServer().on("upgrade", (_request, socket) => {
            socket.end(`HTTP/1.1 ${status} words of it\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n`)
          })
        )
        const wire = yield* openWire(server.port)
        wire.send("{}", { id: 1, method: "initialize" })
        wire.send("{}", { id: 2, method: "tools/list" })
        wire.send("{}", { method: "notifications/initialized" })
        const { ended, told } = yield* hear(wire)
        const end = yield* ended
        assert.deepStrictEqual(told.steps, ["failed 1", "failed 2", "end"])
        const wanted = statusFault(status, { credential: false, retryAfterMs: 7_000 })
        for (const [, fault] of told.faults) {
          assert.deepStrictEqual(
            [fault.code, fault.reason, fault.text, fault.status, fault.retryAfterMs],
            [wanted.code, wanted.reason, wanted.text, status, 7_000]
          )
          // Nothing of it was sent.
          assert.strictEqual(fault.delivered, "no")
        }
        assert.strictEqual(end.reason, wanted.reason)
        assert.deepStrictEqual(end.details, { http_status: status })
      }).pipe(Effect.provide(harness().layer))
    )

  for (const [what, answer, code, reason] of [
    ["leads elsewhere", "HTTP/1.1 302 F\r\nlocation: ws://127.0.0.1:1/x\r\n\r\n", "SIGIL_REDIRECT_REFUSED", "redirect"],
    ["speaks HTTP only", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "SIGIL_CONNECTION_LOST", "upgrade_refused"]
  ] as const)
    it.scopedLive(`${what} is told so, and nothing was delivered`, () =>
      Effect.gen(function* () {
        const server = yield* serveRaw((socket) => void socket.write(answer))
        const wire = yield* openWire(server.port)
        wire.send("{}", { id: 1, method: "initialize" })
        const { ended, told } = yield* hear(wire)
        yield* ended
        const [, fault] = told.faults[0] ?? []
        assert.deepStrictEqual([fault?.code, fault?.reason, fault?.delivered], [code, reason, "no"])
      }).pipe(Effect.provide(harness().layer))
    )

  it.scopedLive("is not there fails what waits; the wire ends", () =>
    Effect.gen(function* () {
      const { port } = yield* Effect.scoped(serveRaw(() => undefined))
      const wire = yield* openWire(port)
      wire.send("{}", { id: "a", method: "initialize" })
      const { ended, told } = yield* hear(wire)
      assert.strictEqual((yield* ended).reason, "connection_refused")
      assert.deepStrictEqual(told.steps, ["failed a", "end"])
    }).pipe(Effect.provide(harness().layer))
  )

  it.scopedLive("takes its time gets all messages in their order, each on record before", () => {
    const seen = harness()
    return Effect.gen(function* () {
      const upgrades = new WebSocketServer({ noServer: true })
      const held = yield* Deferred.make<() => void>()
      const server = yield* serving(
        http.createServer().on("upgrade", (request, socket: net.Socket, head) => {
          const accept = (): void =>
            upgrades.handleUpgrade(request, socket, head, (ws) => {
              let got = ""
              ws.on("message", (data) => {
                got += String(data)
                if (got.length === 3) ws.send(got, () => ws.close(1000))
              })
            })
          Effect.runFork(Deferred.succeed(held, accept))
        })
      )
      const wire = yield* openWire(server.port)
      const { ended, told } = yield* hear(wire)
      for (const text of ["1", "2"]) wire.send(text, { id: text, method: "tools/call" })
      const accept = yield* Deferred.await(held)
      wire.send("3")
      assert.deepStrictEqual(
        seen.steps.filter((step) => step.startsWith("present")),
        ["present connection_metadata"]
      )
      accept()
      yield* ended
      assert.deepStrictEqual(told.messages, ["123"])
      assert.strictEqual(seen.records.filter(({ kind }) => kind === "mcp_transport_authorization").length, 4)
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("does not accept the credential is told so", () =>
    Effect.gen(function* () {
      const server = yield* serveRaw((socket) => void socket.write("HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n"))
      const url = `ws://${HOST}:${server.port}/mcp`
      const client: Client = yield* openClient(server.port, { url })
      const wire = yield* WebSocketTransport.open(planFor(url, true), client)
      wire.send("{}", { id: 1, method: "initialize" })
      const { ended } = yield* hear(wire)
      assert.strictEqual((yield* ended).reason, "authentication_failed")
    }).pipe(Effect.provide(harness().layer))
  )
})

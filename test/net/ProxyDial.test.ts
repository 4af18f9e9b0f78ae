import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import * as http from "node:http"
import * as net from "node:net"
import { certificateFor } from "./support/Certificates.ts"
import { harness, HOST, loopback, openClient, post, serveRaw, serveTls, serving } from "./support/Guarded.ts"

const certificate = certificateFor(HOST)
/** Through a proxy the name must not be one that is private here. */
const open = { ...loopback, allowedPrivateHosts: [], allowedPrivateCidrs: [] }

/** A proxy that leads every tunnel to `port`, and what it was asked for. */
const serveProxy = (port: number) => {
  const asked: Array<{ readonly authority: string | undefined; readonly authorization: string | undefined }> = []
  const server = http.createServer()
  server.on("connect", (request, socket: net.Socket) => {
    asked.push({ authority: request.url, authorization: request.headers["proxy-authorization"] })
    const onward = net.connect(port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n")
      onward.pipe(socket)
      socket.pipe(onward)
    })
    onward.on("error", () => socket.destroy())
    socket.on("error", () => onward.destroy())
    socket.on("close", () => onward.destroy())
  })
  return Effect.map(serving(server), (seen) => ({ seen, asked }))
}

describe("through a proxy", () => {
  it.scopedLive("the name goes to the proxy, unresolved; it is shown and recorded as such, without a password", () =>
    Effect.gen(function* () {
      const server = yield* serveTls(certificate, (request, response) => response.end(request.headers.host))
      const proxy = yield* serveProxy(server.port)
      const origin = `http://127.0.0.1:${proxy.seen.port}`
      const seen = harness({
        trusted: [certificate.cert],
        variables: { HTTPS_PROXY: `http://me:hidden@127.0.0.1:${proxy.seen.port}` }
      })
      const url = `https://${HOST}:${server.port}/mcp`
      yield* Effect.gen(function* () {
        const client = yield* openClient(server.port, { url, rules: open })
        for (let index = 0; index < 2; index += 1) {
          const response = yield* client.send({ ...post(server.port), url })
          assert.strictEqual(yield* response.text(100), `${HOST}:${server.port}`)
        }
      }).pipe(Effect.provide(seen.layer))
      assert.deepStrictEqual(seen.asked, [])
      assert.deepStrictEqual(proxy.asked, [
        {
          authority: `${HOST}:${server.port}`,
          authorization: `Basic ${Buffer.from("me:hidden").toString("base64")}`
        }
      ])
      assert.deepStrictEqual(
        seen.shown.map(({ route, proxy: by, destination }) => [route, by, destination]),
        [["proxy_remote", origin, `https://${HOST}:${server.port}`]]
      )
      const [record] = seen.records
      assert.strictEqual(record?.payload?.["route"], "proxy_remote")
      assert.strictEqual(record?.payload?.["safe_transport_destination"], origin)
      assert.strictEqual(record?.payload?.["safe_logical_destination"], `https://${HOST}:${server.port}`)
      assert.notInclude(JSON.stringify([seen.records, seen.shown]), "hidden")
    })
  )

  it.scopedLive("what NO_PROXY names is dialled directly, under the same rules", () =>
    Effect.gen(function* () {
      const server = yield* serveTls(certificate, (_request, response) => response.end("{}"))
      const proxy = yield* serveProxy(server.port)
      const url = `https://${HOST}:${server.port}/mcp`
      const variables = { HTTPS_PROXY: `http://127.0.0.1:${proxy.seen.port}`, NO_PROXY: HOST }
      const seen = harness({ trusted: [certificate.cert], variables })
      yield* Effect.gen(function* () {
        const client = yield* openClient(server.port, { url })
        yield* Effect.flatMap(client.send({ ...post(server.port), url }), (response) => response.text(100))
        const guarded = yield* openClient(server.port, { url, rules: open })
        const error = yield* Effect.flip(guarded.send({ ...post(server.port), url }))
        assert.strictEqual(error.reason, "address_private")
      }).pipe(Effect.provide(seen.layer))
      assert.deepStrictEqual(seen.asked, [HOST, HOST])
      assert.deepStrictEqual(proxy.asked, [])
      assert.strictEqual(seen.shown[0]?.route, "direct")
    })
  )

  it.scopedLive("private exceptions are refused at once, and a proxy is not used in direct mode", () =>
    Effect.gen(function* () {
      const server = yield* serveTls(certificate, (_request, response) => response.end("{}"))
      const url = `https://${HOST}:${server.port}/mcp`
      const seen = harness({ trusted: [certificate.cert], variables: { ALL_PROXY: "http://127.0.0.1:1" } })
      yield* Effect.gen(function* () {
        const error = yield* Effect.flip(openClient(server.port, { url }))
        assert.strictEqual(error.reason, "proxy_private")
        assert.deepStrictEqual(seen.steps, [])
        const client = yield* openClient(server.port, { url, proxyMode: "direct" })
        yield* Effect.flatMap(client.send({ ...post(server.port), url }), (response) => response.text(100))
      }).pipe(Effect.provide(seen.layer))
    })
  )

  it.scopedLive("that refuses or is not there nothing was sent", () =>
    Effect.gen(function* () {
      const refusing = yield* serveRaw((socket) => socket.end("HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n"))
      const gone = yield* Effect.scoped(serveRaw(() => {}))
      const url = `https://${HOST}/mcp`
      for (const { port } of [refusing, gone]) {
        const seen = harness({ variables: { HTTPS_PROXY: `http://127.0.0.1:${port}` } })
        const error = yield* openClient(0, { url, rules: open }).pipe(
          Effect.flatMap((client) => Effect.flip(client.send({ ...post(0), url }))),
          Effect.provide(seen.layer)
        )
        assert.strictEqual(error.reason, "proxy_failed")
        assert.strictEqual(error.delivered, "no")
        assert.deepStrictEqual(seen.asked, [])
      }
    })
  )

  it.scoped("that does not answer is given up after the connect timeout, and its socket closed", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const closed = yield* Deferred.make<void>()
      const silent = yield* serveRaw((socket) => {
        socket.on("close", () => Effect.runFork(Deferred.succeed(closed, undefined)))
        Effect.runFork(Deferred.succeed(asked, undefined))
      })
      const url = `https://${HOST}/mcp`
      const seen = harness({ variables: { HTTPS_PROXY: `http://127.0.0.1:${silent.port}` } })
      const error = yield* Effect.gen(function* () {
        const client = yield* openClient(0, { url, rules: open, connectTimeoutMs: 5_000 })
        const sent = yield* Effect.fork(Effect.flip(client.send({ ...post(0), url })))
        yield* Deferred.await(asked)
        yield* TestClock.adjust("5 seconds")
        return yield* Fiber.join(sent)
      }).pipe(Effect.provide(seen.layer))
      assert.strictEqual(error.reason, "connect_timeout")
      assert.strictEqual(error.delivered, "no")
      yield* Deferred.await(closed)
    })
  )
})

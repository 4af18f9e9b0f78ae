/** What a person reads of a connection that could not be opened: what it was, and the step that helps. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as net from "node:net"
import { tlsFault } from "../../src/net/DialFault.ts"
import { certificateFor } from "./support/Certificates.ts"
import {
  type Given,
  harness,
  HOST,
  loopback,
  openClient,
  post,
  serveHttp,
  serveRaw,
  serveTls,
  serving
} from "./support/Guarded.ts"

const certificate = certificateFor(HOST)

/** The failure of a message to a port of this machine. */
const failure = (port: number, given: Given = {}, scheme = "https") => {
  const url = `${scheme}://${HOST}:${port}/mcp`
  // Through a proxy the name must not be one that is private here.
  const rules =
    given.variables === undefined ? loopback : { ...loopback, allowedPrivateHosts: [], allowedPrivateCidrs: [] }
  return openClient(port, { url, rules }).pipe(
    Effect.flatMap((client) =>
      scheme.startsWith("ws")
        ? Effect.flip(Effect.asVoid(client.upgrade(url, "request")))
        : Effect.flip(Effect.asVoid(client.send({ ...post(port), url })))
    ),
    Effect.tap((error) => Effect.sync(() => assert.strictEqual(error.delivered, "no"))),
    Effect.provide(harness(given).layer)
  )
}

describe("a certificate", () => {
  const answer = (days?: number, host = HOST) => {
    const made = certificateFor(host, days)
    return Effect.map(
      serveTls(made, (_request, response) => response.end("{}")),
      ({ port }) => ({ port, trusted: [made.cert] })
    )
  }
  it.scopedLive("that is self-signed is named so, with the way to trust its authority", () =>
    Effect.gen(function* () {
      const { port } = yield* answer()
      for (const scheme of ["https", "wss"]) {
        const error = yield* failure(port, {}, scheme)
        assert.include(error.text, "self-signed")
        assert.include(error.fix, "NODE_EXTRA_CA_CERTS=")
      }
    })
  )
  it.scopedLive("that has expired, or is not valid yet, is named so", () =>
    Effect.gen(function* () {
      const old = yield* answer(-30)
      assert.include((yield* failure(old.port, old)).text, "has expired")
      const young = yield* answer(30)
      const error = yield* failure(young.port, young)
      assert.include(error.text, "not valid yet")
      assert.include(error.fix, "clock")
    })
  )
  it.scopedLive("of another name is named so, and its name not shown", () =>
    Effect.gen(function* () {
      const other = yield* answer(0, "words.test")
      const error = yield* failure(other.port, other)
      assert.include(error.text, "for another name")
      assert.notInclude(error.text + String(error.fix), "words.test")
      assert.include(error.fix, "host name")
    })
  )
  for (const code of [
    "SELF_SIGNED_CERT_IN_CHAIN",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY"
  ])
    it(`whose authority is not known (${code}) has the same way out`, () => {
      const error = tlsFault({ host: HOST, origin: `https://${HOST}` }, { code })
      assert.match(error.text, /authority that is not (known|trusted) here/)
      assert.include(error.text, code)
      assert.include(error.fix, "NODE_EXTRA_CA_CERTS=")
    })
})

describe("a port that speaks no TLS", () => {
  for (const [what, serve] of [
    ["but HTTP", serveHttp((_request, response) => response.end("{}"))],
    ["but something else", serveRaw((socket) => void socket.write("220 ready\r\n"))],
    ["and closes", serveRaw((socket) => void socket.end())],
    ["and resets", serveRaw((socket) => void socket.resetAndDestroy())]
  ] as const)
    it.scopedLive(`${what} hints at the scheme`, () =>
      Effect.gen(function* () {
        const { port } = yield* serve
        for (const [scheme, plain] of [
          ["https", "http://"],
          ["wss", "ws://"]
        ] as const) {
          const error = yield* failure(port, {}, scheme)
          assert.strictEqual(error.reason, "tls_failed")
          assert.include(error.text, "does not speak TLS")
          assert.include(error.fix, plain)
        }
      })
    )
})

describe("a proxy", () => {
  const through = (port: number, name = "HTTPS_PROXY", scheme = "http") =>
    failure(443, { variables: { [name]: `${scheme}://me:hidden@127.0.0.1:${port}` } })

  it.scopedLive("that is not there is blamed by its variable and origin, and so is one without TLS", () =>
    Effect.gen(function* () {
      const gone = yield* Effect.scoped(serveRaw(() => undefined))
      const plain = yield* serveHttp((_request, response) => response.end())
      for (const error of [yield* through(gone.port, "all_proxy"), yield* through(plain.port, "all_proxy", "https")]) {
        assert.strictEqual(error.reason, "proxy_failed")
        assert.match(error.text, /the proxy https?:\/\/127\.0\.0\.1:\d+, which all_proxy names/)
        assert.include(error.fix, "all_proxy")
        assert.include(error.fix, "NO_PROXY")
        assert.notInclude(error.text + String(error.fix), "hidden")
        assert.notInclude(error.fix, "URL")
      }
    })
  )
  it.scopedLive("whose certificate is not trusted is told from the server's", () =>
    Effect.gen(function* () {
      const proxy = yield* serveTls(certificate, (_request, response) => response.end())
      const error = yield* through(proxy.port, "HTTPS_PROXY", "https")
      assert.strictEqual(error.reason, "proxy_failed")
      assert.match(error.text, /the proxy .* self-signed/)
    })
  )
  it.scopedLive("that wants a password says where it belongs; any other refusal is its own", () =>
    Effect.gen(function* () {
      const answering = (status: number) =>
        serveRaw((socket) => void socket.end(`HTTP/1.1 ${status} words\r\ncontent-length: 0\r\n\r\n`))
      const error = yield* through((yield* answering(407)).port)
      assert.include(error.text, "407")
      assert.include(error.fix, "USER:PASSWORD")
      const other = yield* through((yield* answering(502)).port)
      assert.include(other.text, "HTTP 502")
      assert.include(other.fix, "HTTPS_PROXY")
    })
  )
})

describe("a host", () => {
  it.scopedLive("without an address is named, with what to check", () =>
    Effect.gen(function* () {
      const error = yield* failure(443, { resolve: () => undefined })
      assert.strictEqual(error.reason, "name_not_resolved")
      assert.include(error.text, `no host '${HOST}'`)
      assert.include(error.fix, "host name in the URL")
    })
  )
  it.scopedLive("where nothing listens is told from one that is not reached", () =>
    Effect.gen(function* () {
      const { port } = yield* Effect.scoped(serveRaw(() => undefined))
      const error = yield* failure(port, {}, "http")
      assert.strictEqual(error.reason, "connection_refused")
      assert.include(error.text, "nothing listens there")
    })
  )
  it.scopedLive("that accepts and never speaks TLS is given up after the connect timeout", () =>
    Effect.gen(function* () {
      const silent = yield* serving(net.createServer())
      const url = `wss://${HOST}:${silent.port}/mcp`
      const error = yield* openClient(silent.port, { url, connectTimeoutMs: 50 }).pipe(
        Effect.flatMap((client) => Effect.flip(client.upgrade(url, "request"))),
        Effect.provide(harness().layer)
      )
      assert.strictEqual(error.reason, "connect_timeout")
      assert.include(error.text, "TLS handshake")
      assert.include(error.fix, "wss://")
    })
  )
})

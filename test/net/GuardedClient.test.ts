import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Resolver from "../../src/net/Resolver.ts"
import { notSent } from "../../src/net/NetError.ts"
import { harness, HOST, openClient, post, serveHttp, serveRaw, withBody } from "./support/Guarded.ts"

const LIMIT = 8 * 1024 * 1024

describe("one message", () => {
  it.scopedLive("is recorded, shown, resolved and dialled in this order, and answered", () => {
    const seen = harness()
    return Effect.gen(function* () {
      const server = yield* serveHttp((request, response) => {
        seen.steps.push("served")
        withBody(request, (body) => {
          response.setHeader("content-type", "application/json")
          response.end(JSON.stringify({ body, headers: request.headers, path: request.url }))
        })
      })
      const client = yield* openClient(server.port, {
        headers: [{ name: "X-Plain", value: Redacted.make("plain"), credential: false }]
      })
      const response = yield* client.send(post(server.port, '{"a":"ä"}', "/mcp?x=1"))
      assert.strictEqual(response.status, 200)
      assert.strictEqual(response.header("content-type"), "application/json")
      assert.isUndefined(response.header("constructor"))
      const answer = JSON.parse(yield* response.text(LIMIT))
      assert.strictEqual(answer.body, '{"a":"ä"}')
      assert.strictEqual(answer.path, "/mcp?x=1")
      assert.strictEqual(answer.headers.host, `${HOST}:${server.port}`)
      assert.match(answer.headers["user-agent"], /^sigil\//)
      assert.strictEqual(answer.headers["accept-encoding"], "identity")
      assert.strictEqual(answer.headers["x-plain"], "plain")
      assert.deepStrictEqual(
        Object.keys(answer.headers).filter((name) => ["referer", "cookie", "traceparent"].includes(name)),
        []
      )
      assert.deepStrictEqual(seen.steps, [
        "record mcp_transport_authorization",
        "record egress_disclosure_presented",
        "present request",
        `resolve ${HOST}`,
        "served"
      ])
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("has records of its own, which hold no path, header or body", () => {
    const seen = harness()
    return Effect.gen(function* () {
      const server = yield* serveHttp((_request, response) => response.end("{}"))
      const client = yield* openClient(server.port, {
        headers: [{ name: "X-Plain", value: Redacted.make("hidden-value"), credential: false }]
      })
      for (const data of ["request", "request", "workspace_root_uri"] as const) {
        const response = yield* client.send({
          ...post(server.port, "hidden-body", "/mcp?hidden-query"),
          data,
          call: "c1"
        })
        yield* response.text(LIMIT)
      }
      assert.notMatch(JSON.stringify([seen.records, seen.shown]), /hidden|\/mcp/)
      const fields = (name: string) => seen.records.map(({ payload }) => payload?.[name])
      assert.strictEqual(new Set(fields("record_id")).size, 6)
      assert.strictEqual(new Set(fields("disclosure_id")).size, 3)
      assert.strictEqual(new Set(fields("route_fingerprint")).size, 1)
      assert.deepStrictEqual(new Set(fields("safe_transport_destination")), new Set([`http://${HOST}:${server.port}`]))
      assert.deepStrictEqual(new Set(seen.records.map(({ call }) => call)), new Set(["c1"]))
      // Shown once per kind of data, dialled once.
      assert.deepStrictEqual(
        seen.shown.map(({ data }) => data),
        ["request", "workspace_root_uri"]
      )
      assert.strictEqual(server.connections, 1)
      assert.deepStrictEqual(seen.asked, [HOST])
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("is shown and recorded under the name that it may be shown by", () => {
    const seen = harness()
    return Effect.gen(function* () {
      const server = yield* serveHttp((_request, response) => response.end("{}"))
      const client = yield* openClient(server.port, { shown: "https://${TENANT}.test" })
      yield* Effect.flatMap(client.send(post(server.port)), (response) => response.text(LIMIT))
      assert.notInclude(JSON.stringify([seen.records, seen.shown]), HOST)
      assert.strictEqual(seen.shown[0]?.destination, "https://${TENANT}.test")
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("is not resolved when the audit log cannot take its record", () => {
    const seen = harness({ writable: false })
    return Effect.gen(function* () {
      const server = yield* serveHttp((_request, response) => response.end("{}"))
      const client = yield* openClient(server.port)
      const error = yield* Effect.flip(client.send(post(server.port)))
      assert.strictEqual(error.code, "SIGIL_AUDIT_UNWRITABLE")
      assert.strictEqual(error.delivered, "no")
      const socket = yield* Effect.flip(Effect.scoped(client.upgrade(`http://${HOST}:${server.port}/`, "request")))
      assert.strictEqual(socket.code, "SIGIL_AUDIT_UNWRITABLE")
      assert.deepStrictEqual(seen.steps, [])
      assert.strictEqual(server.connections, 0)
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("is not resolved when it cannot be shown, and is shown again the next time", () => {
    let broken = true
    const seen = harness({
      present: () =>
        Effect.suspend(() => (broken ? Effect.fail(notSent("SIGIL_OUTPUT_UNWRITABLE", "gone", "Gone.")) : Effect.void))
    })
    return Effect.gen(function* () {
      const server = yield* serveHttp((_request, response) => response.end("{}"))
      const client = yield* openClient(server.port)
      const error = yield* Effect.flip(client.send(post(server.port)))
      assert.strictEqual(error.code, "SIGIL_OUTPUT_UNWRITABLE")
      assert.deepStrictEqual(seen.asked, [])
      broken = false
      yield* Effect.flatMap(client.send(post(server.port)), (response) => response.text(LIMIT))
      assert.strictEqual(seen.shown.length, 1)
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("that comes together with others is shown once", () => {
    const seen = harness({ present: () => Effect.yieldNow() })
    return Effect.gen(function* () {
      const server = yield* serveHttp((_request, response) => response.end("{}"))
      const client = yield* openClient(server.port)
      const one = Effect.flatMap(client.send(post(server.port)), (response) => response.text(LIMIT))
      yield* Effect.all([one, one, one, one], { concurrency: "unbounded" })
      assert.strictEqual(seen.shown.length, 1)
      assert.strictEqual(seen.records.length, 8)
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("goes to no other origin", () => {
    const seen = harness()
    return Effect.gen(function* () {
      const other = yield* serveHttp((_request, response) => response.end("{}"))
      const server = yield* serveHttp((_request, response) => response.end("{}"))
      const client = yield* openClient(server.port)
      for (const url of [
        `http://${HOST}:${other.port}/mcp`,
        `https://${HOST}:${server.port}/`,
        "nonsense",
        "file:///x"
      ]) {
        const error = yield* Effect.flip(client.send({ ...post(server.port), url }))
        assert.strictEqual(error.reason, "other_origin", url)
      }
      assert.deepStrictEqual(seen.steps, [])
      assert.strictEqual(other.connections, 0)
    }).pipe(Effect.provide(seen.layer))
  })
})

describe("a client", () => {
  const header = (name: string, value = "v", credential = false) => ({ name, value: Redacted.make(value), credential })

  it.scopedLive("is refused headers that are not the user's to set, and values that cannot be sent", () => {
    const seen = harness()
    return Effect.gen(function* () {
      const table = [
        [[header("Host")], "header_owned"],
        [[header("MCP-Session-Id")], "header_owned"],
        [[header("cookie")], "header_owned"],
        [[header("X-A"), header("x-a")], "header_duplicate"],
        [[header("X A")], "header_invalid"],
        [[header("X-A", "")], "header_invalid"],
        [[header("X-A", "secret\r\nX-B: 1")], "header_invalid"],
        [[header("X-A", "a".repeat(33_000))], "header_too_large"],
        [[header("Authorization", "Bearer t")], "credentials_unencrypted"],
        [[header("X-Api-Key", "t")], "credentials_unencrypted"],
        [[header("X-Other", "t", true)], "credentials_unencrypted"]
      ] as const
      for (const [headers, reason] of table) {
        const error = yield* Effect.flip(openClient(1, { headers }))
        assert.strictEqual(error.reason, reason)
        assert.strictEqual(error.delivered, "no")
        assert.notInclude(error.text, "secret")
      }
      const client = yield* openClient(1)
      const error = yield* Effect.flip(
        client.send({ ...post(1), headers: { authorization: Redacted.make("Bearer t") } })
      )
      assert.strictEqual(error.reason, "credentials_unencrypted")
      assert.deepStrictEqual(seen.steps, [])
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("is refused what the rules refuse before anything is recorded or resolved", () => {
    const seen = harness()
    return Effect.gen(function* () {
      for (const url of ["http://localhost:1/", "http://2130706433:1/", "https://[::ffff:169.254.169.254]/"]) {
        const error = yield* Effect.flip(openClient(1, { url }))
        assert.strictEqual(error.code, "SIGIL_NETWORK_REFUSED", url)
      }
      assert.deepStrictEqual(seen.steps, [])
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("is dialled at none of its addresses when one of them is refused", () => {
    const answers = [["93.184.216.34", "127.0.0.1"], ["10.0.0.1"], ["::127.0.0.1"], ["127.0.0.1", "fe80::1"], []]
    const seen = harness({ resolve: () => answers.shift() })
    return Effect.gen(function* () {
      const server = yield* serveHttp((_request, response) => response.end("{}"))
      const client = yield* openClient(server.port)
      const count = answers.length
      for (let index = 0; index < count; index += 1) {
        const error = yield* Effect.flip(client.send(post(server.port)))
        assert.strictEqual(error.code, "SIGIL_NETWORK_REFUSED")
        assert.strictEqual(error.delivered, "no")
      }
      assert.strictEqual(server.connections, 0)
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("resolves and judges again at each dial, so a name that moves inwards is refused", () => {
    const answers = [["127.0.0.1"], ["127.0.0.1", "10.0.0.1"]]
    const seen = harness({ resolve: () => answers.shift() })
    return Effect.gen(function* () {
      const server = yield* serveHttp((_request, response) => {
        response.setHeader("connection", "close")
        response.end("{}")
      })
      const client = yield* openClient(server.port)
      yield* Effect.flatMap(client.send(post(server.port)), (response) => response.text(LIMIT))
      const error = yield* Effect.flip(client.send(post(server.port)))
      assert.strictEqual(error.code, "SIGIL_NETWORK_REFUSED")
      assert.strictEqual(server.connections, 1)
      assert.deepStrictEqual(seen.asked, [HOST, HOST])
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("uses no kept connection to addresses that the name has left", () => {
    const answers = [["127.0.0.1"], ["127.0.0.1"], ["127.0.0.1", "127.0.0.2"]]
    const seen = harness({ resolve: () => answers.shift() })
    return Effect.gen(function* () {
      const holding: Array<() => void> = []
      const server = yield* serveHttp((request, response) => {
        if (request.url === "/hold") holding.push(() => response.end("{}"))
        else response.end("{}")
      })
      const client = yield* openClient(server.port)
      // Two connections, of which one stays busy.
      const first = yield* client.send(post(server.port))
      const second = yield* client.send(post(server.port))
      yield* first.text(LIMIT)
      const busy = yield* Effect.fork(client.send(post(server.port, "{}", "/hold")))
      yield* Effect.repeat(Effect.yieldNow(), { until: () => holding.length === 1 })
      // Nothing is free: a dial, which finds another set.
      const third = yield* client.send(post(server.port))
      yield* second.text(LIMIT)
      yield* third.text(LIMIT)
      for (const release of holding) release()
      yield* Effect.flatMap(Fiber.join(busy), (response) => response.text(LIMIT))
      assert.strictEqual(server.connections, 3)
      // Only the third may be used again; used one after the other nothing is dialled any more.
      for (let index = 0; index < 3; index += 1)
        yield* Effect.flatMap(client.send(post(server.port)), (response) => response.text(LIMIT))
      assert.strictEqual(server.connections, 3)
      // With the third one busy there is no other.
      const held = yield* client.send(post(server.port))
      const error = yield* Effect.flip(client.send(post(server.port)))
      assert.strictEqual(error.reason, "name_not_resolved")
      held.cancel()
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("closes what became free to the old addresses while the new ones were looked up", () =>
    Effect.gen(function* () {
      const asking = yield* Deferred.make<void>()
      const answer = yield* Deferred.make<void>()
      const closed = yield* Deferred.make<void>()
      const answers = [["127.0.0.1"], ["127.0.0.1", "127.0.0.2"]]
      const seen = harness({
        resolve: () => answers.shift(),
        beforeResolve: (count) =>
          count === 0 ? Effect.void : Effect.zipRight(Deferred.succeed(asking, undefined), Deferred.await(answer))
      })
      const server = yield* serveHttp((request, response) => {
        if (seen.asked.length === 1)
          request.socket.on("close", () => Effect.runFork(Deferred.succeed(closed, undefined)))
        response.end("{}")
      })
      yield* Effect.gen(function* () {
        const client = yield* openClient(server.port)
        const first = yield* client.send(post(server.port))
        const second = yield* Effect.fork(client.send(post(server.port)))
        yield* Deferred.await(asking)
        yield* first.text(LIMIT)
        yield* Deferred.succeed(answer, undefined)
        yield* Effect.flatMap(Fiber.join(second), (response) => response.text(LIMIT))
        yield* Deferred.await(closed)
      }).pipe(Effect.provide(seen.layer))
    })
  )

  it.scopedLive("says when a name does not resolve and when nothing listens", () => {
    const seen = harness({ resolve: (host) => (seen.asked.length > 1 ? ["127.0.0.1"] : void host) })
    return Effect.gen(function* () {
      const server = yield* Effect.scoped(serveHttp(() => {}))
      const client = yield* openClient(server.port)
      const unresolved = yield* Effect.flip(client.send(post(server.port)))
      assert.strictEqual(unresolved.reason, "name_not_resolved")
      const refused = yield* Effect.flip(client.send(post(server.port)))
      assert.strictEqual(refused.reason, "connection_refused")
      assert.strictEqual(refused.code, "SIGIL_CONNECTION_LOST")
      assert.strictEqual(refused.delivered, "no")
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("tries the next address where nothing listens at the first", () => {
    const seen = harness({ resolve: () => ["127.0.0.2", "127.0.0.1"] })
    return Effect.gen(function* () {
      const server = yield* serveHttp((_request, response) => response.end("{}"))
      const client = yield* openClient(server.port)
      assert.strictEqual(
        yield* Effect.flatMap(client.send(post(server.port)), (response) => response.text(LIMIT)),
        "{}"
      )
    }).pipe(Effect.provide(seen.layer))
  })

  it.live("is given addresses by the system's resolver", () =>
    Effect.gen(function* () {
      const { resolve } = yield* Resolver.Resolver
      assert.deepStrictEqual(yield* resolve("127.0.0.1"), ["127.0.0.1"])
    }).pipe(Effect.provide(Resolver.layer))
  )

  it.scopedLive("closes its connections with its scope, busy ones too", () => {
    const seen = harness()
    return Effect.gen(function* () {
      const arrived = yield* Deferred.make<void>()
      const closed = yield* Deferred.make<void>()
      const server = yield* serveHttp((request, _response) => {
        request.socket.on("close", () => Effect.runFork(Deferred.succeed(closed, undefined)))
        Effect.runFork(Deferred.succeed(arrived, undefined))
      })
      const scope = yield* Scope.make()
      const client = yield* Scope.extend(openClient(server.port), scope)
      const sent = yield* Effect.fork(client.send(post(server.port)))
      yield* Deferred.await(arrived)
      yield* Scope.close(scope, Exit.void)
      const error = yield* Effect.flip(Fiber.join(sent))
      assert.strictEqual(error.code, "SIGIL_CONNECTION_LOST")
      assert.strictEqual(error.delivered, "unknown")
      yield* Deferred.await(closed)
    }).pipe(Effect.provide(seen.layer))
  })
})

describe("kept connections", () => {
  it.scopedLive("are used again, one message at a time", () => {
    const seen = harness()
    return Effect.gen(function* () {
      const server = yield* serveHttp((_request, response) => response.end("{}"))
      const client = yield* openClient(server.port)
      const one = Effect.flatMap(client.send(post(server.port)), (response) => response.text(LIMIT))
      for (let index = 0; index < 5; index += 1) yield* one
      assert.strictEqual(server.connections, 1)
      const held = yield* client.send(post(server.port))
      yield* one
      assert.strictEqual(server.connections, 2)
      held.cancel()
      yield* one
      assert.strictEqual(server.connections, 2)
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("that the server closed meanwhile are replaced", () => {
    const seen = harness()
    return Effect.gen(function* () {
      let finish = (): void => {}
      const server = yield* serveHttp((request, response) => {
        finish = () => request.socket.destroy()
        response.end("{}")
      })
      const client = yield* openClient(server.port)
      const one = Effect.flatMap(client.send(post(server.port)), (response) => response.text(LIMIT))
      yield* one
      finish()
      // The end arrives on the same loop as the answer to this probe of another connection.
      yield* Effect.scoped(Effect.flatMap(openClient(server.port), (other) => other.send(post(server.port))))
      assert.strictEqual(yield* one, "{}")
      assert.strictEqual(server.connections, 3)
    }).pipe(Effect.provide(seen.layer))
  })

  it.scopedLive("never carry a message twice: cut after it was written, it is reported, not repeated", () => {
    const seen = harness()
    return Effect.gen(function* () {
      let requests = 0
      const server = yield* serveRaw((socket) => {
        requests += 1
        if (requests === 1) socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        else socket.destroy()
      })
      const client = yield* openClient(server.port)
      yield* Effect.flatMap(client.send(post(server.port)), (response) => response.text(LIMIT))
      const error = yield* Effect.flip(client.send(post(server.port)))
      assert.strictEqual(error.code, "SIGIL_CONNECTION_LOST")
      assert.strictEqual(error.delivered, "unknown")
      assert.strictEqual(requests, 2)
      assert.strictEqual(server.connections, 1)
    }).pipe(Effect.provide(seen.layer))
  })
})

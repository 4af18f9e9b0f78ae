import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { bodyOf, harness, HOST, openClient, post, serveHttp } from "./support/Guarded.ts"

const LIMIT = 8 * 1024 * 1024

describe("one message", () => {
  it.scopedLive("is recorded, shown, resolved and dialled in this order, and answered", () => {
    const seen = harness()
    return Effect.gen(function* () {
      const server = yield* serveHttp((request, response) => {
        seen.steps.push("served")
        void bodyOf(request).then((body) => {
          response.setHeader("content-type", "application/json")
          response.end(JSON.stringify({ body, headers: request.headers, path: request.url }))
        })
      })
      const client = yield* openClient(server.port, {
        headers: [{ name: "X-Plain", value: Redacted.make("täg"), credential: false }]
      })
      const response = yield* client.send(post(server.port, '{"a":"ä"}', "/mcp?x=1"))
      assert.strictEqual(response.status, 200)
      assert.strictEqual(response.header("content-type"), "application/json")
      const answer = JSON.parse(yield* response.text(LIMIT))
      assert.strictEqual(answer.body, '{"a":"ä"}')
      assert.strictEqual(answer.path, "/mcp?x=1")
      assert.strictEqual(answer.headers.host, `${HOST}:${server.port}`)
      assert.match(answer.headers["user-agent"], /^sigil\//)
      assert.strictEqual(answer.headers["accept-encoding"], "identity")
      assert.strictEqual(Buffer.from(answer.headers["x-plain"], "latin1").toString("latin1"), "täg")
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
})

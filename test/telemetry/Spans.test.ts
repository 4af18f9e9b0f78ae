import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as TestClock from "effect/TestClock"
import type { JsonObject } from "../../src/base/Json.ts"
import { nothingToClean } from "../../src/platform/CleanupReport.ts"
import * as Random from "../../src/platform/Random.ts"
import { AdmissionError, ConnectionError, RemoteError } from "../../src/server/ServerError.ts"
import { Attribute, errorTypeOf, withCallSpan, withListener } from "../../src/telemetry/CallSpan.ts"
import type { RecordedSpan } from "../../src/telemetry/RecordingTracer.ts"
import * as Spans from "../../src/telemetry/Spans.ts"
import * as SpanTree from "../../src/telemetry/SpanTree.ts"

const facts: Spans.ConnectionFacts = {
  server: "files",
  generation: "g-1",
  transport: "pipe",
  protocolVersion: () => "2025-11-25",
  propagate: false
}
const secret = "s3cr3t-value"

/** Runs a program with a collector installed. */
const collected = <A, E>(program: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const collector = yield* SpanTree.collector
    const exit = yield* Effect.exit(Effect.withTracer(program, collector.tracer))
    return { exit, spans: collector.spans(), measured: collector.measured() }
  }).pipe(Effect.provide(Random.layerTest))

const attributesOf = (span: RecordedSpan | undefined): { readonly [name: string]: unknown } =>
  Object.fromEntries(span?.attributes ?? [])

const call = <E>(method: string, params: JsonObject, outcome: Effect.Effect<JsonObject, E>, of = facts) =>
  withCallSpan(
    { name: method, attributes: { [Attribute.method]: method } },
    errorTypeOf,
    Spans.exchange(of, method, params, (sending) => {
      sending?.sent(7)
      return outcome
    })
  )

describe("Spans", () => {
  it.effect("makes nothing and tells the body so when no tracer is installed", () =>
    Effect.gen(function* () {
      const heard: Array<unknown> = []
      const result = yield* withListener({ name: "x", attributes: {} }, errorTypeOf, (listener) => {
        heard.push(listener)
        return Spans.exchange(facts, "tools/call", {}, (sending) => {
          heard.push(sending)
          return Effect.flatMap(Effect.option(Effect.currentSpan), (span) => {
            heard.push(Option.isNone(span))
            return Effect.succeed({ plain: true })
          })
        })
      })
      const session = yield* Spans.openSession
      const report = yield* Spans.close(
        facts,
        () => session,
        () => assert.fail("nobody asks"),
        Effect.succeed(nothingToClean)
      )
      assert.deepEqual(heard, [undefined, undefined, true])
      assert.deepEqual(result, { plain: true })
      assert.isUndefined(session)
      assert.strictEqual(report, nothingToClean)
    })
  )

  it.effect("nests a whole life as a tree, with the conventions' names and attributes", () =>
    Effect.gen(function* () {
      const life = Effect.gen(function* () {
        const session = yield* withCallSpan(
          { name: "tools/call echo", attributes: { [Attribute.method]: "tools/call", [Attribute.server]: "files" } },
          errorTypeOf,
          Effect.gen(function* () {
            const opened = yield* Spans.start(
              "files",
              "asked",
              Effect.gen(function* () {
                yield* Spans.admission("files", Effect.void)
                yield* Spans.spawn(facts, Effect.succeed({ pid: 42 }))
                yield* Spans.operation(
                  facts,
                  "initialize",
                  Spans.exchange(facts, "initialize", {}, () => Effect.succeed({}))
                )
                return yield* Spans.openSession
              })
            )
            yield* TestClock.adjust(30)
            yield* Spans.exchange(facts, "tools/call", { name: "echo", arguments: { text: secret } }, (sending) => {
              sending?.sent(7)
              return Effect.as(TestClock.adjust(70), { content: [{ type: "text", text: secret }] })
            })
            return opened
          })
        )
        yield* Spans.close(
          facts,
          () => session,
          () => undefined,
          Effect.succeed(nothingToClean)
        )
      })
      const { spans, measured } = yield* collected(life)
      assert.deepEqual(SpanTree.render(spans, { attributes: [Attribute.method, Attribute.pid, Attribute.requestId] }), [
        "tools/call echo  100.0 ms  mcp.method.name=tools/call jsonrpc.request.id=7",
        "└─ sigil.start  0.0 ms",
        "   ├─ sigil.admission  0.0 ms",
        "   ├─ sigil.spawn  0.0 ms  process.pid=42",
        "   └─ initialize  0.0 ms  mcp.method.name=initialize",
        "sigil.close  0.0 ms"
      ])
      assert.deepEqual(
        spans.filter(({ kind }) => kind === "client").map(({ name }) => name),
        ["initialize", "tools/call echo"]
      )
      const called = spans.find(({ name }) => name === "tools/call echo")
      assert.equal(called?.kind, "client")
      assert.deepEqual(attributesOf(called), {
        "mcp.method.name": "tools/call",
        "sigil.server.name": "files",
        "network.transport": "pipe",
        "mcp.protocol.version": "2025-11-25",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "echo",
        "sigil.generation.id": "g-1",
        "jsonrpc.request.id": "7"
      })
      const closed = spans.find(({ name }) => name === "sigil.close")
      assert.equal(closed?.attributes.get("sigil.cleanup.complete"), true)
      assert.equal(closed?.links[0]?.span.spanId, spans.find(({ name }) => name === "sigil.start")?.spanId)
      assert.notEqual(closed?.traceId, called?.traceId)
      const rows = measured.flatMap(({ instrument, series }) =>
        series.map(({ attributes, sum }) => [
          instrument.name,
          attributes["mcp.method.name"],
          attributes["gen_ai.tool.name"],
          sum
        ])
      )
      assert.deepEqual(rows, [
        ["mcp.client.operation.duration", "initialize", undefined, 0],
        ["mcp.client.operation.duration", "tools/call", "echo", 0.07],
        ["mcp.client.session.duration", undefined, undefined, 0.1]
      ])
      const everything = JSON.stringify([spans.map((span) => [span.name, [...span.attributes], span.events]), measured])
      assert.notInclude(everything, secret)
    })
  )

  it.effect("names each kind of failure by the conventions, and never by its text", () =>
    Effect.gen(function* () {
      const remote = new RemoteError({
        code: "SIGIL_REMOTE_ERROR",
        reason: "remote_error",
        text: `no: ${secret}`,
        rpcCode: -32_602
      })
      const lost = new ConnectionError({ code: "SIGIL_CONNECTION_LOST", reason: "stream_closed", text: secret })
      const cases: ReadonlyArray<readonly [Effect.Effect<JsonObject, unknown>, string, string | undefined]> = [
        [Effect.fail(remote), "-32602", "-32602"],
        [Effect.fail(lost), "SIGIL_CONNECTION_LOST", undefined],
        [Effect.succeed({ isError: true, content: [] }), "tool_error", undefined],
        [Effect.interrupt, "SIGIL_INTERRUPTED", undefined],
        [Effect.die(secret), "SIGIL_INTERNAL", undefined],
        [Effect.fail(secret), "_OTHER", undefined]
      ]
      for (const [outcome, type, status] of cases) {
        const { spans, measured } = yield* collected(call("tools/call", { name: "x" }, outcome))
        const shown = attributesOf(spans[0])
        assert.equal(shown["error.type"], type)
        assert.equal(shown["rpc.response.status_code"], status)
        const row = measured[0]?.series[0]?.attributes
        assert.deepEqual([row?.["error.type"], row?.["rpc.response.status_code"]], [type, status])
        assert.notInclude(JSON.stringify([shown, row]), secret)
      }
      const { spans, exit } = yield* collected(call("tools/call", { name: "x" }, Effect.succeed({})))
      assert.isTrue(Exit.isSuccess(exit))
      assert.isFalse(spans[0]?.attributes.has("error.type"))
    })
  )

  it.effect("marks a result with isError only for tools", () =>
    Effect.gen(function* () {
      const { spans } = yield* collected(call("resources/read", {}, Effect.succeed({ isError: true })))
      assert.isFalse(spans[0]?.attributes.has("error.type"))
    })
  )

  it.effect("adds to the call's own span only: a request inside another operation changes nothing there", () =>
    Effect.gen(function* () {
      const { spans, measured } = yield* collected(
        withCallSpan(
          { name: "resources/subscribe", attributes: { [Attribute.method]: "resources/subscribe" } },
          errorTypeOf,
          Spans.exchange(facts, "ping", undefined, (sending) => {
            sending?.sent(9)
            return Effect.succeed({})
          })
        )
      )
      assert.deepEqual(attributesOf(spans[0]), { "mcp.method.name": "resources/subscribe" })
      assert.equal(measured[0]?.series[0]?.attributes["mcp.method.name"], "ping")
    })
  )

  it.effect("gives prompts and resources their attributes, and takes data out of URIs", () =>
    Effect.gen(function* () {
      const prompt = yield* collected(
        call("prompts/get", { name: "review", arguments: { code: secret } }, Effect.succeed({}))
      )
      assert.equal(prompt.spans[0]?.attributes.get("gen_ai.prompt.name"), "review")
      const uri = `https://user:${secret}@host/path?token=${secret}#${secret}`
      const read = yield* collected(call("resources/read", { uri }, Effect.succeed({})))
      assert.equal(read.spans[0]?.attributes.get("mcp.resource.uri"), "https://host/path")
      assert.isUndefined(read.measured[0]?.series[0]?.attributes["mcp.resource.uri"])
      assert.notInclude(JSON.stringify([prompt, read].map(({ spans }) => attributesOf(spans[0]))), secret)
      assert.equal(Spans.safeUri(`data:text/plain,${secret}`), "data:")
      assert.equal(Spans.safeUri("urn:isbn:1"), "urn:isbn:1")
    })
  )

  it.effect("gives the trace context of the call's span only to a server that may have it", () =>
    Effect.gen(function* () {
      const metas: Array<JsonObject | undefined> = []
      const program = (propagate: boolean) =>
        withCallSpan(
          { name: "tools/call", attributes: { [Attribute.method]: "tools/call" } },
          errorTypeOf,
          Spans.exchange({ ...facts, propagate }, "tools/call", {}, (sending) => {
            metas.push(sending?.meta)
            return Effect.succeed({})
          })
        )
      const { spans } = yield* collected(Effect.zipRight(program(false), program(true)))
      assert.deepEqual(metas, [undefined, { traceparent: `00-${spans[1]?.traceId}-${spans[1]?.spanId}-01` }])
    })
  )

  it.effect("says which gate refused, and what a close left behind", () =>
    Effect.gen(function* () {
      const refusal = new AdmissionError({
        code: "SIGIL_DISABLED",
        reason: "disabled",
        text: "no",
        where: { server: "files", operation: "enabled" }
      })
      const refused = yield* collected(Spans.admission("files", Effect.fail(refusal)))
      assert.deepEqual(attributesOf(refused.spans[0]), {
        "sigil.server.name": "files",
        "sigil.admission.gate": "enabled",
        "error.type": "SIGIL_DISABLED",
        "sigil.error.reason": "disabled"
      })
      const incomplete = { ...nothingToClean, complete: false, reason: "survivors" }
      const closed = yield* collected(
        Effect.flatMap(Spans.openSession, (session) =>
          Spans.close(
            facts,
            () => session,
            () => "stream_closed",
            Effect.succeed(incomplete)
          )
        )
      )
      const shown = attributesOf(closed.spans[0])
      assert.deepEqual(
        [shown["sigil.cleanup.complete"], shown["sigil.cleanup.reason"], shown["error.type"]],
        [false, "survivors", "SIGIL_CLEANUP_INCOMPLETE"]
      )
      assert.equal(closed.measured[0]?.series[0]?.attributes["error.type"], "stream_closed")
    })
  )

  it.effect("begins a trace for a close after a session, and keeps the close of a failed start inside it", () =>
    Effect.gen(function* () {
      const closing = (session: Spans.Session | undefined) =>
        Spans.start(
          "files",
          "asked",
          Spans.close(
            facts,
            () => session,
            () => undefined,
            Effect.succeed(nothingToClean)
          )
        )
      const failed = yield* collected(closing(undefined))
      assert.deepEqual(SpanTree.render(failed.spans, { durations: false, attributes: [] }), [
        "sigil.start",
        "└─ sigil.close"
      ])
      assert.deepEqual(failed.measured, [])
      const ended = yield* collected(Effect.flatMap(Spans.openSession, closing))
      assert.deepEqual([...SpanTree.render(ended.spans, { durations: false, attributes: [] })].sort(), [
        "sigil.close",
        "sigil.start"
      ])
      assert.equal(ended.measured[0]?.instrument.name, "mcp.client.session.duration")
    })
  )

  it.effect("leaves the span of the capturing moment out of captured services, and nothing else", () =>
    Effect.gen(function* () {
      const program = Effect.gen(function* () {
        const captured = yield* Effect.withSpan(Effect.context<Random.Random>(), "old")
        return yield* Effect.withSpan(
          Spans.admission("files", Effect.as(Random.Random, undefined)).pipe(
            Effect.provide(Spans.withoutSpan(captured))
          ),
          "new"
        )
      }).pipe(Effect.provide(Random.layerTest))
      const { spans } = yield* collected(program)
      assert.deepEqual(SpanTree.render(spans, { durations: false, attributes: [] }), [
        "old",
        "new",
        "└─ sigil.admission"
      ])
    })
  )

  it.effect("closes with the tracer of the start, on whatever fiber the finalizer runs", () =>
    Effect.gen(function* () {
      const collector = yield* SpanTree.collector
      const session = yield* Effect.withTracer(Spans.openSession, collector.tracer)
      const fiber = yield* Effect.fork(
        Spans.close(
          facts,
          () => session,
          () => undefined,
          Effect.succeed(nothingToClean)
        )
      )
      yield* Fiber.join(fiber)
      assert.deepEqual(
        collector.spans().map(({ name }) => name),
        ["sigil.close"]
      )
    }).pipe(Effect.provide(Random.layerTest))
  )
})

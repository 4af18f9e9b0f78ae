import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as net from "node:net"
import { Secrets } from "../../src/policy/Secrets.ts"
import { ConnectionError } from "../../src/server/ServerError.ts"
import { isSilent } from "../../src/telemetry/CallSpan.ts"
import { MAX_BATCH, MAX_QUEUE, waitBefore } from "../../src/telemetry/OtlpExporter.ts"
import { retryAfterMs } from "../../src/telemetry/OtlpHttp.ts"
import { headless } from "../../src/tools/Caller.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"
import { layer as fakeRuntime } from "../support/FakeRuntime.ts"
import { fakeServer } from "../support/FakeServer.ts"
import { receiver } from "./Receiver.ts"
import { call, exporterOf, metricsOf, Traces, tracesOf, valuesOf, withVariables } from "./Collected.ts"

describe("Otlp", () => {
  it.scopedLive("installs nothing and sends nothing when no endpoint is set, or the SDK is disabled", () =>
    Effect.gen(function* () {
      const collector = yield* receiver()
      for (const variables of [
        {},
        { OTEL_SERVICE_NAME: "x", OTEL_EXPORTER_OTLP_HEADERS: "a=b" },
        { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_SDK_DISABLED: "true" },
        { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none" }
      ]) {
        const tracer = yield* Effect.zipRight(call(Effect.succeed({})), Effect.tracer).pipe(
          Effect.provide(withVariables(variables))
        )
        assert.isTrue(isSilent(tracer))
      }
      assert.equal(collector.got.length, 0)
    })
  )

  it.scopedLive("leaves a tracer that the program has installed alone", () =>
    Effect.gen(function* () {
      const collector = yield* receiver()
      const own = { ...(yield* Effect.tracer) }
      const seen = yield* Effect.tracer.pipe(
        Effect.provide(withVariables({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })),
        Effect.withTracer(own)
      )
      assert.strictEqual(seen, own)
    })
  )

  it.scopedLive("sends spans and histograms in the protocol's own form when the scope closes", () =>
    Effect.gen(function* () {
      const collector = yield* receiver()
      const before = BigInt(Date.now()) * 1_000_000n
      const lost = new ConnectionError({
        code: "SIGIL_CALL_TIMEOUT",
        reason: "timeout",
        text: "a text that stays here"
      })
      yield* Effect.gen(function* () {
        yield* call(Effect.succeed({}))
        yield* call(Effect.succeed({ isError: true }))
        yield* Effect.flip(call(Effect.fail(lost)))
        yield* Effect.useSpan("outer", (span) =>
          Effect.sync(() => {
            for (const [key, value] of Object.entries({
              text: "t",
              int: 5,
              big: 2n ** 60n,
              double: 1.5,
              nan: Number.NaN,
              yes: true,
              list: ["a", 1],
              object: { a: 1 }
            })) {
              span.attribute(key, value)
            }
            span.event("event", 5n, { n: 1 })
          })
        )
      }).pipe(
        Effect.provide(
          withVariables({
            OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/base/`,
            OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20s3cret-token",
            OTEL_SERVICE_NAME: "my-host",
            OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test"
          })
        )
      )
      const byPath = new Map(collector.got.map((got) => [got.path, got]))
      assert.deepEqual([...byPath.keys()].sort(), ["/base/v1/metrics", "/base/v1/traces"])
      for (const got of collector.got) {
        assert.equal(got.method, "POST")
        assert.equal(got.headers["content-type"], "application/json")
        assert.equal(got.headers["authorization"], "Bearer s3cret-token")
        assert.isUndefined(got.headers["traceparent"])
      }
      const body = byPath.get("/base/v1/traces")?.body
      const [ok, failed, timeout, outer] = tracesOf(body)
      assert.isDefined(ok)
      assert.deepEqual(
        [ok, failed, timeout, outer].map((span) => [span?.name, span?.kind, span?.status]),
        [
          ["tools/call echo", 3, { code: 0 }],
          ["tools/call echo", 3, { code: 2, message: "tool_error" }],
          ["tools/call echo", 3, { code: 2, message: "timeout" }],
          ["outer", 1, { code: 0 }]
        ]
      )
      assert.isTrue(
        BigInt(ok.startTimeUnixNano) >= before && BigInt(ok.endTimeUnixNano) >= BigInt(ok.startTimeUnixNano)
      )
      assert.isTrue(BigInt(ok.endTimeUnixNano) <= BigInt(Date.now() + 1_000) * 1_000_000n)
      assert.deepEqual(valuesOf(ok.attributes), {
        "mcp.method.name": "tools/call",
        "sigil.server.name": "files",
        "network.transport": "pipe",
        "mcp.protocol.version": "2025-11-25",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "echo",
        "sigil.generation.id": "g-1",
        "jsonrpc.request.id": "3"
      })
      assert.deepEqual(
        outer?.attributes.map(({ value }) => value),
        [
          { stringValue: "t" },
          { intValue: "5" },
          { intValue: String(2n ** 60n) },
          { doubleValue: 1.5 },
          { doubleValue: "NaN" },
          { boolValue: true },
          { arrayValue: { values: [{ stringValue: "a" }, { intValue: "1" }] } },
          { stringValue: "[object]" }
        ]
      )
      assert.deepEqual(outer?.events[0]?.timeUnixNano, "5")
      assert.notInclude(JSON.stringify(body), lost.text)
      const resource = valuesOf(Schema.decodeUnknownSync(Traces)(body).resourceSpans[0].resource.attributes)
      assert.deepEqual([resource["service.name"], resource["deployment.environment.name"]], ["my-host", "test"])
      assert.match(String(resource["service.instance.id"]), /^[0-9a-f-]{36}$/)

      const metrics = metricsOf(byPath.get("/base/v1/metrics")?.body)
      assert.deepEqual(
        metrics.map(({ name }) => name),
        ["mcp.client.operation.duration"]
      )
      const points = metrics[0]?.histogram.dataPoints ?? []
      assert.equal(metrics[0]?.histogram.aggregationTemporality, 2)
      assert.deepEqual(
        points.map(({ attributes, count }) => [valuesOf(attributes)["error.type"], count]),
        [
          [undefined, "1"],
          ["tool_error", "1"],
          ["SIGIL_CALL_TIMEOUT", "1"]
        ]
      )
      for (const point of points) {
        assert.equal(point.bucketCounts.length, point.explicitBounds.length + 1)
        assert.equal(String(point.bucketCounts.reduce((sum, one) => sum + Number(one), 0)), point.count)
      }
    })
  )

  it.scopedLive("nests children under the process that started this one, as its environment says", () =>
    Effect.gen(function* () {
      const collector = yield* receiver()
      yield* Effect.withSpan(Effect.withSpan(Effect.void, "inner"), "outer").pipe(
        Effect.provide(
          withVariables({
            OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
            TRACEPARENT: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            TRACESTATE: "rojo=1"
          })
        )
      )
      const [inner, outer] = tracesOf(collector.got[0]?.body)
      assert.isDefined(inner)
      assert.isDefined(outer)
      assert.deepEqual([inner.traceId, outer.traceId], Array(2).fill("4bf92f3577b34da6a3ce929d0e0e4736"))
      assert.deepEqual([inner.parentSpanId, outer.parentSpanId], [outer.spanId, "00f067aa0ba902b7"])
      assert.deepEqual([inner.traceState, inner.flags, outer.flags], ["rojo=1", 0x101, 0x301])
    })
  )

  it.scopedLive("hides every known secret in what it sends, one that became known afterwards too", () =>
    Effect.gen(function* () {
      const collector = yield* receiver()
      const logs: Array<string> = []
      yield* Effect.gen(function* () {
        yield* Effect.withSpan(Effect.void, "tools/call later-s3cret-value", {
          attributes: { place: `x${"later-s3cret-value"}y` }
        })
        yield* Effect.withSpan(Effect.void, "credential", { attributes: { place: "tok-0123456789" } })
        yield* Effect.withSpan(Effect.void, "long", {
          attributes: { place: `${"a".repeat(1_015)}tok-0123456789${"b".repeat(50)}` }
        })
        yield* Effect.flatMap(Secrets, (secrets) => secrets.register(["later-s3cret-value"]))
      }).pipe(
        Effect.provide(
          withVariables(
            {
              OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
              OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20tok-0123456789"
            },
            logs
          )
        )
      )
      const sent = JSON.stringify(collector.got.map(({ body }) => body))
      assert.include(sent, "tools/call [hidden]")
      assert.notInclude(sent, "later-s3cret")
      assert.notInclude(sent, "tok-0")
      assert.deepEqual(logs, [])
    })
  )

  it.scopedLive("sends in batches while the program runs, each span once, gzipped when asked", () =>
    Effect.gen(function* () {
      const collector = yield* receiver()
      const exporter = yield* exporterOf({
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/t`,
        // So long that only a full batch can be the reason to send.
        OTEL_BSP_SCHEDULE_DELAY: "3600000",
        OTEL_EXPORTER_OTLP_COMPRESSION: "gzip"
      })
      for (let index = 0; index < MAX_BATCH + 10; index += 1) exporter.span(`s${index}`)
      yield* collector.count(1)
      yield* exporter.close
      assert.equal(collector.got[0]?.headers["content-encoding"], "gzip")
      const names = collector.got.flatMap(({ body }) => tracesOf(body).map(({ name }) => name))
      assert.isAtLeast(collector.got.length, 2)
      assert.deepEqual(
        names,
        Array.from({ length: MAX_BATCH + 10 }, (_, index) => `s${index}`)
      )
      assert.deepEqual(exporter.stats(), { sent: MAX_BATCH + 10, dropped: 0, metricExports: 0, queued: 0 })
      assert.deepEqual(exporter.logs, [])
    })
  )

  it.scopedLive("drops the oldest span when the queue is full, and counts it", () =>
    Effect.gen(function* () {
      const collector = yield* receiver()
      const exporter = yield* exporterOf({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.url })
      for (let index = 0; index < MAX_QUEUE + 3; index += 1) exporter.span(`s${index}`)
      assert.deepEqual([exporter.stats().queued, exporter.stats().dropped], [MAX_QUEUE, 3])
      yield* exporter.close
      assert.equal(tracesOf(collector.got[0]?.body)[0]?.name, "s3")
      assert.deepEqual([exporter.stats().sent, exporter.stats().dropped], [MAX_QUEUE, 3])
    })
  )

  it.scopedLive("counts what a partial success refused and repeats the collector's words safely, not the batch", () =>
    Effect.gen(function* () {
      const collector = yield* receiver(() => ({
        status: 200,
        body: JSON.stringify({ partialSuccess: { rejectedSpans: "2", errorMessage: "too \u001b[31mlong" } })
      }))
      const exporter = yield* exporterOf({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.url })
      for (const name of ["a", "b", "c"]) exporter.span(name)
      yield* exporter.close
      assert.equal(collector.got.length, 1)
      assert.deepEqual([exporter.stats().sent, exporter.stats().dropped], [1, 2])
      assert.include(exporter.logs[0], "refused 2 of the traces: too \\u001b[31mlong")
    })
  )

  it.scopedLive("tries a 503 again after the time it asks for, and loses nothing", () =>
    Effect.gen(function* () {
      const collector = yield* receiver((index) =>
        index === 0 ? { status: 503, headers: { "retry-after": "0" } } : { status: 200, body: "{}" }
      )
      const exporter = yield* exporterOf({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.url })
      exporter.span("kept")
      yield* exporter.close
      assert.equal(collector.got.length, 2)
      assert.deepEqual(collector.got[0]?.body, collector.got[1]?.body)
      assert.deepEqual([exporter.stats().sent, exporter.stats().dropped], [1, 0])
      assert.deepEqual(
        exporter.logs.filter((line) => line.includes("got no")),
        []
      )
    })
  )

  it.scopedLive("gives up at the close when the collector asks for more time than there is", () =>
    Effect.gen(function* () {
      const collector = yield* receiver(() => ({ status: 503, headers: { "retry-after": "3600" } }))
      const exporter = yield* exporterOf({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.url }, 50_000)
      exporter.span("lost")
      // Ends at once: a wait of the capped minute does not fit into the fifty seconds there are.
      yield* exporter.close
      assert.equal(collector.got.length, 1)
      assert.deepEqual([exporter.stats().sent, exporter.stats().dropped], [0, 1])
      assert.match(
        exporter.logs[0] ?? "",
        /^The collector at http:\/\/127\.0\.0\.1:\d+\/ got no traces: it answered with status 503\.$/
      )
    })
  )

  it.scopedLive("never sends a refused batch again, follows no redirect, and carries on with the next one", () =>
    Effect.gen(function* () {
      const target = yield* receiver()
      const collector = yield* receiver((index) =>
        index === 0
          ? { status: 400, body: "garbage" }
          : index === 1
            ? { status: 307, headers: { location: target.url } }
            : { status: 200, body: "this is no JSON" }
      )
      const exporter = yield* exporterOf({
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.url,
        OTEL_BSP_SCHEDULE_DELAY: "1"
      })
      for (const [index, name] of ["bad", "moved", "good"].entries()) {
        exporter.span(name)
        yield* collector.count(index + 1)
      }
      yield* exporter.close
      assert.equal(target.got.length, 0)
      assert.deepEqual(
        collector.got.map(({ body }) => tracesOf(body).map(({ name }) => name)),
        [["bad"], ["moved"], ["good"]]
      )
      assert.deepEqual([exporter.stats().sent, exporter.stats().dropped], [1, 2])
    })
  )

  it.scopedLive("neither fails nor waits when nobody listens: one warning, without the credentials", () =>
    Effect.gen(function* () {
      // A port that was free a moment ago.
      const port = yield* Effect.async<number>((resume) => {
        const server = net.createServer().listen(0, "127.0.0.1", () => {
          const address = server.address()
          server.close(() => resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0)))
        })
      })
      const logs: Array<string> = []
      const result = yield* Effect.as(call(Effect.succeed({})), "the program's own result").pipe(
        Effect.provide(
          withVariables(
            {
              OTEL_EXPORTER_OTLP_ENDPOINT: `http://me:s3cret-pass@127.0.0.1:${port}/?key=s3cret-pass`,
              OTEL_EXPORTER_OTLP_HEADERS: "x-api-key=s3cret-pass"
            },
            logs
          )
        )
      )
      assert.equal(result, "the program's own result")
      assert.deepEqual(logs.filter((line) => line.startsWith("WARN")).sort(), [
        `WARN The collector at http://127.0.0.1:${port}/v1/metrics got no metrics: it cannot be reached (ECONNREFUSED).`,
        `WARN The collector at http://127.0.0.1:${port}/v1/traces got no traces: it cannot be reached (ECONNREFUSED).`
      ])
      assert.notInclude(logs.join(), "s3cret")
    })
  )

  it.scopedLive("stops waiting for a collector that never answers when the flush bound is over", () =>
    Effect.gen(function* () {
      const collector = yield* receiver(() => "silent")
      const exporter = yield* exporterOf({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }, 50)
      exporter.span("lost")
      yield* exporter.close
      assert.equal(collector.got.length, 1)
      assert.deepEqual([exporter.stats().sent, exporter.stats().dropped, exporter.stats().queued], [0, 1, 0])
      exporter.span("after the end")
      assert.equal(exporter.stats().queued, 0)
    })
  )

  it.scopedLive("waits at the close for an answer that is on its way", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const server = net.createServer((socket) => {
        socket.on("error", () => undefined)
        socket.once("data", () => {
          Deferred.unsafeDone(gate, Effect.void)
          setImmediate(() => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"))
        })
      })
      yield* Effect.acquireRelease(
        Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => server.close())
      )
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      const exporter = yield* exporterOf({
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://127.0.0.1:${port}`,
        OTEL_BSP_SCHEDULE_DELAY: "1"
      })
      exporter.span("kept")
      yield* Deferred.await(gate)
      yield* exporter.close
      assert.deepEqual([exporter.stats().sent, exporter.stats().dropped], [1, 0])
    })
  )

  it.scopedLive("takes the status of an answer without end for the answer", () =>
    Effect.gen(function* () {
      const collector = yield* receiver(() => ({ status: 200, body: "x".repeat(1_000_000) }))
      const exporter = yield* exporterOf({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.url })
      exporter.span("kept")
      yield* exporter.close
      assert.equal(exporter.stats().sent, 1)
    })
  )

  it.scopedLive("sends differences only when asked for delta, and nothing while there is nothing", () =>
    Effect.gen(function* () {
      const collector = yield* receiver()
      const exporter = yield* exporterOf({
        OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: "delta",
        OTEL_METRIC_EXPORT_INTERVAL: "5"
      })
      for (const wanted of [1, 2]) {
        yield* Effect.withTracer(call(Effect.succeed({})), exporter.tracer)
        yield* collector.count(wanted)
      }
      yield* exporter.close
      assert.equal(collector.got.length, 2)
      const [first, second] = collector.got.map(({ body }) => metricsOf(body)[0]?.histogram)
      assert.deepEqual(
        [first?.aggregationTemporality, first?.dataPoints[0]?.count, second?.dataPoints[0]?.count],
        [1, "1", "1"]
      )
      assert.equal(second?.dataPoints[0]?.startTimeUnixNano, first?.dataPoints[0]?.timeUnixNano)
    })
  )

  it.scopedLive("gets the call's span from the pipeline when it stands among sigil's own layers", () =>
    Effect.gen(function* () {
      const collector = yield* receiver()
      yield* Effect.flatMap(Pipeline, (pipeline) =>
        pipeline.call(headless("test"), { server: "files", tool: "echo", args: { text: "an argument" } })
      ).pipe(
        Effect.provide(
          Layer.provideMerge(
            fakeRuntime({ servers: { files: fakeServer() } }),
            withVariables({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.url })
          )
        )
      )
      const spans = collector.got.flatMap(({ body }) => tracesOf(body))
      const called = spans.filter(({ name }) => name === "tools/call echo")
      assert.equal(called.length, 1)
      assert.equal(valuesOf(called[0]?.attributes ?? [])["sigil.server.name"], "files")
      assert.notInclude(JSON.stringify(collector.got), "an argument")
    })
  )

  it("waits twice as long each time, as long as it is told, never more than a minute, at most five times", () => {
    const down = { _tag: "Unreachable", code: "ECONNREFUSED" } as const
    assert.deepEqual(
      [0, 1, 2, 3, 4].map((attempt) => waitBefore(down, attempt)),
      [1_000, 2_000, 4_000, 8_000, undefined]
    )
    const refused = (status: number, afterMs?: number) =>
      ({ _tag: "Refused", status, retryable: status > 428, afterMs }) as const
    assert.deepEqual(
      [
        waitBefore(refused(429, 7_000), 0),
        waitBefore(refused(503), 1),
        waitBefore(refused(400, 1), 0),
        waitBefore(refused(503, 9e9), 0)
      ],
      [7_000, 2_000, undefined, 60_000]
    )
    assert.deepEqual(
      [
        retryAfterMs("3", 0),
        retryAfterMs("Thu, 01 Jan 1970 00:00:10 GMT", 4_000),
        retryAfterMs("Thu, 01 Jan 1970 00:00:01 GMT", 4_000),
        retryAfterMs("soon", 0),
        retryAfterMs(undefined, 0)
      ],
      [3_000, 6_000, 0, undefined, undefined]
    )
  })
})

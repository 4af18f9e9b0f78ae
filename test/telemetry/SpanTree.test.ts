import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import * as Context from "effect/Context"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Tracer from "effect/Tracer"
import * as Random from "../../src/platform/Random.ts"
import { make, MAX_ENTRIES, MAX_TEXT, type RecordedSpan } from "../../src/telemetry/RecordingTracer.ts"
import * as SpanTree from "../../src/telemetry/SpanTree.ts"

/** A recorder whose ids count upwards. */
const recorder = (remote?: Tracer.ExternalSpan) => {
  const ended: Array<RecordedSpan> = []
  let next = 0
  const tracer = make({
    uuid: () => `00000000-0000-4000-8000-${String(++next).padStart(12, "0")}`,
    onEnd: (span) => void ended.push(span),
    ...(remote === undefined ? {} : { remote })
  })
  const open = (name: string, parent?: Tracer.AnySpan, at = 0n): Tracer.Span =>
    tracer.span(name, Option.fromNullable(parent), Context.empty(), [], at, "internal")
  return { ended, open }
}

describe("SpanTree", () => {
  it("prints children under their parents in the order of starts, one line each, escaped", () => {
    const { ended, open } = recorder()
    const root = open("root", undefined, 0n)
    const late = open("late\u001b[2J\nx", root, 5_000_000n)
    const early = open("early", root, 1_000_000n)
    const leaf = open("leaf", early, 2_000_000n)
    leaf.attribute("text", `a\n${"b".repeat(200)}`)
    leaf.attribute("object", { secret: "hidden" })
    late.attribute("error.type", "SIGIL_DENIED")
    leaf.end(3_500_000n, Exit.void)
    late.end(6_000_000n, Exit.void)
    early.end(4_000_000n, Exit.void)
    root.end(2_000_000_000n, Exit.void)
    const lines = SpanTree.render(ended)
    assert.deepEqual(lines, [
      "root  2.00 s",
      "├─ early  3.0 ms",
      `│  └─ leaf  1.5 ms  text=a\\n${"b".repeat(76)}… object=[object]`,
      "└─ late\\u001b[2J\\nx  1.0 ms  failed  error.type=SIGIL_DENIED"
    ])
    assert.deepEqual(SpanTree.render(ended, { durations: false, attributes: [] })[0], "root")
  })

  it("prints every span exactly once, whatever the shape, and never deeper than the stack", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 60 }), (parents) => {
        const { ended, open } = recorder()
        const spans: Array<Tracer.Span> = []
        for (const [index, pick] of parents.entries())
          spans.push(open(`s${index}`, index === 0 ? undefined : spans[pick % index]))
        for (const span of spans) span.end(1n, Exit.void)
        const names = SpanTree.render(ended, { durations: false, attributes: [] }).map((line) =>
          line.replace(/^.*─ /, "")
        )
        assert.deepEqual([...names].sort(), spans.map(({ name }) => name).sort())
      })
    )
    const { ended, open } = recorder()
    let last: Tracer.Span | undefined
    for (let index = 0; index < 5_000; index += 1) {
      last = open("deep", last)
      last.end(1n, Exit.void)
    }
    assert.equal(SpanTree.render(ended).length, 5_000)
  })

  it("bounds a span: long texts are cut, a flood of attributes is counted, an end counts once", () => {
    const { ended, open } = recorder()
    const span = open("n".repeat(5_000))
    for (let index = 0; index < 200; index += 1) {
      span.attribute(`k${index}`, "v".repeat(5_000))
      span.event(`e${index}`, 0n)
    }
    span.attribute("k0", "again")
    span.end(1n, Exit.void)
    span.end(9n, Exit.void)
    assert.equal(ended.length, 1)
    const one = ended[0]
    assert.deepEqual(
      [
        one?.name.length,
        one?.attributes.size,
        one?.droppedAttributes,
        one?.events.length,
        one?.droppedEvents,
        one?.endTime
      ],
      [MAX_TEXT, MAX_ENTRIES, 200 - MAX_ENTRIES, MAX_ENTRIES, 200 - MAX_ENTRIES, 1n]
    )
    assert.equal(one?.attributes.get("k0"), "again")
    assert.equal(String(one?.attributes.get("k1")).length, MAX_TEXT)
  })

  it("makes W3C ids, keeps the trace of a parent, and hands on nothing that was not sampled", () => {
    const { ended, open } = recorder()
    const root = open("root")
    const child = open("child", root)
    assert.match(`${root.traceId} ${root.spanId}`, /^[0-9a-f]{32} [0-9a-f]{16}$/)
    assert.equal(child.traceId, root.traceId)
    assert.notEqual(child.spanId, root.spanId)
    const outside: Tracer.ExternalSpan = {
      _tag: "ExternalSpan",
      traceId: "a".repeat(32),
      spanId: "b".repeat(16),
      sampled: false,
      context: Context.empty()
    }
    const unsampled = recorder(outside)
    const ours = unsampled.open("ours")
    assert.deepEqual([ours.traceId, ours.sampled, Option.isSome(ours.parent)], ["a".repeat(32), false, true])
    unsampled.open("inner", ours).end(1n, Exit.void)
    ours.end(1n, Exit.void)
    assert.deepEqual(unsampled.ended, [])
    child.end(1n, Exit.void)
    assert.equal(ended.length, 1)
  })

  it.effect("collects what ends, in that order", () =>
    Effect.gen(function* () {
      const collector = yield* SpanTree.collector
      yield* Effect.withTracer(Effect.withSpan(Effect.withSpan(Effect.void, "inner"), "outer"), collector.tracer)
      assert.deepEqual(
        collector.spans().map(({ name }) => name),
        ["inner", "outer"]
      )
    }).pipe(Effect.provide(Random.layerTest))
  )
})

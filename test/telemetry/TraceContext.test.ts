import * as Context from "effect/Context"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import * as Baggage from "../../src/telemetry/Baggage.ts"
import { make } from "../../src/telemetry/RecordingTracer.ts"
import * as TraceContext from "../../src/telemetry/TraceContext.ts"

const hex = (length: number): fc.Arbitrary<string> =>
  fc
    .string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: length, maxLength: length })
    .filter((text) => /[^0]/.test(text))
const parent: fc.Arbitrary<TraceContext.TraceParent> = fc.record({
  traceId: hex(32),
  spanId: hex(16),
  sampled: fc.boolean()
})
const stateKey = fc.oneof(
  fc.stringMatching(/^[a-z][a-z0-9_\-*/]{0,20}$/),
  fc.stringMatching(/^[a-z0-9][a-z0-9_\-*/]{0,20}@[a-z][a-z0-9_\-*/]{0,13}$/)
)
const stateValue = fc.stringMatching(/^[ -+\--<>-~]{0,20}[!-+\--<>-~]$/).filter((value) => !/^[ \t]/.test(value))
const state = fc.uniqueArray(fc.record({ key: stateKey, value: stateValue }), {
  maxLength: 10,
  selector: ({ key }) => key
})
const example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

describe("TraceContext", () => {
  it("prints what it parses back, for every traceparent", () => {
    fc.assert(
      fc.property(parent, (ids) => {
        const text = TraceContext.printParent(ids)
        assert.match(text, /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/)
        assert.deepEqual(TraceContext.parseParent(text), ids)
      })
    )
  })

  it("refuses every traceparent that the specification calls invalid", () => {
    for (const text of [
      "",
      example.toUpperCase(),
      `ff${example.slice(2)}`,
      `${example}-00`,
      ` ${example}`,
      example.slice(0, -1),
      example.replace("00f067aa0ba902b7", "0000000000000000"),
      example.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0".repeat(32)),
      example.replaceAll("-", "_"),
      `01${example.slice(2)}extra`
    ]) {
      assert.isUndefined(TraceContext.parseParent(text), text)
    }
    assert.deepEqual(TraceContext.parseParent(`cc${example.slice(2)}-what-comes-later`)?.spanId, "00f067aa0ba902b7")
  })

  it("never throws and never lets an invalid text through, whatever comes", () => {
    const part = fc.constantFrom(
      "00",
      "-",
      "a".repeat(32),
      "b".repeat(16),
      "01",
      "=",
      ",",
      " ",
      "k",
      "%zz",
      ";",
      "\n",
      "é"
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(part).map((parts) => parts.join(""))
        ),
        (text) => {
          const ids = TraceContext.parseParent(text)
          if (ids !== undefined) assert.isTrue(text.startsWith(TraceContext.printParent(ids).slice(2, 52), 2))
          const members = TraceContext.parseState(text)
          assert.deepEqual(TraceContext.parseState(TraceContext.printState(members)), [...members])
          const baggage = Baggage.parse(text)
          assert.deepEqual(Baggage.parse(Baggage.print(baggage)), [...baggage])
        }
      )
    )
  })

  it("keeps a tracestate through print and parse, and drops it whole when one member is wrong", () => {
    fc.assert(
      fc.property(state, (members) => {
        const text = TraceContext.printState(members)
        fc.pre(members.reduce((sum, { key, value }) => sum + key.length + value.length + 2, 0) < 512)
        assert.deepEqual(TraceContext.parseState(text), members)
      })
    )
    assert.deepEqual(TraceContext.parseState("rojo=1,,\t congo=t61 "), [
      { key: "rojo", value: "1" },
      { key: "congo", value: "t61" }
    ])
    for (const text of ["a=1,b", "a=1,a=2", "A=1", "a=1,b=é", "a==", `a=${"x".repeat(257)}`]) {
      assert.deepEqual(TraceContext.parseState(text), [], text)
    }
    const many = Array.from({ length: 33 }, (_, n) => `k${n}=1`).join(",")
    assert.deepEqual(TraceContext.parseState(many), [])
  })

  it("prints at most 512 characters of tracestate: long members go first, then the last", () => {
    const members = [
      { key: "first", value: "1" },
      { key: "long", value: "x".repeat(200) },
      ...Array.from({ length: 6 }, (_, n) => ({ key: `m${n}`, value: "y".repeat(70) }))
    ]
    const kept = TraceContext.parseState(TraceContext.printState(members)).map(({ key }) => key)
    assert.deepEqual(kept, ["first", "m0", "m1", "m2", "m3", "m4", "m5"])
    const short = Array.from({ length: 30 }, (_, n) => ({ key: `m${n}`, value: "y".repeat(40) }))
    const printed = TraceContext.printState(short)
    assert.isAtMost(printed.length, TraceContext.MAX_STATE_LENGTH)
    assert.equal(TraceContext.parseState(printed)[0]?.key, "m0")
  })

  it("carries a remote context through a span of ours into _meta, and leaves other members of _meta alone", () => {
    const meta = { traceparent: example, tracestate: "rojo=1", baggage: "user=alice,node=DF%2028;zone" }
    const remote = TraceContext.ofMeta(meta)
    assert.isDefined(remote)
    const tracer = make({
      uuid: () => "01234567-89ab-4def-8123-456789abcdef",
      onEnd: () => undefined,
      remote: TraceContext.toSpan(remote)
    })
    const outer = tracer.span("outer", Option.none(), Context.empty(), [], 0n, "internal")
    const inner = tracer.span("inner", Option.some(outer), Context.empty(), [], 0n, "client")
    const carried = TraceContext.toMeta(inner)
    assert.deepEqual(carried, {
      traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-8123456789abcdef-01",
      tracestate: "rojo=1",
      baggage: "user=alice,node=DF%2028;zone"
    })
    assert.deepEqual(TraceContext.inject({ name: "x", _meta: { progressToken: 3 } }, carried), {
      name: "x",
      _meta: { progressToken: 3, ...carried }
    })
    const params = { name: "x" }
    assert.strictEqual(TraceContext.inject(params, undefined), params)
  })

  it("takes no context without a valid traceparent, and carries none for ids of another form", () => {
    assert.isUndefined(TraceContext.ofMeta({ tracestate: "rojo=1", baggage: "a=b" }))
    assert.isUndefined(TraceContext.ofMeta(null))
    assert.isUndefined(TraceContext.ofMeta({ traceparent: 5 }))
    assert.isUndefined(TraceContext.toMeta(Tracer.externalSpan({ traceId: "1", spanId: "2" })))
    assert.deepEqual(TraceContext.ofEnvironment((name) => ({ TRACEPARENT: example })[name])?.parent.sampled, true)
    assert.isUndefined(TraceContext.ofEnvironment(() => undefined))
  })
})

describe("Baggage", () => {
  const member: fc.Arbitrary<Baggage.Member> = fc.record({
    key: fc.stringMatching(/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,12}$/),
    value: fc.string({ unit: "grapheme", maxLength: 12 }),
    properties: fc.constantFrom("", "p", "p=1;q")
  })

  it("keeps every value through print and parse, and prints only what may travel", () => {
    fc.assert(
      fc.property(fc.array(member, { maxLength: 20 }), (members) => {
        const text = Baggage.print(members)
        assert.match(text, /^[\x21-\x7e]*$/)
        assert.deepEqual(Baggage.parse(text), members)
      })
    )
    const percent = [{ key: "k", value: '100%41,;\\" é', properties: "" }]
    assert.deepEqual(Baggage.parse(Baggage.print(percent)), percent)
  })

  it("leaves out what is not valid and keeps the rest, within the limits", () => {
    assert.deepEqual(
      Baggage.parse(' a = 1 ; p = x , b , "c"=2, d=%E4%B8%96,e=%ff').map(({ key, value }) => [key, value]),
      [
        ["a", "1"],
        ["d", "世"],
        ["e", "\ufffd"]
      ]
    )
    assert.equal(Baggage.parse(Array.from({ length: 100 }, (_, n) => `k${n}=1`).join(",")).length, Baggage.MAX_MEMBERS)
    const big = Array.from({ length: 20 }, (_, n) => ({ key: `k${n}`, value: "x".repeat(1_000), properties: "" }))
    assert.isAtMost(Baggage.print(big).length, Baggage.MAX_BYTES)
    assert.isAbove(Baggage.print(big).length, 7_000)
  })
})

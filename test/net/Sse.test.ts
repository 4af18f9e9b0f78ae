import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { makeSseParser, type SseEvent, type SseFault, type SseLimits } from "../../src/net/Sse.ts"

const run = (
  chunks: ReadonlyArray<Uint8Array>,
  limits: SseLimits = { maxEventBytes: 1000 }
): { readonly events: Array<SseEvent>; readonly retries: Array<number>; readonly fault: SseFault | undefined } => {
  const events: Array<SseEvent> = []
  const retries: Array<number> = []
  const parser = makeSseParser({ onEvent: (event) => events.push(event), onRetry: (ms) => retries.push(ms) }, limits)
  for (const chunk of chunks) {
    const fault = parser.feed(chunk)
    if (fault !== undefined) return { events, retries, fault }
  }
  return { events, retries, fault: parser.end() }
}
const bytes = (text: string): Uint8Array => Buffer.from(text)
const pieces = (whole: Uint8Array, size: number): Array<Uint8Array> => {
  const all: Array<Uint8Array> = []
  for (let at = 0; at < whole.length; at += size) all.push(whole.subarray(at, at + size))
  return all
}

describe("server-sent events", () => {
  it("are the same however the bytes are cut, with every line end", () => {
    const line = fc.string({ unit: "grapheme" }).map((text) => text.replaceAll(/[\r\n\0\ufeff]/g, ""))
    const event = fc.record({ id: fc.constantFrom("", "7"), data: fc.array(line, { minLength: 1, maxLength: 3 }) })
    const newlines = fc.constantFrom("\n", "\r\n", "\r")
    fc.assert(
      fc.property(fc.array(event), newlines, fc.integer({ min: 1, max: 9 }), (events, newline, size) => {
        const text = events
          .map(({ id, data }) =>
            [...(id === "" ? [] : [`id: ${id}`]), ...data.map((one) => `data: ${one}`), ": note", "", ""].join(newline)
          )
          .join("")
        const seen = run(pieces(bytes(text), size), { maxEventBytes: 10_000 })
        assert.isUndefined(seen.fault)
        assert.deepStrictEqual(
          seen.events.map(({ data }) => data),
          events.map(({ data }) => data.join("\n"))
        )
      })
    )
  })

  it("are given out as soon as they are complete", () => {
    for (const newline of ["\n", "\r", "\r\n"]) {
      const events: Array<SseEvent> = []
      const parser = makeSseParser({ onEvent: (event) => events.push(event) }, { maxEventBytes: 100 })
      parser.feed(bytes(`data: a${newline}${newline}`))
      assert.strictEqual(events.length, 1, JSON.stringify(newline))
      parser.feed(bytes(`data: b${newline}${newline}`))
      assert.deepStrictEqual(
        events.map(({ data }) => data),
        ["a", "b"]
      )
    }
  })

  it("say a cut inside an event, a line or a character", () => {
    for (const text of ["data: a", "data: a\n", "data: a\n\ndata: b\n", "id: 1\n", "data: a\n\nd"])
      assert.strictEqual(run([bytes(text)]).fault, "cut", text)
    for (const text of ["", "\n", "data: a\n\n", "data: a\r\n\r\n", "data: a\r\r", ": bye\n", "data: a\n\n: bye"])
      assert.isUndefined(run([bytes(text)]).fault, text)
    const half = bytes("data: a\n\n: ä").subarray(0, -1)
    assert.strictEqual(run([half]).fault, "cut")
  })

  it("are refused when they are no UTF-8", () => {
    assert.strictEqual(run([Uint8Array.from([0x64, 0xff, 0x0a])]).fault, "invalid_utf8")
  })

  it("are bounded in size and number, fragments and comments included", () => {
    assert.strictEqual(run([bytes(`data: ${"a".repeat(1000)}\n\n`)]).fault, "event_too_large")
    assert.isUndefined(run([bytes(`data: ${"a".repeat(900)}\n\n`.repeat(5))]).fault)
    const fragments = Array.from({ length: 500 }, () => bytes("data: a\n"))
    assert.strictEqual(run(fragments).fault, "event_too_large")
    assert.strictEqual(run(Array.from({ length: 500 }, () => bytes(": ping\n"))).fault, "event_too_large")
    assert.strictEqual(run(Array.from({ length: 500 }, () => bytes(": ping\n\n"))).fault, "event_too_large")
    assert.isUndefined(run(Array.from({ length: 500 }, () => bytes(": ping\n\ndata: a\n\n"))).fault)
    const counted = run([bytes("data: 1\n\ndata: 2\n\ndata: 3\n\n")], { maxEventBytes: 100, maxEvents: 2 })
    assert.strictEqual(counted.fault, "too_many_events")
    assert.strictEqual(counted.events.length, 2)
  })

  it("give id, name and retry", () => {
    const seen = run([bytes("retry: 1500\nid: 5\nevent: message\ndata: x\n\n")])
    assert.deepStrictEqual(seen.retries, [1500])
    assert.deepStrictEqual(seen.events, [{ id: "5", event: "message", data: "x" }])
  })
})

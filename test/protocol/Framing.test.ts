import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { isContentLengthHeader, makeSplitter } from "../../src/protocol/Framing.ts"

const collect = (limit?: number) => {
  const frames: Array<string> = []
  const splitter = makeSplitter((text) => {
    frames.push(text)
    return true
  }, limit)
  return { frames, splitter }
}

describe("Framing", () => {
  it("gives the same frames however the bytes are cut", () => {
    const line = fc.string({ unit: "grapheme" }).map((text) => JSON.stringify({ text }))
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 7 })),
        fc.boolean(),
        (lines, cuts, crlf) => {
          const bytes = Buffer.from(lines.map((one) => `${one}${crlf ? "\r\n" : "\n"}`).join(""))
          const { frames, splitter } = collect()
          let at = 0
          for (let turn = 0; at < bytes.length; turn += 1) {
            const size = cuts[turn % Math.max(1, cuts.length)] ?? 3
            assert.isUndefined(splitter.push(bytes.subarray(at, at + size)))
            at += size
          }
          assert.isUndefined(splitter.end())
          assert.deepEqual(frames, lines)
        }
      )
    )
  })

  it("skips blank lines", () => {
    const { frames, splitter } = collect()
    splitter.push(Buffer.from("\n\r\n  \n{}\n"))
    assert.deepEqual(frames, ["{}"])
  })

  it("accepts a body of exactly the limit, with LF and with CRLF, and refuses one byte more", () => {
    for (const end of ["\n", "\r\n"]) {
      const { frames, splitter } = collect(10)
      assert.isUndefined(splitter.push(Buffer.from(`${"x".repeat(10)}${end}`)))
      assert.deepEqual(frames, ["x".repeat(10)])
      assert.equal(collect(10).splitter.push(Buffer.from(`${"x".repeat(11)}${end}`)), "frame_too_large")
    }
  })

  it("refuses a frame that never ends before its newline is seen", () => {
    const { splitter } = collect(10)
    assert.isUndefined(splitter.push(Buffer.from("x".repeat(8))))
    assert.equal(splitter.push(Buffer.from("x".repeat(8))), "frame_too_large")
  })

  it("names bytes that are not UTF-8 and a stream that ends inside a message", () => {
    assert.equal(collect().splitter.push(Buffer.from([0x22, 0xff, 0x22, 0x0a])), "invalid_utf8")
    const { splitter } = collect()
    splitter.push(Buffer.from("{"))
    assert.equal(splitter.end(), "missing_newline")
  })

  it("recognises Content-Length framing", () => {
    assert.isTrue(isContentLengthHeader("Content-Length: 120"))
    assert.isFalse(isContentLengthHeader('{"content-length": 1}'))
  })
})

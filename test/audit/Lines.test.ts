import * as fc from "fast-check"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { backwardLines, type FileLine, forwardLines, MAX_LINE_BYTES } from "../../src/audit/Lines.ts"

let at = ""
beforeAll(() => {
  at = fs.mkdtempSync(path.join(os.tmpdir(), "sigil-lines-"))
})
afterAll(() => fs.rmSync(at, { recursive: true, force: true }))

const read = (text: string, lines: (fd: number, size: number) => Iterable<FileLine>): ReadonlyArray<FileLine> => {
  const file = path.join(at, "f")
  fs.writeFileSync(file, text)
  const fd = fs.openSync(file, "r")
  try {
    return [...lines(fd, fs.statSync(file).size)]
  } finally {
    fs.closeSync(fd)
  }
}
const texts = (lines: ReadonlyArray<FileLine>): ReadonlyArray<string> => lines.map(({ bytes }) => bytes.toString())

describe("lines of a file", () => {
  it("are the same in both directions, however long they are", () => {
    // Around the sizes of the chunks, too.
    const line = fc.oneof(
      fc.string({ maxLength: 5 }).map((text) => text.replaceAll("\n", "")),
      fc.constantFrom(4_094, 4_095, 4_096, 262_143, 262_144, 262_145).map((length) => "x".repeat(length))
    )
    fc.assert(
      fc.property(fc.array(line, { maxLength: 8 }), fc.constantFrom("", "end"), (lines, rest) => {
        const text = lines.map((one) => `${one}\n`).join("") + rest
        const forward = read(text, forwardLines)
        const backward = read(text, backwardLines)
        assert.deepEqual(texts(forward), rest === "" ? lines : [...lines, rest])
        assert.deepEqual(backward.toReversed(), forward)
        for (const [index, { complete, start }] of forward.entries()) {
          assert.equal(complete, index < lines.length)
          assert.equal(
            start,
            Buffer.byteLength(
              lines
                .slice(0, index)
                .map((one) => `${one}\n`)
                .join("")
            )
          )
        }
      }),
      { numRuns: 60 }
    )
  })

  it("are cut where they are too long to be a record", () => {
    const text = `${"x".repeat(MAX_LINE_BYTES + 10)}\nb\n`
    for (const lines of [read(text, forwardLines), read(text, backwardLines).toReversed()]) {
      assert.deepEqual(
        lines.map(({ bytes }) => bytes.length),
        [MAX_LINE_BYTES, 1]
      )
    }
  })

  it("begin where one asks", () => {
    assert.deepEqual(texts(read("a\nb\nc\n", (fd, size) => forwardLines(fd, size, 2))), ["b", "c"])
  })
})

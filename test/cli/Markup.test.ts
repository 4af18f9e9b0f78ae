import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { bold, red, render, table, widthOf, wrap } from "../../src/cli/Markup.ts"

const plain = (rows: Parameters<typeof table>[0], width?: number) =>
  table(rows, width).map((line) => render(line, false))

describe("Markup", () => {
  it("lets no control character reach the terminal", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.boolean(), (text, colour) => {
        const shown = render([text, red(text)], colour)
          .replaceAll("\u001b[31m", "")
          .replaceAll("\u001b[0m", "")
        // eslint-disable-next-line no-control-regex
        assert.notMatch(shown, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/)
      })
    )
  })

  it("colours only where asked", () => {
    assert.equal(render(["a ", bold("b")], true), "a \u001b[1mb\u001b[0m")
    assert.equal(render(["a ", bold("b")], false), "a b")
  })

  it("aligns columns and leaves no space at the end", () => {
    assert.deepEqual(
      plain([
        ["NAME", "STATE"],
        ["a", bold("ready")],
        ["longer", ""]
      ]),
      ["NAME    STATE", "a       ready", "longer"]
    )
  })

  it("clips the last column to the width, and nothing without one", () => {
    assert.deepEqual(plain([["ab", ["one ", red("two three")]]], 14), ["ab  one two t…"])
    assert.deepEqual(plain([["ab", "one two three"]]), ["ab  one two three"])
  })

  it("keeps a row on one line whatever a cell holds", () => {
    assert.deepEqual(
      plain([
        ["a\nb", "c\u001b[1A"],
        ["d", "e"]
      ]),
      ["a\\nb  c\\u001b[1A", "d     e"]
    )
  })

  it("never makes a clipped row wider than the terminal", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string({ maxLength: 9 }), fc.string())), (rows) => {
        for (const line of table(rows, 80)) assert.isAtMost(widthOf(line), 80)
      })
    )
  })

  it("wraps at spaces", () => {
    assert.deepEqual(wrap("one two three", 7), ["one two", "three"])
    assert.deepEqual(wrap("extraordinary", 4), ["extraordinary"])
  })
})

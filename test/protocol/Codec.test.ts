import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import * as Codec from "../../src/protocol/Codec.ts"

describe("Codec", () => {
  it("keeps the digits of numbers that a double cannot hold", () => {
    for (const number of [
      "12345678901234567890",
      "-98765432109876543210",
      "0.1234567890123456789",
      "1e400",
      "1E5",
      "123456789012345678901234567890.5"
    ]) {
      const text = `{"a":${number},"b":[${number}]}`
      assert.equal(Codec.stringify(Codec.parse(text)), text)
    }
  })

  it("gives what JSON.parse gives for every value whose numbers are plain", () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const text = JSON.stringify(value)
        assert.deepEqual(JSON.parse(Codec.stringify(Codec.parse(text))), JSON.parse(text))
      })
    )
  })

  it("lets the last of two equal keys win on both paths", () => {
    assert.equal(Codec.stringify(Codec.parse('{"a":1,"a":2}')), '{"a":2}')
    assert.equal(Codec.stringify(Codec.parse('{"a":1,"a":12345678901234567890}')), '{"a":12345678901234567890}')
  })

  it("keeps a `__proto__` key as data", () => {
    for (const number of ["1", "12345678901234567890"]) {
      const text = `{"__proto__":{"x":${number}}}`
      assert.equal(Codec.stringify(Codec.parse(text)), text)
    }
  })

  it("refuses what is not JSON", () => {
    for (const text of ["", "{", "NaN", "12345678901234567890,", "{'a':1}"]) assert.throws(() => Codec.parse(text))
  })

  it("measures depth without recursion", () => {
    const deep = Codec.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`)
    assert.isTrue(Codec.deeperThan(deep, 1_000))
    assert.isFalse(Codec.deeperThan([[[]]], 3))
    assert.isTrue(Codec.deeperThan([[[]]], 2))
  })
})

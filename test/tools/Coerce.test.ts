import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as fc from "fast-check"
import { LosslessNumber } from "lossless-json"
import type { Json, JsonObject } from "../../src/base/Json.ts"
import { coerce, readWord } from "../../src/tools/Coerce.ts"

const text = (key: string, value: string, schema: JsonObject) => coerce({ key, text: value, json: false }, schema)
const value = (property: Json, given: string): Json =>
  Either.getOrThrowWith(text("a", given, { properties: { a: property } }), ({ expectation }) => expectation)

describe("readWord", () => {
  it("knows the four forms", () => {
    assert.deepEqual(readWord("a=b"), { _tag: "Text", key: "a", text: "b" })
    assert.deepEqual(readWord("a:=1"), { _tag: "Json", key: "a", text: "1" })
    assert.deepEqual(readWord("a=@f"), { _tag: "File", key: "a", file: "f" })
    assert.deepEqual(readWord("a=@artifact:h"), { _tag: "Artifact", key: "a", handle: "h" })
  })

  it("splits at the first equals sign and nowhere else", () => {
    assert.deepEqual(readWord("url=http://x/?a:=b"), { _tag: "Text", key: "url", text: "http://x/?a:=b" })
    assert.deepEqual(readWord("a.b[0]=c"), { _tag: "Text", key: "a.b[0]", text: "c" })
    assert.deepEqual(readWord("a="), { _tag: "Text", key: "a", text: "" })
    assert.deepEqual(readWord("a=@"), { _tag: "Text", key: "a", text: "@" })
    assert.isUndefined(readWord("=b"))
    assert.isUndefined(readWord(":=b"))
    assert.isUndefined(readWord("plain"))
  })

  it("gives back any key and text", () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1 }).filter((key) => !/=|:$/.test(key)),
        fc.string().filter((one) => !one.startsWith("@")),
        (key, one) => {
          assert.deepEqual(readWord(`${key}=${one}`), { _tag: "Text", key, text: one })
        }
      )
    )
  })
})

describe("coerce", () => {
  it("follows the declared type", () => {
    assert.equal(value({ type: "integer" }, "12"), 12)
    assert.equal(value({ type: "number" }, "-1.5"), -1.5)
    assert.equal(value({ type: "boolean" }, "true"), true)
    assert.equal(value({ type: "null" }, "null"), null)
    assert.deepEqual(value({ type: "array" }, '["x",1]'), ["x", 1])
    assert.deepEqual(value({ type: "object" }, '{"__proto__":1}'), JSON.parse('{"__proto__":1}'))
    assert.equal(value({ type: "string" }, "12"), "12")
    assert.equal(value({}, "12"), "12")
  })

  it("keeps text that is not of the declared type, for validation to refuse", () => {
    for (const odd of ["0x10", " 1", "1 ", "", "01", "Infinity", "1_0"])
      assert.equal(value({ type: "integer" }, odd), odd)
    assert.equal(value({ type: "boolean" }, "yes"), "yes")
    assert.equal(value({ type: "array" }, "[broken"), "[broken")
  })

  it("keeps the digits of large numbers", () => {
    const large = value({ type: "integer" }, "12345678901234567890")
    assert.instanceOf(large, LosslessNumber)
    assert.equal(String(large), "12345678901234567890")
  })

  it("looks through references, alternatives and literals", () => {
    const schema = {
      properties: {
        a: { $ref: "#/$defs/n" },
        b: { anyOf: [{ type: "integer" }, { type: "null" }] },
        c: { enum: [1, 2] },
        d: { const: true },
        e: { allOf: [{ type: "number" }] }
      },
      $defs: { n: { type: "integer" } }
    }
    const all = (["a", "b", "c", "d", "e"] as const).map((key) =>
      Either.getOrThrow(text(key, key === "d" ? "true" : "1", schema))
    )
    assert.deepEqual(all, [1, 1, 1, true, 1])
    assert.equal(Either.getOrThrow(text("b", "null", schema)), null)
    assert.equal(value({ anyOf: [{ type: "integer" }, { type: "string" }] }, "1"), "1")
  })

  it("finds properties behind the root's reference and its alternatives", () => {
    const schema = {
      $ref: "#/definitions/A",
      definitions: {
        A: { oneOf: [{ properties: { n: { type: "integer" } } }, { properties: { s: { type: "string" } } }] }
      }
    }
    assert.equal(Either.getOrThrow(text("n", "1", schema)), 1)
    assert.equal(Either.getOrThrow(text("s", "1", schema)), "1")
  })

  it("ends on schemas that refer in circles and in breadth", () => {
    const loop = {
      properties: { a: { $ref: "#/$defs/x" } },
      $defs: { x: { anyOf: [{ $ref: "#/$defs/x" }, { $ref: "#/$defs/x" }] } }
    }
    assert.equal(Either.getOrThrow(text("a", "1", loop)), "1")
    const wide = (next: string) => ({ anyOf: Array.from({ length: 2_000 }, () => ({ $ref: `#/$defs/${next}` })) })
    const broad = { properties: { a: wide("x") }, $defs: { x: wide("y"), y: wide("z"), z: wide("x") } }
    assert.equal(Either.getOrThrow(text("a", "1", broad)), "1")
  })

  it("suggests near names for unknown keys", () => {
    const schema = { properties: { path: {}, pattern: {} }, additionalProperties: false }
    const found = text("pth", "x", schema)
    assert.deepEqual(Either.isLeft(found) && found.left, {
      key: "pth",
      expectation: "is not a known key; known: path, pattern",
      candidates: ["path"]
    })
    assert.isTrue(Either.isLeft(text("pth", "x", { properties: { path: {} } })))
    assert.isTrue(Either.isRight(text("pth", "x", { properties: { path: {} }, additionalProperties: true })))
    assert.isTrue(Either.isRight(text("anything", "x", { type: "object" })))
    assert.isTrue(Either.isLeft(text("a", "x", { properties: {}, additionalProperties: false })))
  })

  it("never takes a property of a prototype for one of the schema", () => {
    const schema = { properties: {}, additionalProperties: false }
    for (const key of ["__proto__", "constructor", "toString"])
      assert.isTrue(Either.isLeft(text(key, "x", schema)), key)
    const own = JSON.parse('{"properties":{"__proto__":{"type":"integer"}}}') as JsonObject
    assert.equal(Either.getOrThrow(text("__proto__", "3", own)), 3)
  })

  it("takes JSON as it stands and says when it is none", () => {
    assert.deepEqual(Either.getOrThrow(coerce({ key: "a", text: '{"b":[1]}', json: true }, {})), { b: [1] })
    assert.isTrue(Either.isLeft(coerce({ key: "a", text: "plain", json: true }, {})))
  })
})

/** Arguments in headers: which annotations hold, and that every value comes back out of its header as it went in. */
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import type { Json, JsonObject } from "../../src/base/Json.ts"
import { parse } from "../../src/protocol/Codec.ts"
import {
  encodeHeaderValue,
  isAnnotationFault,
  paramHeadersOf,
  paramHeaderValues,
  unsendable
} from "../../src/protocol/ParamHeaders.ts"

const decode = (value: string): string => {
  const inner = /^=\?base64\?(.*)\?=$/.exec(value)?.[1]
  return inner === undefined ? value : Buffer.from(inner, "base64").toString()
}
const schema = (properties: JsonObject): JsonObject => ({ type: "object", properties })
const string = (header: Json): JsonObject => ({ type: "string", "x-mcp-header": header })

describe("a header value", () => {
  it("comes back as it was, whatever it holds", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        // A lone surrogate is no UTF-8; JSON would not carry it either.
        fc.pre(Buffer.from(text).toString() === text)
        const value = encodeHeaderValue(text)
        assert.equal(decode(value), text)
        assert.match(value, /^[\x20-\x7e\t]*$/)
        assert.equal(value.trim(), value)
      })
    )
  })

  it("is plain where it can be, and never mistaken for an encoded one", () => {
    for (const plain of ["", "us-east1", "a b", "a\tb", "=?", "=?base64?"])
      assert.equal(encodeHeaderValue(plain), plain)
    for (const odd of [" a", "a ", "\n", "é", "a\r\nb", "=?base64?YQ==?=", "=?BASE64?YQ==?="]) {
      assert.notEqual(encodeHeaderValue(odd), odd)
      assert.equal(decode(encodeHeaderValue(odd)), odd)
    }
  })
})

describe("annotations", () => {
  const faults: ReadonlyArray<readonly [what: string, schema: JsonObject, path: string]> = [
    ["an empty name", schema({ a: string("") }), "/properties/a/x-mcp-header"],
    ["a space", schema({ a: string("a b") }), "/properties/a/x-mcp-header"],
    ["a colon", schema({ a: string("a:b") }), "/properties/a/x-mcp-header"],
    ["a name that is no text", schema({ a: string(5) }), "/properties/a/x-mcp-header"],
    ["a name that is not ASCII", schema({ a: string("é") }), "/properties/a/x-mcp-header"],
    ["a number", schema({ a: { type: "number", "x-mcp-header": "A" } }), "/properties/a/x-mcp-header"],
    ["an object", schema({ a: { type: "object", "x-mcp-header": "A" } }), "/properties/a/x-mcp-header"],
    ["several types", schema({ a: { type: ["string", "null"], "x-mcp-header": "A" } }), "/properties/a/x-mcp-header"],
    ["a name twice by case", schema({ a: string("Key"), b: string("KEY") }), "/properties/b/x-mcp-header"],
    ["an item of a list", schema({ a: { type: "array", items: string("A") } }), "/properties/a/items/x-mcp-header"],
    ["a branch", { anyOf: [schema({ a: string("A") })] }, "/anyOf/properties/a/x-mcp-header"],
    ["a definition", { $defs: { d: schema({ a: string("A") }) } }, "/$defs/d/properties/a/x-mcp-header"],
    ["the root", { type: "string", "x-mcp-header": "A" }, "/x-mcp-header"]
  ]
  for (const [what, given, path] of faults)
    it(`refuse ${what}`, () => {
      const found = paramHeadersOf(given)
      assert.isTrue(isAnnotationFault(found))
      if (isAnnotationFault(found)) assert.equal(found.path, path)
    })

  it("are found in nested objects, and data that looks like one is none", () => {
    const found = paramHeadersOf(
      schema({
        region: string("Region"),
        deep: schema({ "a/b": { type: "integer", "x-mcp-header": "Deep" } }),
        "x-mcp-header": { type: "string" },
        plain: { type: "string", default: { "x-mcp-header": 5 }, examples: [{ "x-mcp-header": "" }] }
      })
    )
    assert.deepEqual(found, [
      { path: ["region"], header: "mcp-param-region" },
      { path: ["deep", "a/b"], header: "mcp-param-deep" }
    ])
    if (isAnnotationFault(found)) return
    assert.deepEqual(paramHeaderValues(found, { region: "é", deep: { "a/b": 42 } }), {
      "mcp-param-region": "=?base64?w6k=?=",
      "mcp-param-deep": "42"
    })
    assert.deepEqual(paramHeaderValues(found, { region: null, deep: 5 }), {})
    assert.deepEqual(paramHeaderValues(found, {}), {})
  })
})

describe("an integer that no header holds exactly", () => {
  const annotated = [{ path: ["n"], header: "mcp-param-n" }]
  for (const [text, fits] of [
    ["9007199254740991", true],
    ["-9007199254740991", true],
    ["9007199254740993", false],
    ["1e400", false],
    ["0.5", false]
  ] as const)
    it(`${text} ${fits ? "is" : "is not"} sent`, () => {
      // An object: the text says so.
      const args = parse(`{"n": ${text}}`) as JsonObject
      assert.equal(unsendable(annotated, args).length, fits ? 0 : 1)
    })
})

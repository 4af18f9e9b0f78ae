import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import * as JsonText from "../../src/config/JsonText.ts"
import { childPath, duplicatesOf, propertyOf, toJson } from "../../src/config/Located.ts"
import * as Toml from "../../src/config/Toml.ts"
import { MAX_FILE_BYTES } from "../../src/config/TextBounds.ts"
import { left, right } from "./Support.ts"

describe("JSON text", () => {
  it("accepts a byte order mark, CRLF, comments and trailing commas, and keeps positions", () => {
    const root = right(JsonText.parse('\ufeff{ // c\r\n  "a": [1, 2,], /* d */\r\n  "b": "x",\r\n}', "f"))
    if (root.kind !== "object") assert.fail()
    assert.deepEqual(propertyOf(root, "b")?.at, { line: 3, column: 3 })
    assert.deepEqual(propertyOf(root, "b")?.value.at, { line: 3, column: 8 })
    assert.strictEqual(JSON.stringify(toJson(root)), '{"a":[1,2],"b":"x"}')
  })

  it.each([
    ['{"a": }', 1, 7],
    ['{"a": 1 "b": 2}', 1, 9],
    ['{\n  "a": "x\n}', 2, 8],
    ['{"a": 1} x', 1, 10],
    ["", 1, 1]
  ])("says where %j stops being JSON", (text, line, column) => {
    const error = left(JsonText.parse(text, "f"))
    assert.strictEqual(error.code, "SIGIL_CONFIG_UNREADABLE")
    assert.deepEqual(error.where, { file: "f", line, column })
  })

  it("refuses hostile nesting with a position instead of losing the stack", () => {
    const error = left(JsonText.parse("[".repeat(200_000), "f"))
    assert.include(error.text, "128 levels")
    assert.deepEqual(error.where, { file: "f", line: 1, column: 129 })
    right(JsonText.parse("[".repeat(128) + "]".repeat(128), "f"))
  })

  it("refuses a text of more than 4 MiB", () => {
    assert.include(left(JsonText.parse(`"${"x".repeat(MAX_FILE_BYTES)}"`, "f")).text, "bytes")
  })

  it("sees a key that is written twice, and prototype names as data", () => {
    const root = right(JsonText.parse('{"a":1,"__proto__":{"x":1},"a":2,"constructor":3}', "f"))
    if (root.kind !== "object") assert.fail()
    assert.deepEqual([...duplicatesOf(root)], [["a", { line: 1, column: 28 }]])
    const value = toJson(root)
    if (typeof value !== "object" || value === null || Array.isArray(value)) assert.fail()
    assert.deepEqual(Object.keys(value), ["a", "__proto__", "constructor"])
    assert.isNull(Object.getPrototypeOf(value))
  })

  it("keeps the digits that a double cannot hold", () => {
    const value = (text: string) => JSON.stringify(toJson(right(JsonText.parse(text, "f"))))
    assert.notStrictEqual(value('{"n":90071992547409931}'), value('{"n":90071992547409932}'))
  })

  it("reads every JSON value as JSON.parse does", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        const text = JSON.stringify(value, undefined, 2)
        const read = right(JsonText.parse(text, "f"))
        assert.deepEqual(JSON.parse(JSON.stringify(toJson(read))), JSON.parse(text))
      }),
      { numRuns: 200 }
    )
  })
})

describe("TOML text", () => {
  it("knows the place of tables, keys and list items", () => {
    const text = '\ufeffa.b = 1\r\n[[s]]\r\nname = "é𝒳"\r\nargs = [\r\n  "x",\r\n  2 ]\r\n[s.t]\r\nu = { v = true }\r\n'
    const { root } = right(Toml.parse(text, "f"))
    const list = propertyOf(root, "s")?.value
    if (list?.kind !== "array" || list.items[0]?.kind !== "object") assert.fail()
    const [entry] = list.items
    assert.deepEqual(entry.at, { line: 2, column: 1 })
    const args = propertyOf(entry, "args")
    assert.deepEqual(args?.at, { line: 4, column: 1 })
    if (args?.value.kind !== "array") assert.fail()
    assert.deepEqual(args.value.items[1]?.at, { line: 6, column: 3 })
    const table = propertyOf(entry, "t")?.value
    if (table?.kind !== "object") assert.fail()
    const inner = propertyOf(table, "u")?.value
    if (inner?.kind !== "object") assert.fail()
    assert.deepEqual(propertyOf(inner, "v")?.value.at, { line: 8, column: 11 })
  })

  it.each([
    ["a = 1\nb = = 2", 2, 5],
    ["a = 1\na = 2", 2, 1],
    ["[x\n", 1, 3]
  ])("says where %j stops being TOML", (text, line, column) => {
    const error = left(Toml.parse(text, "f"))
    assert.strictEqual(error.code, "SIGIL_CONFIG_UNREADABLE")
    assert.strictEqual(error.where?.line, line)
    assert.strictEqual(error.where?.column, column)
  })

  it("never quotes the text it cannot read", () => {
    assert.notInclude(left(Toml.parse('token = "sk-verysecretvalue" x', "f")).text, "sk-very")
  })

  it.each([
    "a = " + "[".repeat(100_000),
    `${Array(5_000).fill("a").join(".")} = 1`,
    `[${Array(5_000).fill("a").join(".")}]`
  ])("refuses hostile nesting", (text) => {
    assert.strictEqual(left(Toml.parse(text, "f")).code, "SIGIL_CONFIG_UNREADABLE")
  })

  it("takes prototype names as data", () => {
    const { root } = right(Toml.parse("[__proto__]\nx = 1\n[constructor]\ny = 2\n", "f"))
    assert.deepEqual(
      root.properties.map(({ key }) => key),
      ["__proto__", "constructor"]
    )
    assert.strictEqual(({} as { x?: number }).x, undefined)
  })
})

describe("paths of fields", () => {
  it("quotes what is no plain word", () => {
    assert.strictEqual(childPath("mcpServers", "fs"), "mcpServers.fs")
    assert.strictEqual(childPath("mcpServers", "my server"), 'mcpServers["my server"]')
    assert.strictEqual(childPath("", "a-b"), "a-b")
  })
})

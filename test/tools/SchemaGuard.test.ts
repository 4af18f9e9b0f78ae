import { assert, describe, it } from "@effect/vitest"
import type { Json, JsonObject } from "../../src/base/Json.ts"
import { parse } from "../../src/protocol/Codec.ts"
import { guard, MAX_DEPTH, MAX_NODES, MAX_SIZE, toolGuard } from "../../src/tools/SchemaGuard.ts"

const verdict = (schema: unknown): string => {
  const found = guard(schema)
  return found.ok ? "ok" : `${found.reason.code} ${found.reason.path}`
}
const toolVerdict = (definition: unknown): string => {
  const found = toolGuard(definition)
  return found.ok ? "ok" : `${found.reason.code} ${found.reason.path}`
}

const nested = (levels: number): JsonObject => {
  let schema: JsonObject = { type: "string" }
  for (let level = 1; level < levels; level += 1) schema = { not: schema }
  return schema
}

describe("SchemaGuard bounds", () => {
  it("allows exactly the depth that it names", () => {
    assert.equal(verdict(nested(MAX_DEPTH)), "ok")
    assert.match(verdict(nested(MAX_DEPTH + 1)), /^schema_too_deep \/not\//)
  })

  it("refuses a schema thousands of levels deep without using the stack for it", () => {
    assert.match(verdict(nested(200_000)), /^schema_too_deep/)
    let list: Json = []
    for (let level = 0; level < 200_000; level += 1) list = [list]
    assert.match(verdict({ enum: [list] }), /^schema_too_deep/)
  })

  it("refuses too many parts, in an object, in a list and spread", () => {
    const properties = Object.fromEntries(Array.from({ length: MAX_NODES }, (_, index) => [`k${index}`, true]))
    assert.equal(verdict({ properties }), "schema_too_large /properties")
    assert.equal(verdict({ enum: Array.from({ length: MAX_NODES }, () => 1) }), "schema_too_large /enum")
    const spread = {
      anyOf: Array.from({ length: MAX_NODES / 10 }, () => ({ enum: Array.from({ length: 10 }, () => 1) }))
    }
    assert.match(verdict(spread), /^schema_too_large/)
  })

  it("counts size in bytes", () => {
    assert.equal(verdict({ description: "a".repeat(MAX_SIZE - 100) }), "ok")
    assert.equal(verdict({ description: "密".repeat(MAX_SIZE / 2) }), "schema_too_large /description")
    assert.equal(verdict({ description: "a".repeat(2_000_000) }), "schema_too_large /description")
  })

  it("bounds patterns, as values and as keys", () => {
    assert.equal(verdict({ pattern: "a".repeat(1_025) }), "schema_pattern_unsupported /pattern")
    assert.equal(
      verdict({ patternProperties: { ["a".repeat(1_025)]: true } }),
      "schema_pattern_unsupported /patternProperties"
    )
    assert.equal(verdict({ properties: { pattern: { type: "string" }, ["a".repeat(1_025)]: true } }), "ok")
  })
})

describe("SchemaGuard form", () => {
  it("names the keyword that has the wrong form", () => {
    assert.equal(verdict({ properties: { a: { type: "text" } } }), "schema_invalid /properties/a/type")
    assert.equal(verdict({ required: "a" }), "schema_invalid /required")
    assert.equal(verdict({ required: ["a", 1] }), "schema_invalid /required/1")
    assert.equal(verdict({ properties: { a: 1 } }), "schema_invalid /properties/a")
    assert.equal(verdict({ anyOf: [] }), "schema_invalid /anyOf")
    assert.equal(verdict({ anyOf: [true, "x"] }), "schema_invalid /anyOf/1")
    assert.equal(verdict({ minLength: -1 }), "schema_invalid /minLength")
    assert.equal(verdict({ multipleOf: 0 }), "schema_invalid /multipleOf")
    assert.equal(verdict({ "a/b~": 1, properties: { "a/b~": { not: 3 } } }), "schema_invalid /properties/a~1b~0/not")
    assert.equal(verdict([]), "schema_invalid ")
  })

  it("leaves data and annotations alone, whatever they look like", () => {
    assert.equal(
      verdict({ const: { $ref: "http://x", type: "text" }, default: { $ref: 1 }, "x-note": { required: 3 } }),
      "ok"
    )
  })

  it("takes numbers in lossless form", () => {
    assert.equal(verdict(parse('{"maximum":12345678901234567890,"minLength":1e1}')), "ok")
  })

  it("knows its dialects", () => {
    assert.equal(verdict({ $schema: "https://json-schema.org/draft/2020-12/schema" }), "ok")
    assert.equal(verdict({ $schema: "http://json-schema.org/draft-07/schema#" }), "ok")
    assert.equal(verdict({ $schema: "https://json-schema.org/draft/2019-09/schema" }), "ok")
    assert.equal(verdict({ $schema: "http://json-schema.org/draft-04/schema#" }), "schema_dialect_unknown /$schema")
    assert.equal(verdict({ $schema: 7 }), "schema_dialect_unknown /$schema")
  })
})

describe("SchemaGuard references", () => {
  it("refuses what leaves the schema", () => {
    assert.equal(
      verdict({ properties: { a: { $ref: "http://evil.example/x" } } }),
      "schema_ref_external /properties/a/$ref"
    )
    assert.equal(verdict({ $ref: "other.json#/x" }), "schema_ref_external /$ref")
    assert.equal(
      verdict({
        $id: "https://me.example/s",
        properties: { a: { $ref: "https://me.example/s#/$defs/b" } },
        $defs: { b: true }
      }),
      "ok"
    )
  })

  it("refuses what does not resolve, prototypes included", () => {
    assert.equal(verdict({ items: { $ref: "#/$defs/none" } }), "schema_ref_unresolved /items/$ref")
    assert.equal(verdict({ items: { $ref: "#/$defs/constructor" }, $defs: {} }), "schema_ref_unresolved /items/$ref")
    assert.equal(verdict({ items: { $ref: "#/__proto__" } }), "schema_ref_unresolved /items/$ref")
    assert.equal(verdict({ items: { $ref: "#nowhere" } }), "schema_ref_unresolved /items/$ref")
    assert.equal(verdict({ items: { $ref: "#/%zz" } }), "schema_ref_unresolved /items/$ref")
  })

  it("resolves pointers with escapes, anchors, and places outside $defs", () => {
    assert.equal(verdict({ items: { $ref: "#/$defs/a~1b%20c" }, $defs: { "a/b c": true } }), "ok")
    assert.equal(verdict({ items: { $ref: "#here" }, $defs: { a: { $anchor: "here" } } }), "ok")
    assert.equal(verdict({ items: { $ref: "#/components/a" }, components: { a: { type: "string" } } }), "ok")
    assert.equal(
      verdict({ items: { $ref: "#/components/a" }, components: { a: { type: "text" } } }),
      "schema_invalid /items/$ref/type"
    )
    assert.equal(
      verdict({ items: { $ref: "#/const" }, const: { type: "string" } }),
      "schema_ref_unresolved /items/$ref"
    )
    assert.equal(verdict({ items: { $ref: "#/properties" }, properties: {} }), "schema_ref_unresolved /items/$ref")
  })

  it("allows recursion that takes a step into the value and refuses one that does not", () => {
    assert.equal(verdict({ properties: { kids: { items: { $ref: "#" } } } }), "ok")
    assert.match(verdict({ $ref: "#" }), /^schema_endless/)
    assert.match(
      verdict({
        properties: { a: { $ref: "#/$defs/a" } },
        $defs: { a: { anyOf: [true, { $ref: "#/$defs/b" }] }, b: { not: { $ref: "#/$defs/a" } } }
      }),
      /^schema_endless/
    )
    assert.match(verdict({ dependentSchemas: { a: { $ref: "#" } } }), /^schema_endless/)
    assert.match(verdict({ $dynamicRef: "#x", $dynamicAnchor: "x" }), /^schema_endless/)
  })

  it("follows a chain of references of any length", () => {
    const $defs: Record<string, JsonObject> = {}
    for (let index = 0; index < 3_000; index += 1)
      $defs[`d${index}`] = index === 2_999 ? {} : { $ref: `#/$defs/d${index + 1}` }
    assert.equal(verdict({ $ref: "#/$defs/d0", $defs }), "ok")
    assert.match(verdict({ $ref: "#/$defs/d0", $defs: { ...$defs, d2999: { $ref: "#/$defs/d5" } } }), /^schema_endless/)
  })
})

describe("toolGuard", () => {
  const inputSchema = { type: "object" }

  it("accepts a plain definition and one with an empty name", () => {
    assert.equal(toolVerdict({ name: "a", description: "b", inputSchema, annotations: { readOnlyHint: true } }), "ok")
    assert.equal(toolVerdict({ name: "", inputSchema }), "ok")
  })

  it("refuses what is no definition", () => {
    assert.equal(toolVerdict(null), "tool_invalid ")
    assert.equal(toolVerdict({ inputSchema }), "tool_name_missing /name")
    assert.equal(toolVerdict({ name: 3, inputSchema }), "tool_name_missing /name")
    assert.equal(toolVerdict({ name: "a".repeat(257), inputSchema }), "tool_name_too_long /name")
    assert.equal(toolVerdict({ name: "a", description: {}, inputSchema }), "tool_description_invalid /description")
    assert.equal(
      toolVerdict({ name: "a", description: "b".repeat(70_000), inputSchema }),
      "tool_description_too_long /description"
    )
    assert.equal(toolVerdict({ name: "a" }), "schema_missing /inputSchema")
    assert.equal(toolVerdict({ name: "a", inputSchema: true }), "schema_invalid /inputSchema")
    assert.equal(toolVerdict({ name: "a", inputSchema, annotations: [] }), "tool_annotations_invalid /annotations")
  })

  it("wants an input schema for objects and finds out without a type", () => {
    const input = (schema: Json) => toolVerdict({ name: "a", inputSchema: schema })
    assert.equal(input({}), "ok")
    assert.equal(input({ properties: {} }), "ok")
    assert.equal(input({ type: ["object", "null"] }), "ok")
    assert.equal(input({ $ref: "#/definitions/A", definitions: { A: { type: "object" } } }), "ok")
    assert.equal(input({ anyOf: [{ type: "object" }, { properties: {} }] }), "ok")
    assert.equal(input({ type: "array" }), "schema_invalid /inputSchema/type")
    assert.equal(input({ items: {} }), "schema_invalid /inputSchema/type")
    assert.equal(
      input({ $ref: "#/definitions/A", definitions: { A: { type: "string" } } }),
      "schema_invalid /inputSchema/type"
    )
  })

  it("names the place inside the definition", () => {
    assert.equal(
      toolVerdict({ name: "a", inputSchema, outputSchema: { properties: { b: { $ref: "#/nope" } } } }),
      "schema_ref_unresolved /outputSchema/properties/b/$ref"
    )
  })
})

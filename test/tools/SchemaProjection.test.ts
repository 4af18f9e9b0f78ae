import { assert, describe, it } from "vitest"
import type { JsonObject } from "../../src/base/Json.ts"
import { flatRoot, project, providers } from "../../src/tools/SchemaProjection.ts"

const tool = (inputSchema: JsonObject) => ({ visibleName: "mcp__a__b", description: "does", inputSchema })

describe("SchemaProjection", () => {
  it("has each provider's own shape and leaves a plain object schema alone", () => {
    const schema = { type: "object", properties: { a: { type: "string" } }, required: ["a"] }
    assert.deepEqual(project(tool(schema), "openai"), {
      type: "function",
      function: { name: "mcp__a__b", description: "does", parameters: schema, strict: false }
    })
    assert.deepEqual(project(tool(schema), "anthropic"), {
      name: "mcp__a__b",
      description: "does",
      input_schema: schema
    })
    assert.deepEqual(project(tool(schema), "gemini"), {
      name: "mcp__a__b",
      description: "does",
      parametersJsonSchema: schema
    })
  })

  it("flattens alternatives at the root: all properties, only what every alternative needs", () => {
    const flat = flatRoot({
      type: "object",
      properties: { id: { type: "string" } },
      anyOf: [
        { properties: { a: { type: "number" } }, required: ["id", "a"] },
        { properties: { b: { type: "number" } }, required: ["id", "b"] }
      ],
      allOf: [{ properties: { c: { type: "boolean" } }, required: ["c"] }]
    })
    assert.deepEqual(Object.keys(flat["properties"] ?? {}).sort(), ["a", "b", "c", "id"])
    assert.deepEqual([...((flat["required"] ?? []) as ReadonlyArray<string>)].sort(), ["c", "id"])
    for (const keyword of ["anyOf", "allOf"]) assert.notProperty(flat, keyword)
  })

  it("follows a reference at the root and keeps recursive definitions", () => {
    const flat = flatRoot({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      $ref: "#/$defs/node",
      $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } }, required: ["next"] } }
    })
    assert.deepEqual(flat["properties"], { next: { $ref: "#/$defs/node" } })
    assert.notProperty(flat, "$ref")
    assert.property(flat, "$defs")
  })

  it("ends for references that lead back, and for many alternatives that share parts", () => {
    const defs: { [name: string]: JsonObject } = {}
    for (let level = 0; level < 60; level += 1) {
      const next = { $ref: `#/$defs/d${(level + 1) % 60}` }
      defs[`d${level}`] = { anyOf: [next, next, next] }
    }
    assert.equal(flatRoot({ $ref: "#/$defs/d0", $defs: defs })["type"], "object")
  })

  it("gives Gemini only keywords it knows, in the spelling it knows", () => {
    const schema = {
      type: "object",
      $schema: "http://json-schema.org/draft-07/schema#",
      definitions: { kind: { const: "x", examples: ["x"] } },
      properties: {
        pattern: { type: "string", pattern: "^a$", minLength: 1 },
        kind: { $ref: "#/definitions/kind" },
        either: { oneOf: [{ type: "string" }, { type: "null" }] },
        const: { type: "string" }
      },
      patternProperties: { "^x": {} }
    }
    assert.deepEqual(project(tool(schema), "gemini")["parametersJsonSchema"], {
      type: "object",
      $defs: { kind: { enum: ["x"] } },
      properties: {
        pattern: { type: "string" },
        kind: { $ref: "#/$defs/kind" },
        either: { anyOf: [{ type: "string" }, { type: "null" }] },
        const: { type: "string" }
      }
    })
  })

  it("never changes the schema it is given", () => {
    const schema = Object.freeze({ type: "object", properties: Object.freeze({ a: Object.freeze({ const: 1 }) }) })
    for (const provider of providers) project(tool(schema), provider)
  })
})

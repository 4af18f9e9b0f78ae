import { assert, describe, it } from "@effect/vitest"
import { Ajv } from "ajv"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as Either from "effect/Either"
import * as fc from "fast-check"
import type { Json, JsonObject } from "../../src/base/Json.ts"
import { parse } from "../../src/protocol/Codec.ts"
import { compile, MAX_PROBLEMS } from "../../src/tools/SchemaValidator.ts"

const validate = (schema: Json, value: Json) => {
  const compiled = compile(schema as JsonObject)
  if (Either.isLeft(compiled)) return assert.fail(`${compiled.left.code}: ${compiled.left.message}`)
  return compiled.right.validate(value)
}
const fits = (schema: Json, value: Json): boolean => validate(schema, value).length === 0
const keywordsOf = (schema: Json, value: Json): ReadonlyArray<string> =>
  validate(schema, value).map(({ keyword }) => keyword)
const codeOf = (schema: JsonObject): string =>
  Either.match(compile(schema), { onLeft: ({ code }) => code, onRight: () => "ok" })

describe("SchemaValidator", () => {
  it("says where and what, never with the value's text", () => {
    const schema = {
      type: "object",
      properties: { name: { type: "string", maxLength: 3 }, "a/b": { type: "integer" }, mode: { enum: ["on", "off"] } },
      required: ["name", "path"],
      additionalProperties: false
    }
    const found = validate(schema, { name: "s3cret-value", "a/b": "x", mode: "s3cret", nme: 1 })
    assert.sameDeepMembers(
      [...found],
      [
        { path: "/path", expectation: "is required", keyword: "required" },
        { path: "/nme", expectation: "is not a known key; did you mean 'name'?", keyword: "additionalProperties" },
        { path: "/name", expectation: "must have at most 3 characters", keyword: "maxLength" },
        { path: "/a~1b", expectation: "must be an integer", keyword: "type" },
        { path: "/mode", expectation: 'must be one of "on", "off"', keyword: "enum" }
      ]
    )
    assert.notInclude(JSON.stringify(found), "s3cret")
    assert.deepEqual(validate({ ...schema, required: ["name"] }, { name: "abc", mode: "on" }), [])
  })

  it("reports at most ten problems", () => {
    const items = Array.from({ length: 500 }, () => "x")
    assert.equal(validate({ items: { type: "number" } }, items).length, MAX_PROBLEMS)
  })

  it("reports something even when a value has too many faults to count them", () => {
    const found = validate(
      { items: { type: "number" } },
      Array.from({ length: 400_000 }, () => "x")
    )
    assert.deepEqual(found, [{ path: "/0", expectation: "must be a number", keyword: "type" }])
  })

  it("does not change the value", () => {
    const value = Object.freeze({ a: "1", b: Object.freeze([Object.freeze({})]) })
    const schema = {
      properties: { a: { type: "integer", default: 3 }, c: { default: 1 } },
      additionalProperties: false
    }
    assert.notEqual(validate(schema, value).length, 0)
    assert.deepEqual(value, { a: "1", b: [{}] })
  })

  it("takes numbers in lossless form as numbers and integers", () => {
    const schema = { properties: { id: { type: "integer", minimum: 5 }, ratio: { type: "number" } }, required: ["id"] }
    assert.isTrue(fits(schema, parse('{"id":12345678901234567890,"ratio":1.5e3}')))
    assert.deepEqual(keywordsOf(schema, parse('{"id":1.5e0}')).slice(0, 1), ["type"])
    assert.isTrue(fits({ type: "number" }, parse("1e400")))
    assert.isFalse(fits({ type: "object" }, parse("12345678901234567890")))
  })

  it("compares items by value, beyond the digits of a double", () => {
    const unique = { uniqueItems: true }
    assert.isTrue(fits(unique, parse("[12345678901234567890,12345678901234567891]")))
    assert.isFalse(fits(unique, parse("[12345678901234567890,12345678901234567890]")))
    assert.isFalse(fits(unique, parse("[100,1e2]")))
    assert.isFalse(
      fits(unique, [
        { a: 1, b: [2] },
        { b: [2], a: 1 }
      ])
    )
    assert.isTrue(fits(unique, [1, "1", true, null, [1], { 1: 1 }, "true", "null"]))
    assert.isTrue(fits({ uniqueItems: false }, [1, 1]))
  })

  it("treats names of prototypes as plain keys", () => {
    const schema = parse(
      '{"properties":{"__proto__":{"type":"integer"},"constructor":{"type":"string"}},"required":["__proto__","toString"],"additionalProperties":false,"patternProperties":{"^to":{}}}'
    )
    assert.deepEqual([...keywordsOf(schema, {})], ["required", "required"])
    assert.isTrue(fits(schema, parse('{"__proto__":1,"toString":2,"constructor":"x"}')))
    assert.deepEqual(keywordsOf(schema, parse('{"__proto__":"x","toString":2}')), ["type"])
    assert.isFalse(fits(parse('{"dependentRequired":{"__proto__":["b"]}}'), parse('{"__proto__":1}')))
    assert.isTrue(fits(parse('{"dependentRequired":{"__proto__":["b"]}}'), {}))
    assert.isFalse(fits(parse('{"patternProperties":{"__proto__":{"type":"null"}}}'), { a__proto__b: 1 }))
  })

  it("counts characters as code points", () => {
    assert.isTrue(fits({ maxLength: 2 }, "🔑🔑"))
    assert.isFalse(fits({ maxLength: 2 }, "🔑🔑🔑"))
    assert.isFalse(fits({ minLength: 3 }, "🔑🔑"))
    assert.isTrue(fits({ minLength: 3 }, "🔑🔑🔑"))
  })

  it("keeps patterns apart", () => {
    const schema = {
      properties: { a: { pattern: "^a$" }, b: { pattern: "^b$" } },
      patternProperties: { "^c": { type: "null" } }
    }
    assert.isTrue(fits(schema, { a: "a", b: "b", c1: null }))
    assert.deepEqual(
      validate(schema, { a: "b", b: "b", c1: 1 }).map(({ path }) => path),
      ["/a", "/c1"]
    )
    assert.isTrue(fits({ pattern: "^\\u0041[\\d\\/]+$" }, "A12/"))
  })
})

describe("SchemaValidator and hostile schemas", () => {
  it("runs a pattern that explodes elsewhere in linear time", () => {
    assert.deepEqual(keywordsOf({ pattern: "^(a+)+$" }, `${"a".repeat(50_000)}!`), ["pattern"])
  })

  it("says that a pattern is unsupported when it is compiled", () => {
    assert.equal(codeOf({ properties: { a: { pattern: "(?=x)y" } } }), "schema_pattern_unsupported")
    assert.equal(codeOf({ properties: { a: { pattern: "(a)\\1" } } }), "schema_pattern_unsupported")
    assert.equal(codeOf({ patternProperties: { "(?<!x)y": { type: "null" } } }), "schema_pattern_unsupported")
    assert.equal(codeOf({ pattern: "(" }), "schema_pattern_unsupported")
  })

  it("refuses what the guard refuses", () => {
    assert.equal(codeOf({ $ref: "#" }), "schema_endless")
    assert.equal(codeOf({ $ref: "http://x.example/" }), "schema_ref_external")
  })

  it("ends an exponential tree of alternatives by its budget", () => {
    const $defs: Record<string, JsonObject> = {}
    for (let index = 0; index < 30; index += 1) {
      const next = { $ref: `#/$defs/d${index + 1}` }
      $defs[`d${index}`] = index === 29 ? { type: "number" } : { anyOf: [next, next] }
    }
    assert.deepEqual(keywordsOf({ properties: { a: { $ref: "#/$defs/d0" } }, $defs }, { a: "x" }), [
      "validation_budget"
    ])
    assert.isTrue(fits({ properties: { a: { $ref: "#/$defs/d0" } }, $defs }, { a: 1 }))
  })

  it("counts what only fails, too", () => {
    const contains = { anyOf: Array.from({ length: 500 }, () => ({ contains: { type: "string" } })) }
    assert.deepEqual(
      keywordsOf(
        contains,
        Array.from({ length: 100_000 }, () => 1)
      ),
      ["validation_budget"]
    )
    const never = { anyOf: Array.from({ length: 500 }, () => ({ contains: false })) }
    assert.deepEqual(
      keywordsOf(
        never,
        Array.from({ length: 100_000 }, () => 1)
      ),
      ["validation_budget"]
    )
    const lengths = { anyOf: Array.from({ length: 500 }, (_, index) => ({ maxLength: 500_000 + index })) }
    assert.deepEqual(keywordsOf(lengths, "x".repeat(999_000)), ["validation_budget"])
  })

  it("follows recursion into deep data and gives up before the stack does", () => {
    const tree = {
      type: "object",
      properties: { value: { type: "integer" }, kids: { type: "array", items: { $ref: "#" } } },
      required: ["value"]
    }
    const deep = (levels: number, leaf: Json): Json => {
      let node: Json = { value: leaf }
      for (let level = 0; level < levels; level += 1) node = { value: 1, kids: [node] }
      return node
    }
    assert.isTrue(fits(tree, deep(400, 1)))
    assert.deepEqual(keywordsOf(tree, deep(3, "x")), ["type"])
    assert.deepEqual(validate(tree, deep(3, "x"))[0]?.path, "/kids/0/kids/0/kids/0/value")
    assert.deepEqual(keywordsOf(tree, deep(100_000, 1)), ["validation_budget"])
  })

  it("cannot be made to run a schema as something else", () => {
    assert.isFalse(
      fits({ $async: true, type: "string", $comment: "x", format: "date", discriminator: { propertyName: "a" } }, 1)
    )
    assert.isTrue(fits({ type: "string", format: "date" }, "not a date"))
    assert.isTrue(fits({ const: { $data: "/a" } }, { $data: "/a" }))
  })

  it("keeps nothing of one schema for the next, whatever their identifiers", () => {
    const schema = (type: string): JsonObject => ({
      $id: "https://same.example/",
      properties: { a: { $id: "https://same.example/a", type } }
    })
    assert.isTrue(fits(schema("string"), { a: "x" }))
    assert.isTrue(fits(schema("integer"), { a: 1 }))
    assert.isFalse(fits(schema("integer"), { a: "x" }))
  })
})

/** The plain compiler has faults of its own: some schemas with `unevaluatedItems` throw. */
const attempt = (plain: (value: Json) => unknown, value: Json): unknown => {
  try {
    return plain(value)
  } catch {
    return undefined
  }
}

const plainOptions = { strict: false, ownProperties: true, logger: false, validateSchema: false, meta: false } as const

describe("SchemaValidator and dialects", () => {
  const draft7 = "http://json-schema.org/draft-07/schema#"

  it("reads lists under items as tuples, with and without a dialect", () => {
    for (const extra of [{ $schema: draft7 }, {}]) {
      const schema = { ...extra, items: [{ type: "string" }, { type: "number" }], additionalItems: false }
      assert.isTrue(fits(schema, ["a", 1]))
      assert.isFalse(fits(schema, ["a", "b"]))
      assert.isFalse(fits(schema, ["a", 1, 2]))
    }
  })

  it("reads dependencies of both kinds", () => {
    const schema = { $schema: draft7, dependencies: { a: ["b"], c: { required: ["d"] } } }
    assert.isTrue(fits(schema, { a: 1, b: 1 }))
    assert.isFalse(fits(schema, { a: 1 }))
    assert.isFalse(fits(schema, { c: 1 }))
    assert.isTrue(fits(schema, { c: 1, d: 1 }))
  })

  it("lets the neighbours of a reference count in 2020-12 and not in draft-07", () => {
    const schema = {
      properties: { a: { $ref: "#/definitions/s", maxLength: 1 } },
      definitions: { s: { type: "string" } }
    }
    assert.isFalse(fits(schema, { a: "xx" }))
    assert.isTrue(fits({ ...schema, $schema: draft7 }, { a: "xx" }))
    assert.isFalse(fits({ ...schema, $schema: draft7 }, { a: 1 }))
  })

  it("follows anchors and dynamic references inside the schema", () => {
    assert.isFalse(fits({ items: { $ref: "#n" }, $defs: { a: { $anchor: "n", type: "null" } } }, [1]))
    const dynamic = { $dynamicAnchor: "node", type: "object", properties: { next: { $dynamicRef: "#node" } } }
    assert.isTrue(fits(dynamic, { next: { next: {} } }))
    assert.isFalse(fits(dynamic, { next: { next: 1 } }))
    assert.isFalse(
      fits({ $recursiveAnchor: true, type: "object", properties: { next: { $recursiveRef: "#" } } }, { next: 1 })
    )
  })

  it("takes null where OpenAPI says nullable", () => {
    assert.isTrue(fits({ type: "string", nullable: true }, null))
    assert.isFalse(fits({ type: "string" }, null))
  })

  const value = fc.jsonValue({ maxDepth: 2, noUnicodeString: true }) as fc.Arbitrary<Json>
  const small = fc.oneof(
    value,
    fc.constantFrom<Json>({}, { a: 1 }, { a: "x", b: null }, [], [1, 1], [1, "a"], "a", "aa", 0, 2, null)
  )
  const name = fc.constantFrom("a", "b", "constructor")
  const { schema } = fc.letrec<{ schema: Json }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      fc.boolean(),
      fc.record(
        {
          type: fc.constantFrom("object", "array", "string", "integer", "number", "boolean", "null"),
          enum: fc.array(small, { minLength: 1, maxLength: 3 }),
          minimum: fc.integer({ min: -2, max: 3 }),
          multipleOf: fc.constantFrom(1, 2, 0.5),
          maxLength: fc.nat(2),
          minLength: fc.nat(2),
          pattern: fc.constantFrom("^a", "b$", "[0-9]+"),
          maxItems: fc.nat(2),
          uniqueItems: fc.boolean(),
          required: fc.uniqueArray(name, { maxLength: 2 }),
          maxProperties: fc.nat(2)
        },
        { requiredKeys: [] }
      ) as fc.Arbitrary<Json>,
      fc.record(
        {
          properties: fc.dictionary(name, tie("schema"), { maxKeys: 2 }),
          patternProperties: fc.dictionary(fc.constantFrom("^a", "b"), tie("schema"), { maxKeys: 1 }),
          additionalProperties: tie("schema"),
          items: tie("schema"),
          contains: tie("schema"),
          propertyNames: tie("schema"),
          allOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }),
          anyOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }),
          oneOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }),
          not: tie("schema"),
          if: tie("schema"),
          then: tie("schema"),
          else: tie("schema"),
          $ref: fc.constantFrom("#/$defs/a", "#/$defs/b")
        },
        { requiredKeys: [] }
      ) as fc.Arbitrary<Json>
    )
  }))
  const leaf = fc.constantFrom<Json>(
    true,
    false,
    { type: "integer" },
    { maxLength: 1 },
    { properties: { a: { type: "string" } } }
  )

  const modern = fc.record(
    {
      properties: fc.dictionary(name, schema, { maxKeys: 2 }),
      unevaluatedProperties: schema,
      prefixItems: fc.array(schema, { minLength: 1, maxLength: 2 }),
      dependentSchemas: fc.dictionary(name, schema, { maxKeys: 1 }),
      allOf: fc.array(schema, { minLength: 1, maxLength: 2 }),
      unevaluatedItems: schema
    },
    { requiredKeys: [] }
  )

  it("agrees with the plain compiler on 2020-12", () => {
    fc.assert(
      fc.property(modern, leaf, leaf, fc.array(small, { minLength: 3, maxLength: 6 }), (body, a, b, values) => {
        const whole = { ...body, $defs: { a, b } }
        const plain = new Ajv2020({ ...plainOptions }).compile(whole)
        for (const each of values) {
          const wanted = attempt(plain, each)
          if (wanted !== undefined) assert.equal(fits(whole, each), wanted, JSON.stringify(each))
        }
      }),
      { numRuns: 40 }
    )
  })

  it("agrees with the plain compiler on draft-07", () => {
    const bare = fc.record(
      {
        properties: fc.dictionary(name, schema, { maxKeys: 2 }),
        items: fc.array(schema, { minLength: 1, maxLength: 2 }),
        additionalItems: schema,
        dependencies: fc.dictionary(name, schema, { maxKeys: 1 })
      },
      { requiredKeys: [] }
    )
    const lonelyRefs = (json: Json): Json => {
      if (Array.isArray(json)) return json.map(lonelyRefs)
      if (typeof json !== "object" || json === null) return json
      const object = json as JsonObject
      if (typeof object["$ref"] === "string") return { $ref: object["$ref"] }
      return Object.fromEntries(Object.entries(object).map(([key, inner]) => [key, lonelyRefs(inner ?? null)]))
    }
    fc.assert(
      fc.property(bare, leaf, leaf, fc.array(small, { minLength: 3, maxLength: 6 }), (body, a, b, values) => {
        const whole = { ...(lonelyRefs(body as Json) as JsonObject), $schema: draft7, $defs: { a, b } }
        const plain = new Ajv({ ...plainOptions }).compile(whole)
        for (const each of values) {
          const wanted = attempt(plain, each)
          if (wanted !== undefined) assert.equal(fits(whole, each), wanted, JSON.stringify(each))
        }
      }),
      { numRuns: 60 }
    )
  })
})

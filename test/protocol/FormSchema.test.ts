/** Which schemas are forms, and why the others are not. */
import * as Either from "effect/Either"
import { assert, describe, it } from "vitest"
import type { Json, JsonObject } from "../../src/base/Json.ts"
import { parse } from "../../src/protocol/Codec.ts"
import type { Field } from "../../src/protocol/Form.ts"
import { asksForCredential, type FormFault, parseForm } from "../../src/protocol/FormSchema.ts"

const schemaOf = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: "object",
  properties,
  ...more
})

const fieldsOf = (schema: Json): ReadonlyArray<Field> => {
  const form = parseForm(schema)
  return Either.isRight(form) ? form.right.fields : assert.fail(form.left.text)
}

const fieldOf = (schema: JsonObject): Field => {
  const [field] = fieldsOf(schemaOf({ f: schema }))
  return field ?? assert.fail("a field")
}

const faultOf = (schema: Json | undefined): FormFault => {
  const form = parseForm(schema)
  return Either.isLeft(form) ? form.left : assert.fail("the schema should be refused")
}

/** The reason why a field of this schema is refused. */
const refused = (schema: JsonObject, name = "f"): FormFault["reason"] => faultOf(schemaOf({ [name]: schema })).reason

const choices = [
  { value: "r", title: "Red" },
  { value: "g", title: "Green" }
]
const titled = [
  { const: "r", title: "Red" },
  { const: "g", title: "Green" }
]

describe("a form", () => {
  it("keeps the order of its fields, their titles, limits and defaults", () => {
    const fields = fieldsOf(
      schemaOf(
        {
          name: { type: "string", title: "Name", description: "Yours", minLength: 2, maxLength: 9, default: "Ann" },
          mail: { type: "string", format: "email" },
          age: { type: "integer", minimum: 0, maximum: 150, default: 30 },
          score: { type: "number", exclusiveMinimum: 0 },
          news: { type: "boolean", default: true }
        },
        { required: ["mail", "name"] }
      )
    )
    assert.deepEqual(fields, [
      {
        kind: "string",
        name: "name",
        title: "Name",
        description: "Yours",
        required: true,
        minLength: 2,
        maxLength: 9,
        default: "Ann"
      },
      { kind: "string", name: "mail", required: true, format: "email" },
      { kind: "integer", name: "age", required: false, minimum: 0, maximum: 150, default: 30 },
      { kind: "number", name: "score", required: false, exclusiveMinimum: 0 },
      { kind: "boolean", name: "news", required: false, default: true }
    ])
  })

  it("may have no fields and then only wants a yes", () => {
    assert.deepEqual([fieldsOf({ type: "object" }), fieldsOf(schemaOf({}))], [[], []])
  })

  it("reads every spelling of one choice", () => {
    const select = { kind: "select", name: "f", required: false, choices } as const
    assert.deepEqual(fieldOf({ type: "string", enum: ["r", "g"], enumNames: ["Red", "Green"] }), select)
    assert.deepEqual(fieldOf({ type: "string", oneOf: titled }), select)
    assert.deepEqual(fieldOf({ type: "string", anyOf: titled, default: "g" }), { ...select, default: "g" })
    const plain = choices.map(({ value }) => ({ value, title: value }))
    assert.deepEqual(fieldOf({ enum: ["r", "g"] }), { ...select, choices: plain })
  })

  it("reads every spelling of several choices", () => {
    const multi = { kind: "multi", name: "f", required: false, choices } as const
    assert.deepEqual(fieldOf({ type: "array", items: { anyOf: titled }, minItems: 1 }), { ...multi, minItems: 1 })
    assert.deepEqual(fieldOf({ type: "array", items: { type: "string", oneOf: titled }, default: ["g"] }), {
      ...multi,
      default: ["g"]
    })
    const plain = choices.map(({ value }) => ({ value, title: value }))
    assert.deepEqual(fieldOf({ type: "array", items: { type: "string", enum: ["r", "g"] } }), {
      ...multi,
      choices: plain
    })
  })

  it("reads a field that may be null as one that may be left out", () => {
    const text = { kind: "string", name: "f", required: false } as const
    assert.deepEqual(fieldOf({ anyOf: [{ type: "string" }, { type: "null" }], default: null }), text)
    assert.deepEqual(fieldOf({ type: ["string", "null"] }), text)
  })

  it("takes numbers that were written with an exponent", () => {
    const form = parseForm(parse('{"type":"object","properties":{"n":{"type":"number","maximum":1e3,"default":2E2}}}'))
    assert.deepEqual(
      form,
      Either.right({ fields: [{ kind: "number", name: "n", required: false, maximum: 1000, default: 200 }] })
    )
  })

  it("keeps names that JavaScript would take for something else", () => {
    assert.deepEqual(
      fieldsOf(
        JSON.parse('{"type":"object","properties":{"__proto__":{"type":"boolean"},"constructor":{"type":"string"}}}')
      ).map(({ name }) => name),
      ["__proto__", "constructor"]
    )
  })

  it("runs a pattern on an engine without backtracking", () => {
    const field = fieldOf({ type: "string", pattern: "^(a+)+$" })
    if (field.kind !== "string") assert.fail("a text")
    assert.deepEqual([field.pattern?.test("aaa"), field.pattern?.test(`${"a".repeat(4_000)}!`)], [true, false])
  })
})

describe("a schema is no form", () => {
  it("when it is no object, or not one of the type object", () => {
    for (const schema of [undefined, null, "form", [], {}, { type: "array" }, { type: "object", properties: [] }])
      assert.oneOf(faultOf(schema).reason, ["misfit", "not_flat"])
  })

  it("when a field is an object, a list of anything, or of no type", () => {
    assert.equal(refused({ type: "object", properties: {} }), "not_flat")
    assert.equal(refused({ type: "array", items: { type: "object" } }), "unsupported")
    assert.equal(refused({ type: "array", items: { type: "string" } }), "unsupported")
    assert.equal(refused({ type: "file" }), "unsupported")
    assert.equal(refused({ type: ["string", "number"] }), "unsupported")
    assert.equal(refused({}), "unsupported")
  })

  it("when it refers to something or combines schemas", () => {
    for (const key of ["$ref", "$dynamicRef", "$recursiveRef"])
      assert.equal(refused({ type: "string", [key]: "#" }), "unsupported")
    for (const key of ["allOf", "not", "if", "patternProperties"]) {
      assert.equal(refused({ type: "string", [key]: {} }), "unsupported")
      assert.equal(refused({ type: "string", enum: ["a"], [key]: {} }), "unsupported")
      assert.equal(faultOf(schemaOf({}, { [key]: {} })).reason, "unsupported")
    }
    assert.equal(refused({ anyOf: [{ type: "string" }, { type: "number" }] }), "unsupported")
    assert.equal(refused({ type: "string", oneOf: titled, anyOf: titled }), "unsupported")
    assert.equal(refused({ type: "number", enum: [1, 2] }), "unsupported")
    assert.equal(refused({ type: "string", pattern: "(?=a)b" }), "unsupported")
  })

  it("when a default does not fit", () => {
    const misfits: ReadonlyArray<JsonObject> = [
      { type: "string", default: 1 },
      { type: "string", minLength: 3, default: "ab" },
      { type: "string", format: "date", default: "2026-02-30" },
      { type: "integer", default: 1.5 },
      { type: "number", maximum: 1, default: 2 },
      { type: "boolean", default: "true" },
      { type: "string", enum: ["a"], default: "b" },
      { type: "array", items: { enum: ["a"] }, default: ["b"] },
      { type: "array", items: { enum: ["a"] }, default: ["a", "a"] },
      { type: "array", items: { enum: ["a", "b"] }, maxItems: 1, default: ["a", "b"] }
    ]
    for (const schema of misfits) assert.equal(refused(schema), "misfit", JSON.stringify(schema))
  })

  it("when nobody could answer it", () => {
    assert.equal(refused({ type: "string", minLength: 2, maxLength: 1 }), "misfit")
    assert.equal(refused({ type: "integer", minimum: 2, maximum: 1 }), "misfit")
    assert.equal(refused({ type: "array", items: { enum: ["a"] }, minItems: 2 }), "misfit")
    assert.equal(refused({ type: "string", enum: [] }), "misfit")
    assert.equal(refused({ type: "string", enum: ["a"], enumNames: [] }), "misfit")
    assert.equal(faultOf(schemaOf({}, { required: ["gone"] })).field, "gone")
  })

  it("when it asks for a credential by name, title or format", () => {
    for (const name of [
      "password",
      "userPassword",
      "API-Key",
      "api_token",
      "accessToken",
      "Client Secret",
      "credentials"
    ]) {
      assert.equal(refused({ type: "string" }, name), "credential", name)
      assert.equal(refused({ type: "string", title: name }), "credential", name)
    }
    assert.equal(refused({ type: "string", title: "Ｐａｓｓｗｏｒｄ" }), "credential")
    assert.equal(refused({ type: "string", format: "password" }), "credential")
    assert.isFalse(asksForCredential("Token count of the next page"))
  })

  it("when it passes a bound, and not one below it", () => {
    const many = (count: number): JsonObject =>
      schemaOf(Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, { type: "boolean" }])))
    assert.lengthOf(fieldsOf(many(32)), 32)
    assert.equal(faultOf(many(33)).reason, "too_large")
    const options = (count: number): JsonObject => ({ enum: Array.from({ length: count }, (_, index) => `o${index}`) })
    assert.equal(fieldOf(options(64)).kind, "select")
    assert.equal(refused(options(65)), "too_large")
    assert.equal(fieldOf({ type: "string", description: "é".repeat(512) }).kind, "string")
    assert.equal(refused({ type: "string", description: `${"é".repeat(512)}x` }), "too_large")
    assert.equal(refused({ type: "string" }, "n".repeat(1_025)), "too_large")
    const nodes = (count: number): JsonObject =>
      schemaOf({ f: { type: "string", examples: Array<string>(count).fill("x") } })
    assert.lengthOf(fieldsOf(nodes(500)), 1)
    assert.equal(faultOf(nodes(512)).reason, "too_large")
    const deep = (levels: number): Json => (levels === 0 ? {} : { x: deep(levels - 1) })
    assert.lengthOf(fieldsOf(schemaOf({ f: { type: "string", examples: deep(4) } })), 1)
    assert.equal(refused({ type: "string", examples: deep(5) }), "too_large")
    const large = schemaOf({ f: { type: "string", $comment: "x".repeat(33_000) } })
    assert.equal(faultOf(large).reason, "too_large")
  })

  it("and the fault names the field in a way that is safe to show", () => {
    const { field, text } = faultOf(schemaOf({ "a\u001b[31mb": { type: "file" } }))
    assert.equal(field, "a\\u001b[31mb")
    assert.notInclude(text, "\u001b")
  })
})

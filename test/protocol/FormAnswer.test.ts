/** Answers to forms: defaults, types, limits, what people type. */
import * as Either from "effect/Either"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import type { Json, JsonObject } from "../../src/base/Json.ts"
import { parse, stringify } from "../../src/protocol/Codec.ts"
import type { Field, Form } from "../../src/protocol/Form.ts"
import { complete, MAX_ANSWER_BYTES, missing, parseField } from "../../src/protocol/FormAnswer.ts"
import { parseForm } from "../../src/protocol/FormSchema.ts"
import { checkField, expectation, looksLikeCredential } from "../../src/protocol/FormValue.ts"

const formOf = (properties: JsonObject, required: ReadonlyArray<string> = []): Form =>
  Either.getOrThrowWith(parseForm({ type: "object", properties, required }), ({ text }) => assert.fail(text))

const fieldOf = (schema: JsonObject): Field => formOf({ f: schema }).fields[0] ?? assert.fail("a field")

/** The answer, or the names and reasons of what is wrong with it. */
const completed = (form: Form, content: JsonObject): Json =>
  Either.match(complete(form, content), {
    onLeft: (faults) => faults.map(({ field, reason }) => `${field ?? "all"} ${reason}`),
    onRight: (whole) => whole
  })

const typed = (schema: JsonObject, text: string): Json | undefined =>
  Either.getOrElse(parseField(fieldOf(schema), text), () => undefined)

const fits = (schema: JsonObject, value: Json): boolean => Either.isRight(checkField(fieldOf(schema), value))

describe("a completed answer", () => {
  it("has the defaults of absent fields and nothing that the form lacks", () => {
    // The defaults of K section 5, row elicitation-sep1034-client-defaults.
    const form = formOf({
      name: { type: "string", default: "John Doe" },
      age: { type: "integer", default: 30 },
      score: { type: "number", default: 95.5 },
      status: { type: "string", enum: ["active", "inactive"], default: "active" },
      verified: { type: "boolean", default: true },
      note: { type: "string" }
    })
    const defaults = { name: "John Doe", age: 30, score: 95.5, status: "active", verified: true }
    assert.deepEqual(completed(form, {}), defaults)
    assert.deepEqual(completed(form, { age: null, note: null, other: 1 }), defaults)
    assert.deepEqual(completed(form, { verified: false, name: "" }), { ...defaults, verified: false, name: "" })
  })

  it("needs what is required and has no default", () => {
    const form = formOf({ a: { type: "string" }, b: { type: "boolean", default: false }, c: { type: "string" } }, [
      "a",
      "b"
    ])
    assert.deepEqual(completed(form, {}), ["a missing"])
    assert.deepEqual(missing(form, { a: null }), ["a"])
    assert.deepEqual(completed(form, { a: "x" }), { a: "x", b: false })
  })

  it("is within bounds as a whole", () => {
    const names = ["a", "b", "c", "d", "e"]
    const form = formOf(Object.fromEntries(names.map((name) => [name, { type: "string" }])))
    const content = (size: number): JsonObject => Object.fromEntries(names.map((name) => [name, "x ".repeat(size / 2)]))
    assert.isObject(completed(form, content(MAX_ANSWER_BYTES / 8)))
    assert.deepEqual(completed(form, content(4_000)), ["all misfit"])
  })

  it("keeps fields whose names JavaScript would take for something else", () => {
    const form = formOf(JSON.parse('{"__proto__":{"type":"string"}}'))
    assert.equal(stringify(completed(form, JSON.parse('{"__proto__":"x"}'))), '{"__proto__":"x"}')
    assert.deepEqual(completed(formOf({ constructor: { type: "string" } }), {}), {})
  })

  it("names each fault with what is expected, never with the value", () => {
    const form = formOf({ n: { type: "integer", minimum: 1, maximum: 9 } })
    assert.deepEqual(
      complete(form, { n: "seven" }),
      Either.left([{ field: "n", reason: "misfit", text: "expected a whole number, 1 to 9" }])
    )
  })
})

describe("a value", () => {
  it("is held against type, limits and options", () => {
    assert.isFalse(fits({ type: "string" }, 1))
    assert.isTrue(fits({ type: "string", maxLength: 2 }, "𝒳𝒴"))
    assert.isFalse(fits({ type: "string", minLength: 3 }, "𝒳𝒴"))
    assert.isTrue(fits({ type: "string" }, "é".repeat(2_048)))
    assert.isFalse(fits({ type: "string" }, `${"é".repeat(2_048)}x`))
    assert.isFalse(fits({ type: "string", pattern: "^a$" }, "b"))
    assert.isTrue(fits({ type: "integer" }, 3))
    assert.isFalse(fits({ type: "integer" }, 3.5))
    assert.isFalse(fits({ type: "integer" }, parse("12345678901234567890")))
    assert.isFalse(fits({ type: "number" }, "3"))
    assert.isFalse(fits({ type: "number", exclusiveMaximum: 3 }, 3))
    assert.isFalse(fits({ type: "boolean" }, "true"))
    assert.isFalse(fits({ enum: ["a"] }, "b"))
    assert.isFalse(fits({ type: "array", items: { enum: ["a"] } }, "a"))
    assert.isFalse(fits({ type: "array", items: { enum: ["a"] }, minItems: 1 }, []))
    assert.isFalse(fits({ type: "array", items: { enum: ["a"] } }, ["a", "a"]))
  })

  it("has the format of its field", () => {
    const rows: ReadonlyArray<readonly [string, ReadonlyArray<string>, ReadonlyArray<string>]> = [
      [
        "email",
        ["ann@example.com", "a+b.c@sub.example.org", "root@localhost"],
        ["ann", "a b@c.de", "a@-x.de", "a@b@c"]
      ],
      ["uri", ["https://example.com/a?b#c", "urn:isbn:1", "mailto:a@b.c"], ["example.com", "/a", "http://a b", "1:x"]],
      [
        "date",
        ["2026-01-31", "2024-02-29", "2000-02-29"],
        ["2026-02-29", "1900-02-29", "26-1-1", "2026-13-01", "2026-00-10"]
      ],
      [
        "date-time",
        ["2026-01-31T18:30:00Z", "2026-01-31t18:30:00.123+02:00"],
        ["2026-01-31", "2026-01-31T18:30:00", "2026-02-30T18:30:00Z", "2026-01-31T25:00:00Z"]
      ]
    ]
    for (const [format, good, bad] of rows) {
      for (const text of good) assert.isTrue(fits({ type: "string", format }, text), `${format} ${text}`)
      for (const text of bad) assert.isFalse(fits({ type: "string", format }, text), `${format} ${text}`)
    }
  })

  it("must not look like a credential, unless the server itself proposed it", () => {
    const token = "aB3".repeat(11)
    assert.deepEqual(completed(formOf({ f: { type: "string" } }), { f: `Bearer ${token}` }), ["f credential"])
    assert.deepEqual(completed(formOf({ f: { type: "string", default: token } }), {}), { f: token })
    assert.isTrue(looksLikeCredential("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"))
    for (const text of [
      "aB3".repeat(10),
      "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
      "Deliver 2 Pizzas to 45 Main Street, please, and ring Twice",
      "https://example.com/Ann/project/issues/1234567?Sort=newest",
      "/home/Ann/Documents/Reports/2026/january.pdf",
      "Firstname.Lastname@department-of-things2.example.com"
    ])
      assert.isFalse(looksLikeCredential(text), text)
  })
})

describe("what a person types", () => {
  it("becomes a number, a yes or a no", () => {
    assert.deepEqual(
      [" 42 ", "-1.5", "+3", "1e3", ".5"].map((text) => typed({ type: "number" }, text)),
      [42, -1.5, 3, 1000, 0.5]
    )
    assert.deepEqual(
      ["", "x", "0x10", "1,5", "Infinity", "1e999"].map((text) => typed({ type: "number" }, text)),
      Array(6).fill(undefined)
    )
    assert.deepEqual([typed({ type: "integer" }, "3.0"), typed({ type: "integer" }, "3.5")], [3, undefined])
    assert.deepEqual(
      ["Y", "yes", "no", "F", "maybe"].map((text) => typed({ type: "boolean" }, text)),
      [true, true, false, undefined, undefined]
    )
    assert.deepEqual([typed({ type: "boolean" }, "false"), typed({ type: "boolean" }, " ON ")], [false, true])
  })

  it("stays as it is in a text", () => {
    assert.equal(typed({ type: "string" }, " 42 "), " 42 ")
  })

  it("names an option by value, title or number", () => {
    const schema = { enum: ["r", "g", "b"], enumNames: ["Red", "Green", "Blue"] }
    assert.deepEqual(
      ["g", "Green", "gREEN", "2", "0", "4", "x", ""].map((text) => typed(schema, text)),
      ["g", "g", "g", "g", undefined, undefined, undefined, undefined]
    )
    const many = { type: "array", items: { enum: ["r", "g", "b, c"] } }
    assert.deepEqual(
      ["1,3", "b, c", "r , g,", "r,r", "r,x", ""].map((text) => typed(many, text)),
      [["r", "b, c"], ["b, c"], ["r", "g"], ["r"], undefined, []]
    )
  })

  it("never means an option by number where options are numbers themselves", () => {
    const schema = { enum: ["3", "2", "1"] }
    assert.deepEqual([typed(schema, "1"), typed(schema, "3"), typed(schema, "4")], ["1", "3", undefined])
  })
})

describe("what is expected", () => {
  it("is said in a few words", () => {
    const said = (schema: JsonObject): string => expectation(fieldOf(schema))
    assert.equal(said({ type: "string" }), "text")
    assert.equal(said({ type: "string", minLength: 2, maxLength: 9 }), "text, 2 to 9 characters")
    assert.equal(said({ type: "string", maxLength: 9 }), "text, at most 9 characters")
    assert.equal(said({ type: "string", pattern: "^[A-Z]+$" }), "text, matching ^[A-Z]+$")
    assert.equal(said({ type: "number", exclusiveMinimum: 0 }), "a number, more than 0")
    assert.equal(
      said({ type: "array", items: { enum: ["a", "b"] }, minItems: 1 }),
      "any of the options, at least 1 of them"
    )
  })
})

// --- Properties -----------------------------------------------------------------------------------------------------

const words = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 6 })
const bounds = fc.tuple(fc.integer({ min: -50, max: 50 }), fc.integer({ min: 0, max: 50 }))

/** A schema with a value that fits it. */
const sample: fc.Arbitrary<readonly [JsonObject, Json]> = fc.oneof(
  fc.string({ maxLength: 20 }).map((text) => [{ type: "string", maxLength: 20 }, text] as const),
  bounds.chain(([minimum, width]) =>
    fc
      .integer({ min: minimum, max: minimum + width })
      .map((value) => [{ type: "integer", minimum, maximum: minimum + width }, value] as const)
  ),
  fc
    .double({ noNaN: true, noDefaultInfinity: true })
    .map((value) => [{ type: "number" }, value === 0 ? 0 : value] as const),
  fc.boolean().map((value) => [{ type: "boolean" }, value] as const),
  words.chain((options) => fc.constantFrom(...options).map((value) => [{ enum: options }, value] as const)),
  words.chain((options) =>
    fc.subarray(options).map((value) => [{ type: "array", items: { enum: options } }, value] as const)
  )
)
/** A form's properties with an answer, and which of its fields have that answer as their default. */
const samples = fc.array(fc.tuple(sample, fc.boolean(), fc.boolean()), { maxLength: 8 }).map((parts) => ({
  properties: Object.fromEntries(
    parts.map(([[schema, value], hasDefault], index) => [
      `f${index}`,
      hasDefault ? { ...schema, default: value } : schema
    ])
  ),
  required: parts.flatMap(([, , required], index) => (required ? [`f${index}`] : [])),
  answer: Object.fromEntries(parts.map(([[, value]], index) => [`f${index}`, value])),
  defaults: Object.fromEntries(
    parts.flatMap(([[, value], hasDefault], index) => (hasDefault ? [[`f${index}`, value] as const] : []))
  )
}))

describe("properties", () => {
  it("an answer that fits comes through whole, defaults alone come through too", () => {
    fc.assert(
      fc.property(samples, ({ answer, defaults, properties, required }) => {
        const form = formOf(properties, required)
        assert.deepEqual(completed(form, answer), answer)
        assert.deepEqual(completed(formOf(properties), {}), defaults)
      })
    )
  })

  it("what is let through always fits, whatever was given", () => {
    fc.assert(
      fc.property(samples, fc.dictionary(fc.constantFrom("f0", "f1", "f2", "x"), fc.jsonValue()), (given, content) => {
        const form = formOf(given.properties, given.required)
        // fast-check's JSON values are JSON.
        const result = complete(form, content as JsonObject)
        if (Either.isLeft(result)) return
        assert.deepEqual(complete(form, result.right), result)
        for (const [name, value] of Object.entries(result.right)) {
          const field = form.fields.find((one) => one.name === name) ?? assert.fail("a field of the form")
          assert.isTrue(value !== undefined && Either.isRight(checkField(field, value)))
        }
        assert.deepEqual(
          missing(form, result.right).filter((name) => given.required.includes(name)),
          []
        )
      })
    )
  })

  it("what is typed is a value that fits, or a fault", () => {
    fc.assert(
      fc.property(sample, fc.string(), ([schema], text) => {
        const field = fieldOf(schema)
        const value = parseField(field, text)
        if (Either.isRight(value)) assert.isTrue(Either.isRight(checkField(field, value.right)))
      })
    )
  })
})

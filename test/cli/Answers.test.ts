/** `--answers FILE`: what is one, what is none and where, and which form gets which answer. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { JsonObject } from "../../src/base/Json.ts"
import * as Answers from "../../src/cli/Answers.ts"
import { exitCodeOf } from "../../src/base/Failure.ts"
import { callFailure, make as makeElicitation } from "../../src/server/Elicitation.ts"
import { parseForm } from "../../src/protocol/FormSchema.ts"

const answersOf = (text: string): Answers.Answers =>
  Either.getOrThrowWith(Answers.parseAnswers(text, "/a.json"), (error) => assert.fail(error.text))

const faultOf = (text: string) => {
  const parsed = Answers.parseAnswers(text, "/a.json")
  return Either.isLeft(parsed) ? parsed.left : assert.fail("the file should be refused")
}

const form = (properties: JsonObject, required: ReadonlyArray<string> = []) => ({
  server: "shop",
  message: "",
  form: Either.getOrThrowWith(parseForm({ type: "object", properties, required }), ({ text }) => assert.fail(text))
})
const nameForm = form({ name: { type: "string" } }, ["name"])

describe("an answers file", () => {
  it("is one object for every form, or a list with one for each", () => {
    assert.deepEqual(answersOf('{"name": "Ann", "tags": ["a"], "age": 3, "ok": true}'), [
      { action: "accept", content: Object.assign(Object.create(null), { name: "Ann", tags: ["a"], age: 3, ok: true }) }
    ])
    assert.deepEqual(
      answersOf('\ufeff[{"a": 1}, // comments are fine\n {"action": "decline"}, {"action": "cancel"},]').map(
        ({ action }) => action
      ),
      ["accept", "decline", "cancel"]
    )
  })

  it("may give an answer with its action, so that a field named action stays possible", () => {
    const [given] = answersOf('{"action": "accept", "content": {"action": "decline"}}')
    assert.deepEqual(
      { ...given },
      { action: "accept", content: Object.assign(Object.create(null), { action: "decline" }) }
    )
    const [field] = answersOf('{"action": "buy"}')
    assert.equal(field.action, "accept")
  })

  it("is refused with its place when it is something else", () => {
    const rows: ReadonlyArray<
      readonly [text: string, line: number | undefined, column: number | undefined, field: string | undefined]
    > = [
      ["", 1, 1, undefined],
      ['{"a": }', 1, 7, undefined],
      ['"text"', 1, 1, undefined],
      ["[]", 1, 1, undefined],
      ['[{"a": 1},\n 7]', 2, 2, "[1]"],
      ['{"a": 1,\n "b": null}', 2, 7, "b"],
      ['[{"a": {"b": 1}}]', 1, 8, "[0].a"],
      ['{"a": ["x", 1]}', 1, 13, "a"],
      ['{"a": 1, "a": 2}', 1, 10, "a"],
      ['{"action": "accept", "content": 3}', 1, 33, "content"]
    ]
    for (const [text, line, column, field] of rows) {
      const fault = faultOf(text)
      assert.deepEqual([fault.where?.line, fault.where?.column, fault.where?.field], [line, column, field], text)
      assert.deepEqual([fault.where?.file, exitCodeOf(fault)], ["/a.json", 2])
    }
    assert.include(faultOf(`{"a": "${"x".repeat(1_100_000)}"}`).text, "larger")
  })
})

describe("the answer to a form", () => {
  it.effect("is the next one of the list; the last one repeats", () =>
    Effect.gen(function* () {
      const elicitor = Answers.make(
        answersOf('[{"name": "one"}, {"action": "decline"}, {"name": "three", "other": 1}]')
      )
      const answers = yield* Effect.forEach([1, 2, 3, 4], () => elicitor.form(nameForm))
      assert.deepEqual(answers, [
        { action: "accept", content: { name: "one" } },
        { action: "decline" },
        { action: "accept", content: { name: "three" } },
        { action: "accept", content: { name: "three" } }
      ])
      assert.notProperty(elicitor, "url")
    })
  )

  it.effect("is missing where the file lacks a required field without a default", () =>
    Effect.gen(function* () {
      const asked = form({ a: { type: "string" }, b: { type: "string", default: "x" }, c: { type: "string" } }, [
        "a",
        "b",
        "c"
      ])
      assert.deepEqual(yield* Answers.make(answersOf('{"c": "y"}')).form(asked), {
        action: "unanswered",
        fields: ["a"]
      })
    })
  )

  it.effect("of a wrong type fails the call with the field and what was expected", () =>
    Effect.gen(function* () {
      const elicitation = makeElicitation({
        server: "shop",
        urlMode: false,
        mayLeave: () => true,
        redact: (text) => text,
        audit: () => Effect.void
      })
      const requestedSchema = { type: "object", properties: { age: { type: "integer", minimum: 1 } } }
      const ask = (text: string) => elicitation.answer({ message: "", requestedSchema }, Answers.make(answersOf(text)))
      assert.deepEqual(yield* ask('{"age": 30}'), { action: "accept", content: { age: 30 } })
      const fault = yield* Effect.flip(ask('{"age": "30"}'))
      if (fault._tag !== "Unanswered") assert.fail(fault._tag)
      const failure = callFailure("shop", "tools/call", fault)
      assert.equal(exitCodeOf(failure), 4)
      assert.include(failure.text, "'age': expected a whole number, at least 1")
    })
  )
})

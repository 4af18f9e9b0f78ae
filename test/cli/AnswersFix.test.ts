import { assert, describe, it } from "vitest"
import { fixOf } from "../../src/base/Failure.ts"
import { fitting } from "../../src/cli/AnswersFix.ts"
import { ConnectionError } from "../../src/server/ServerError.ts"

const wanting = (reason: string, fields: ReadonlyArray<string> = [], fix?: string): ConnectionError =>
  new ConnectionError({ code: "SIGIL_INPUT_REQUIRED", reason, text: "It asked.", fix, details: { fields } })
const file = { has: true, file: "a.json" }

describe("the fix of a failure that wants input", () => {
  it.each([
    ["a field without an answer", wanting("input_required", ["name", "age"]), "Add 'name', 'age' to a.json."],
    ["a wrong answer", wanting("answer_misfit", ["age"]), "Correct 'age' in a.json."],
    ["a form that nobody described", wanting("input_required"), "Add the fields of the form to a.json."],
    ["something that no file answers", wanting("input_not_available"), "Call from a terminal without --answers"]
  ])("names the file that was given: %s", (_, failure, expected) => {
    const fitted = fitting(file)(failure)
    assert.include(fixOf(fitted), expected)
    assert.deepEqual([fitted.code, fitted.text, fitted.details], [failure.code, failure.text, failure.details])
  })

  it("speaks of --answers only where the command has it", () => {
    const failure = wanting("input_required", ["name"])
    assert.include(fixOf(fitting({ has: true, file: undefined })(failure)), "--answers FILE")
    assert.notInclude(fixOf(fitting({ has: false, file: undefined })(failure)), "--answers")
  })

  it("leaves what has a fix of its own", () => {
    assert.equal(fixOf(fitting(file)(wanting("url_elicitation_declined", [], "Ask again."))), "Ask again.")
    const other = new ConnectionError({ code: "SIGIL_CONNECTION_LOST", reason: "closed", text: "Gone." })
    assert.strictEqual(fitting(file)(other), other)
  })
})

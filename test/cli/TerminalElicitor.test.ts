/** Forms and addresses on a terminal: what is asked, what is shown, what comes of the answers. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as TerminalElicitor from "../../src/cli/TerminalElicitor.ts"
import type { JsonObject } from "../../src/base/Json.ts"
import { layerTest, Terminal, TestTerminal } from "../../src/platform/Terminal.ts"
import { parseForm } from "../../src/protocol/FormSchema.ts"

const SECRET = "known-value-4711"

interface Asked {
  readonly lines: ReadonlyArray<string>
  readonly required?: ReadonlyArray<string>
  readonly message?: string
  readonly tty?: boolean
}

/** Asks for these properties with these lines typed; the answer and what was shown. */
const asked = (properties: JsonObject, { lines, message = "Hello", required = [], tty = true }: Asked) =>
  Effect.gen(function* () {
    const parsed = parseForm({ type: "object", properties, required })
    const form = Either.getOrThrowWith(parsed, ({ text }) => assert.fail(text))
    const elicitor = TerminalElicitor.make(yield* Terminal, (text) => text.replaceAll(SECRET, "[hidden]"))
    const answer = yield* elicitor.form({ server: "shop", message, form })
    return { answer, shown: (yield* TestTerminal).stderr() }
  }).pipe(Effect.provide(layerTest({ tty, lines })))

const opened = (lines: ReadonlyArray<string>, tty = true) =>
  Effect.gen(function* () {
    const elicitor = TerminalElicitor.make(yield* Terminal, (text) => text)
    const answer = yield* elicitor.url({
      server: "shop",
      message: "Sign in",
      url: "https://example.com/a?b=c",
      host: "example.com",
      warnings: ["Look twice."]
    })
    return { answer: answer.action, shown: (yield* TestTerminal).stderr() }
  }).pipe(Effect.provide(layerTest({ tty, lines })))

describe("a form on a terminal", () => {
  it.effect("asks one question per field and submits after a last look", () =>
    Effect.gen(function* () {
      const { answer, shown } = yield* asked(
        {
          name: { type: "string", title: "Full name", description: "As on your passport", minLength: 2 },
          size: {
            type: "string",
            oneOf: [
              { const: "s", title: "Small" },
              { const: "l", title: "Large" }
            ]
          },
          tops: { type: "array", items: { enum: ["ham", "olives"] } },
          count: { type: "integer", minimum: 1, maximum: 9 },
          news: { type: "boolean" }
        },
        { lines: ["Ann", "2", "ham, 2", "3", "y", "s"], required: ["name"] }
      )
      assert.deepEqual(answer, {
        action: "accept",
        content: { name: "Ann", size: "l", tops: ["ham", "olives"], count: 3, news: true }
      })
      for (const text of [
        "the server 'shop' asks you 5 questions",
        "it says  Hello",
        "1 of 5  Full name (required)",
        "As on your passport",
        "2 of 5  size (optional)",
        " 2  Large (l)",
        "a whole number, 1 to 9",
        "[s]ubmit, [e]dit, [d]ecline, [c]ancel: "
      ])
        assert.include(shown, text)
      assert.match(shown, /Your answers to 'shop':\n {2}Full name {2}Ann\n {2}size {7}Large\n {2}tops {7}ham, olives\n/)
    })
  )

  it.effect("takes a default with Enter and leaves out what is optional", () =>
    Effect.gen(function* () {
      const { answer, shown } = yield* asked(
        { a: { type: "string", default: "x" }, b: { type: "string" }, c: { type: "boolean", default: false } },
        { lines: ["", "", "", "submit"] }
      )
      assert.deepEqual(answer, { action: "accept", content: { a: "x", c: false } })
      assert.include(shown, "[leave out] > ")
      assert.include(shown, "[no] > ")
      assert.match(shown, /b {2}\(left out\)/)
    })
  )

  it.effect("can empty what has a default, where nothing is a value", () =>
    Effect.gen(function* () {
      const { answer } = yield* asked(
        {
          a: { type: "string", default: "x" },
          b: { type: "array", items: { enum: ["p", "q"] }, default: ["p"] },
          c: { type: "string", minLength: 1, default: "z" }
        },
        { lines: [":none", ":none", "", "s"] }
      )
      assert.deepEqual(answer, { action: "accept", content: { a: "", b: [], c: "z" } })
    })
  )

  it.effect("asks again for a value that does not do, and says why", () =>
    Effect.gen(function* () {
      const { answer, shown } = yield* asked(
        { n: { type: "integer", maximum: 9 }, t: { type: "string" } },
        { lines: ["", "ten", "10", "9", "aB3".repeat(11), `ghp_${"a1".repeat(18)}`, "t", "s"], required: ["n", "t"] }
      )
      assert.deepEqual(answer, { action: "accept", content: { n: 9, t: "t" } })
      assert.include(shown, "Not taken: a value is required.")
      assert.include(shown, "Not taken: expected a whole number, at most 9.")
      assert.lengthOf(shown.match(/Not taken: this looks like a key or token/g) ?? [], 2)
    })
  )

  it.effect("asks again from the start on edit, with the answers so far in brackets", () =>
    Effect.gen(function* () {
      const { answer, shown } = yield* asked(
        { a: { type: "string" }, b: { type: "string" }, c: { type: "string" } },
        { lines: ["one", "two", "", "e", "", ":none", "three", "s"] }
      )
      assert.deepEqual(answer, { action: "accept", content: { a: "one", c: "three" } })
      assert.include(shown, "[one, :none leaves it out] > ")
    })
  )

  it.effect("is declined or cancelled at any question, and cancelled by the end of input", () =>
    Effect.gen(function* () {
      const form = { a: { type: "string" }, b: { type: "string" } }
      const answers = [
        ["x", ":decline"],
        [":cancel"],
        ["x", "y", "d"],
        ["x", "y", "?", "c"],
        ["x", "y", ":decline"],
        ["x"],
        ["x", "y"]
      ]
      const actions = yield* Effect.forEach(answers, (lines) =>
        Effect.map(asked(form, { lines }), ({ answer }) => answer)
      )
      assert.deepEqual(
        actions.map(({ action }) => action),
        ["decline", "cancel", "decline", "cancel", "decline", "cancel", "cancel"]
      )
    })
  )

  it.effect("without fields only wants a yes", () =>
    Effect.gen(function* () {
      const { answer, shown } = yield* asked({}, { lines: ["", "y"] })
      assert.deepEqual(answer, { action: "accept", content: {} })
      assert.include(shown, "[y]es, [d]ecline, [c]ancel: ")
    })
  )

  it.effect("shows nothing of a server's escape codes and no secret", () =>
    Effect.gen(function* () {
      const bad = "\u001b[31mred\u202e"
      const { answer, shown } = yield* asked(
        {
          [bad]: { type: "string", description: `d${bad}\nsigil: fake`, default: SECRET },
          [SECRET]: { type: "string", enum: [`o${bad}`] }
        },
        { lines: ["", "1", "s"], message: `m${bad}\nsigil: all is well` }
      )
      assert.deepEqual(answer, { action: "accept", content: { [bad]: SECRET, [SECRET]: `o${bad}` } })
      assert.notInclude(shown, "\u001b")
      assert.notInclude(shown, "\u202e")
      assert.notInclude(shown, SECRET)
      // A second line of the server never stands where a line of sigil would.
      assert.notMatch(shown, /^sigil: (?:all|fake)/m)
    })
  )

  it.effect("asks nobody where there is no terminal", () =>
    Effect.gen(function* () {
      const { answer, shown } = yield* asked({ a: { type: "string" } }, { lines: ["x", "s"], tty: false })
      assert.deepEqual([answer, shown], [{ action: "unanswered", fields: ["a"] }, ""])
    })
  )
})

describe("an address on a terminal", () => {
  it.effect("stands whole on a line of its own, with host and warnings", () =>
    Effect.gen(function* () {
      const { answer, shown } = yield* opened(["x", "o"])
      assert.equal(answer, "accept")
      assert.include(shown, "\nhttps://example.com/a?b=c\n")
      for (const text of ["server 'shop'", "it says  Sign in", "host     example.com", "warning  Look twice."])
        assert.include(shown, text)
    })
  )

  it.effect("is opened only on a word", () =>
    Effect.gen(function* () {
      const answers = yield* Effect.forEach([["", "d"], ["c"], []], (lines) =>
        Effect.map(opened(lines), ({ answer }) => answer)
      )
      assert.deepEqual(answers, ["decline", "cancel", "cancel"])
      assert.equal((yield* opened(["o"], false)).answer, "cancel")
    })
  )
})

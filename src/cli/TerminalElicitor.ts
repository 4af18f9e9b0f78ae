/**
 * Asks a person on a terminal what a server wants to know: one question per field, then a last look at the answers
 * (MCP elicitation; K section 9.14).
 *
 * Everything goes to stderr, so a piped stdout stays clean. The header names the server, because a form of one server
 * must not pass for another's or for sigil's own. Every text of the server is escaped, and stands indented, so that
 * it cannot look like a line of sigil. Nothing is sent before `submit`; the end of input is a cancel.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { clip, escapeBlock } from "../base/Display.ts"
import { type Json, type JsonObject, own } from "../base/Json.ts"
import type { Terminal } from "../platform/Terminal.ts"
import * as CredentialScan from "../policy/CredentialScan.ts"
import { stringify } from "../protocol/Codec.ts"
import type { Field, Form } from "../protocol/Form.ts"
import { numbered, parseField } from "../protocol/FormAnswer.ts"
import { checkField, CREDENTIAL, expectation } from "../protocol/FormValue.ts"
import type { Elicitor, FormAnswer, FormRequest, UrlAnswer, UrlRequest } from "../server/Elicitor.ts"
import { bold, dim, type Line, red, render, yellow } from "./Markup.ts"

/** Characters of a value in a prompt or in the list of answers. */
const SHOWN_VALUE = 120
/** Characters of a title or an option. */
const SHOWN_TITLE = 200

/** What ends a form before its end. */
type Left = Extract<FormAnswer, { readonly action: "decline" | "cancel" }>

const labelOf = (field: Field): string =>
  clip(field.title === undefined || field.title.trim() === "" ? field.name : field.title, SHOWN_TITLE)

/** A value as people read it. */
const shown = (field: Field, value: Json): string => {
  const titleOf = (one: Json): string =>
    "choices" in field ? (field.choices.find((choice) => choice.value === one)?.title ?? String(one)) : String(one)
  if (typeof value === "boolean") return value ? "yes" : "no"
  if (Array.isArray(value)) {
    // Array.isArray does not narrow readonly arrays.
    const items = value as ReadonlyArray<Json>
    return items.length === 0 ? "none of them" : items.map(titleOf).join(", ")
  }
  return typeof value === "string" || typeof value === "number" ? titleOf(value) : stringify(value)
}

/** What is typed for this kind, beyond what `expectation` says. */
const howTo = (field: Field): string => {
  switch (field.kind) {
    case "select":
      return numbered(field.choices) ? "Type its number or its name." : "Type its name."
    case "multi":
      return `${expectation(field)}; type ${numbered(field.choices) ? "numbers" : "names"} with commas between`
    default:
      return expectation(field)
  }
}

/** The value of a field that holds nothing, where it may: an empty text, none of the options. */
const emptyOf = (field: Field): Json | undefined => {
  if (field.kind !== "string" && field.kind !== "multi") return undefined
  return Either.getOrElse(checkField(field, field.kind === "string" ? "" : []), () => undefined)
}

const optionLines = (field: Field): ReadonlyArray<string> =>
  "choices" in field
    ? field.choices.map(({ title, value }, index) => {
        const number = numbered(field.choices) ? `${String(index + 1).padStart(2)}  ` : "- "
        const same = title.trim().toLowerCase() === value.toLowerCase()
        return `${number}${clip(title, SHOWN_TITLE)}${same ? "" : ` (${clip(value, SHOWN_TITLE)})`}`
      })
    : []

/**
 * An elicitor on this terminal.
 *
 * @param redact Hides known secrets in names and defaults, which a form keeps as they are.
 */
export const make = (
  terminal: Context.Tag.Service<typeof Terminal>,
  redact: (text: string) => string
): Required<Elicitor> => {
  const turn = Effect.unsafeMakeSemaphore(1)
  const say = (lines: ReadonlyArray<Line>): Effect.Effect<void> =>
    terminal.writeError(lines.map((line) => `${render(line, terminal.colour)}\n`).join(""))

  /** A fact under its name; further lines of it stay indented. */
  const fact = (name: string, text: string): ReadonlyArray<Line> =>
    escapeBlock(redact(text))
      .split("\n")
      .map((line, index) => [dim(`  ${(index === 0 ? name : "").padEnd(9)}`), line])

  const valueText = (field: Field, value: Json): string => clip(redact(shown(field, value)), SHOWN_VALUE)

  /** One question; `undefined` leaves the field out. `before` is what was answered earlier. */
  const ask = (field: Field, place: string, before: Json | undefined): Effect.Effect<Json | undefined, Left> =>
    Effect.gen(function* () {
      const given = before ?? field.default
      const indent = " ".repeat(place.length + 2)
      yield* say([
        "",
        [dim(`${place}  `), bold(redact(labelOf(field))), dim(field.required ? " (required)" : " (optional)")],
        ...(field.description === undefined || field.description.trim() === ""
          ? []
          : escapeBlock(field.description.trim())
              .split("\n")
              .map((line) => `${indent}${line}`)),
        ...optionLines(field).map((line) => `${indent}${line}`),
        dim(`${indent}${howTo(field)}`)
      ])
      // A default of the server's stands in for an absent answer, so such a field can only be emptied.
      const droppable = !field.required && field.default === undefined
      const empty = droppable ? undefined : emptyOf(field)
      const none = droppable ? ", :none leaves it out" : empty === undefined ? "" : ", :none for nothing"
      const hint = given === undefined ? (droppable ? "[leave out] " : "") : `[${valueText(field, given)}${none}] `
      while (true) {
        const line = yield* terminal.readLine(`${render(hint, false)}> `)
        if (line === undefined) return yield* Effect.fail<Left>({ action: "cancel" })
        const word = line.trim().toLowerCase()
        if (word === ":decline") return yield* Effect.fail<Left>({ action: "decline" })
        if (word === ":cancel") return yield* Effect.fail<Left>({ action: "cancel" })
        if (droppable && (word === ":none" || (word === "" && given === undefined))) return undefined
        if (word === ":none" && empty !== undefined) return empty
        if (word === "" && given !== undefined) return given
        const parsed: ReturnType<typeof parseField> =
          word === "" && field.kind !== "multi"
            ? Either.left({ field: field.name, reason: "missing", text: "a value is required" })
            : parseField(field, line)
        // What the gate would refuse at the end is better said now.
        const key = Either.isRight(parsed) && typeof parsed.right === "string" && CredentialScan.finds(parsed.right)
        if (Either.isRight(parsed) && !(key && field.kind === "string")) return parsed.right
        const why = Either.isLeft(parsed) ? parsed.left.text : CREDENTIAL
        yield* say([[red(`${indent}Not taken: `), `${why}.`]])
      }
    })

  const summary = (form: Form, content: JsonObject): ReadonlyArray<Line> => {
    const labels = form.fields.map((field) => clip(redact(labelOf(field)), 40))
    const width = Math.max(...labels.map((label) => label.length))
    return form.fields.map((field, index) => {
      const value = own(content, field.name)
      return [
        dim(`  ${(labels[index] ?? "").padEnd(width)}  `),
        value === undefined ? dim("(left out)") : valueText(field, value)
      ]
    })
  }

  /** One of the words, by itself or its first letter; asks again for anything else. */
  const choose = <A extends string>(words: ReadonlyArray<A>): Effect.Effect<A | "cancel"> =>
    Effect.gen(function* () {
      const text = words.map((word) => `[${word.slice(0, 1)}]${word.slice(1)}`).join(", ")
      while (true) {
        const line = yield* terminal.readLine(`${text}: `)
        if (line === undefined) return "cancel"
        const typed = line.trim().toLowerCase().replace(/^:/, "")
        const found = words.find((word) => typed === word || typed === word.slice(0, 1))
        if (found !== undefined) return found
      }
    })

  const fill = ({ form, message, server }: FormRequest): Effect.Effect<FormAnswer, Left> =>
    Effect.gen(function* () {
      const { length } = form.fields
      const what = length === 0 ? "for a yes" : length === 1 ? "one question" : `${length} questions`
      yield* say([
        "",
        ["sigil: the server '", bold(server), `' asks you ${what}.`],
        ...fact("it says", message),
        ...(length === 0
          ? []
          : [
              dim("  Your answers go to this server, and only after you submit them."),
              dim("  Type :decline to refuse, :cancel to leave; Enter takes what stands in [ ].")
            ])
      ])
      let content: JsonObject = {}
      while (true) {
        const entries: Array<readonly [string, Json]> = []
        for (const [index, field] of form.fields.entries()) {
          const value = yield* ask(field, `${index + 1} of ${length}`, own(content, field.name))
          if (value !== undefined) entries.push([field.name, value])
        }
        content = Object.fromEntries(entries)
        if (length > 0) yield* say(["", ["Your answers to '", bold(server), "':"], ...summary(form, content)])
        const chosen =
          length === 0
            ? yield* choose(["yes", "decline", "cancel"])
            : yield* choose(["submit", "edit", "decline", "cancel"])
        if (chosen === "submit" || chosen === "yes") return { action: "accept", content } as const
        if (chosen !== "edit") return { action: chosen } as const
      }
    })

  const open = ({ host, message, server, url, warnings }: UrlRequest): Effect.Effect<UrlAnswer> =>
    Effect.gen(function* () {
      yield* say([
        "",
        ["sigil: the server '", bold(server), "' asks you to open an address in your browser."],
        ...fact("it says", message),
        [dim("  host     "), bold(host)],
        ...warnings.map((warning): Line => [dim("  warning  "), yellow(warning)]),
        "",
        url,
        "",
        dim("sigil does not open it. If you trust this address, open it in your browser, then answer 'o'.")
      ])
      const chosen = yield* choose(["opened", "decline", "cancel"])
      return { action: chosen === "opened" ? "accept" : chosen } as const
    })

  const closed = terminal.writeError("\nsigil: the question is closed; nothing was sent.\n")
  const asked = <A>(one: Effect.Effect<A>, nobody: A): Effect.Effect<A> =>
    terminal.stdinIsTty && terminal.stderrIsTty
      ? turn.withPermits(1)(one.pipe(Effect.onInterrupt(() => closed)))
      : Effect.succeed(nobody)
  return {
    form: (request) =>
      asked<FormAnswer>(fill(request).pipe(Effect.catchAll((left) => Effect.succeed(left))), {
        action: "unanswered",
        fields: request.form.fields.map(({ name }) => name)
      }),
    url: (request) => asked<UrlAnswer>(open(request), { action: "cancel" })
  }
}

/**
 * `--answers FILE`: answers to forms, given before anything starts (spec section 1).
 *
 * The file is one JSON object from field to value, used for every form, or a list of them, one per form in order, the
 * last one for all that follow. `{"action": "decline"}` declines, `{"action": "cancel"}` cancels. It is read and
 * checked first, so that a slip in it costs no started server. Values are held against the form when it comes.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as path from "node:path"
import type { JsonObject } from "../base/Json.ts"
import { own } from "../base/Json.ts"
import { KIB } from "../base/Units.ts"
import { parse } from "../config/JsonText.ts"
import {
  childPath,
  deepDuplicate,
  type LocatedNode,
  type LocatedObject,
  objectToJson,
  type Position,
  propertyOf
} from "../config/Located.ts"
import { kindText } from "../config/Problem.ts"
import { readText } from "../platform/AtomicFile.ts"
import { HostEnvironment } from "../platform/HostEnvironment.ts"
import { missing } from "../protocol/FormAnswer.ts"
import type { Elicitor, FormAnswer } from "../server/Elicitor.ts"
import { UsageError } from "./UsageError.ts"

/** Bytes of an answers file; 64 forms of the largest answer. */
const MAX_FILE_BYTES = 1_024 * KIB

/** What one form gets. */
export type Given =
  | { readonly action: "accept"; readonly content: JsonObject }
  | { readonly action: "decline" | "cancel" }

/** Answers in the order of the forms; at least one. */
export type Answers = readonly [Given, ...ReadonlyArray<Given>]

const FORM = 'An answers file is one JSON object such as {"name": "Ann", "age": 30}, or a list of them, one per form.'

const bad = (file: string, text: string, at?: Position, field?: string): UsageError =>
  new UsageError({
    code: "SIGIL_USAGE",
    reason: "answers_invalid",
    text: `--answers: ${text}`,
    fix: FORM,
    where: {
      file,
      ...(at === undefined ? {} : { line: at.line, column: at.column }),
      ...(field === undefined || field === "" ? {} : { field })
    }
  })

type Read<A> = Either.Either<A, UsageError>

/** A value of an answer: a text, a number, true or false, or a list of texts. */
const checkValue = (file: string, field: string, value: LocatedNode): UsageError | undefined => {
  if (value.kind === "string" || value.kind === "number" || value.kind === "boolean") return undefined
  if (value.kind === "array") {
    const odd = value.items.find(({ kind }) => kind !== "string")
    return odd === undefined
      ? undefined
      : bad(file, `'${field}' holds ${kindText(odd)}; a list of answers holds texts only.`, odd.at, field)
  }
  return bad(
    file,
    `'${field}' is ${kindText(value)}; an answer is a text, a number, true or false, or a list of texts.`,
    value.at,
    field
  )
}

const contentOf = (file: string, object: LocatedObject, prefix: string): Read<Given> => {
  for (const { key, value } of object.properties) {
    const fault = checkValue(file, childPath(prefix, key), value)
    if (fault !== undefined) return Either.left(fault)
  }
  return Either.right({ action: "accept", content: objectToJson(object) })
}

/** Whether the object is an answer with its action, as it goes over the wire, and not the fields of one. */
const actionOf = (object: LocatedObject): "accept" | "decline" | "cancel" | undefined => {
  if (!object.properties.every(({ key }) => key === "action" || key === "content")) return undefined
  const action = propertyOf(object, "action")?.value
  if (action?.kind !== "string") return undefined
  return (["accept", "decline", "cancel"] as const).find((known) => known === action.value)
}

const givenOf = (file: string, node: LocatedNode, prefix: string): Read<Given> => {
  if (node.kind !== "object")
    return Either.left(bad(file, `${kindText(node)} stands where an object of answers is expected.`, node.at, prefix))
  const action = actionOf(node)
  if (action === undefined) return contentOf(file, node, prefix)
  const content = propertyOf(node, "content")
  if (action !== "accept") return Either.right({ action })
  if (content === undefined) return Either.right({ action, content: {} })
  const inner = childPath(prefix, "content")
  return content.value.kind === "object"
    ? contentOf(file, content.value, inner)
    : Either.left(bad(file, `'${inner}' is ${kindText(content.value)}, not an object.`, content.value.at, inner))
}

/** The answers of a file's text; `file` is for messages. */
export const parseAnswers = (text: string, file: string): Read<Answers> => {
  const size = Buffer.byteLength(text)
  if (size > MAX_FILE_BYTES) return Either.left(bad(file, `the file is larger than ${MAX_FILE_BYTES} bytes.`))
  const parsed = parse(text, file)
  if (Either.isLeft(parsed)) {
    const { text: why, where } = parsed.left
    const at = where?.line === undefined ? undefined : { line: where.line, column: where.column ?? 1 }
    return Either.left(bad(file, why, at))
  }
  const root = parsed.right
  const twice = deepDuplicate(root, "")
  if (twice !== undefined) return Either.left(bad(file, `'${twice.path}' is given twice.`, twice.at, twice.path))
  if (root.kind !== "array") return Either.map(givenOf(file, root, ""), (one): Answers => [one])
  const all: Array<Given> = []
  for (const [index, item] of root.items.entries()) {
    const one = givenOf(file, item, `[${index}]`)
    if (Either.isLeft(one)) return Either.left(one.left)
    all.push(one.right)
  }
  const [first, ...rest] = all
  return first === undefined ? Either.left(bad(file, "the list is empty.", root.at)) : Either.right([first, ...rest])
}

/** Reads an answers file. Fails with exit 2 and the position when it is not one; `-` is for arguments only. */
export const readAnswers = (name: string) =>
  Effect.gen(function* () {
    const { cwd } = yield* HostEnvironment
    if (name === "" || name === "-") return yield* bad(name, "the name of a file is expected.")
    const file = path.resolve(cwd, name)
    const text = yield* readText(file).pipe(Effect.mapError((error) => bad(file, error.text)))
    if (text === undefined) return yield* bad(file, "there is no such file.")
    return yield* parseAnswers(text, file)
  })

/** An elicitor that answers from a file and asks nobody. Forms are counted over its life. */
export const make = (answers: Answers): Elicitor => {
  let next = 0
  return {
    form: ({ form }) =>
      Effect.sync((): FormAnswer => {
        const given = answers[Math.min(next, answers.length - 1)] ?? answers[0]
        next += 1
        if (given.action !== "accept") return given
        const fields = missing(form, given.content)
        // A wrong value is found, and named, where every answer is checked.
        return fields.length > 0 ? { action: "unanswered", fields } : picked(form.fields, given.content)
      })
  }
}

/** Only what the form asks for: one object may serve forms of several kinds. */
const picked = (fields: ReadonlyArray<{ readonly name: string }>, content: JsonObject): FormAnswer => ({
  action: "accept",
  content: Object.fromEntries(
    fields.flatMap(({ name }) => {
      const value = own(content, name)
      return value === undefined ? [] : [[name, value] as const]
    })
  )
})

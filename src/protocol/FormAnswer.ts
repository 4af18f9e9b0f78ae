/**
 * Answers to forms: what people type becomes values, defaults fill what is absent (K section 9.14, R section 9.5).
 *
 * What `complete` lets through fits the form; keys that the form does not have are dropped. Pure.
 */
import * as Either from "effect/Either"
import { type Json, type JsonObject, own } from "../base/Json.ts"
import { KIB } from "../base/Units.ts"
import { stringify } from "./Codec.ts"
import type { Choice, Field, Form } from "./Form.ts"
import { type AnswerFault, checkField, misfit } from "./FormValue.ts"

/** Bytes of a whole answer as JSON (R section 9.5). */
export const MAX_ANSWER_BYTES = 16 * KIB

/** Names of required fields that have neither a value in `content` nor a default. */
export const missing = (form: Form, content: JsonObject): ReadonlyArray<string> =>
  form.fields.flatMap(({ name, required, default: given }) =>
    required && given === undefined && (own(content, name) ?? null) === null ? [name] : []
  )

/**
 * The answer as it may be sent: defaults in the place of absent fields (absent and null are the same), every value
 * held against its field, unknown keys dropped. Otherwise everything that is wrong with it.
 */
export const complete = (form: Form, content: JsonObject): Either.Either<JsonObject, ReadonlyArray<AnswerFault>> => {
  const faults: Array<AnswerFault> = missing(form, content).map((field) => ({
    field,
    reason: "missing",
    text: "a value is required"
  }))
  const entries: Array<readonly [string, Json]> = []
  for (const field of form.fields) {
    const value = own(content, field.name) ?? field.default
    if (value === undefined || value === null) continue
    const checked = checkField(field, value)
    if (Either.isLeft(checked)) faults.push(checked.left)
    else entries.push([field.name, checked.right])
  }
  if (faults.length > 0) return Either.left(faults)
  // From entries, so that a field named `__proto__` is data.
  const whole: JsonObject = Object.fromEntries(entries)
  return Buffer.byteLength(stringify(whole)) > MAX_ANSWER_BYTES
    ? Either.left([{ reason: "misfit", text: `the answer is larger than ${MAX_ANSWER_BYTES} bytes` }])
    : Either.right(whole)
}

// --- What people type -----------------------------------------------------------------------------------------------

const yes = new Set(["y", "yes", "true", "on", "1"])
const no = new Set(["n", "no", "false", "off", "0"])

/** Whether options may be picked by their number: not where an option itself reads as a number. */
export const numbered = (choices: ReadonlyArray<Choice>): boolean =>
  !choices.some(({ title, value }) => /^\s*\d+\s*$/.test(title) || /^\s*\d+\s*$/.test(value))

/** The option that a person means: its value, its title, or its number from 1. */
const pick = (choices: ReadonlyArray<Choice>, text: string): string | undefined => {
  const word = text.trim()
  const exact = choices.find(({ value }) => value === word) ?? choices.find(({ title }) => title === word)
  if (exact !== undefined) return exact.value
  if (/^\d+$/.test(word) && numbered(choices)) return choices[Number(word) - 1]?.value
  const low = word.toLowerCase()
  const alike = choices.filter(({ title, value }) => value.toLowerCase() === low || title.toLowerCase() === low)
  return alike.length === 1 ? alike[0]?.value : undefined
}

const pickMany = (choices: ReadonlyArray<Choice>, text: string): ReadonlyArray<string> | undefined => {
  const whole = pick(choices, text)
  if (whole !== undefined) return [whole]
  const picked = text
    .split(",")
    .filter((part) => part.trim() !== "")
    .map((part) => pick(choices, part))
  const found = picked.filter((one) => one !== undefined)
  return found.length === picked.length ? [...new Set(found)] : undefined
}

/**
 * What a person typed for a field, as its value: numbers as numbers, `yes` as true, options by value, title or number
 * (several of them with commas between). Text stays as it is.
 */
export const parseField = (field: Field, text: string): Either.Either<Json, AnswerFault> => {
  switch (field.kind) {
    case "string":
      return checkField(field, text)
    case "number":
    case "integer": {
      const word = text.trim()
      return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(word)
        ? checkField(field, Number(word))
        : misfit(field)
    }
    case "boolean": {
      const word = text.trim().toLowerCase()
      return yes.has(word) ? Either.right(true) : no.has(word) ? Either.right(false) : misfit(field)
    }
    case "select": {
      const value = pick(field.choices, text)
      return value === undefined ? misfit(field) : Either.right(value)
    }
    case "multi": {
      const values = pickMany(field.choices, text)
      return values === undefined ? misfit(field) : checkField(field, values)
    }
  }
}

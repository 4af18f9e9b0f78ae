/**
 * Values held against the fields of a form (K section 9.14, R section 9.5).
 *
 * A value that passes fits its field, is within bounds and does not look like a credential. Texts of faults say what is
 * expected, are safe to show, and never repeat a value. Pure.
 */
import * as Either from "effect/Either"
import { isLosslessNumber } from "lossless-json"
import { clip, escapeLine } from "../base/Display.ts"
import type { Json } from "../base/Json.ts"
import { KIB } from "../base/Units.ts"
import type { Choice, Field, MultiField } from "./Form.ts"
import { formatTexts, hasFormat } from "./FormFormats.ts"

/** Bytes of one text of an answer (R section 9.5). */
export const MAX_STRING_BYTES = 4 * KIB
/** Fewest characters of a text that may be a credential (R section 9.5). */
const CREDENTIAL_LENGTH = 32
/** Characters of a pattern that are shown. */
const SHOWN_PATTERN = 100

/** What is said of a value that looks like a credential. */
export const CREDENTIAL = "this looks like a key or token, and forms must not carry credentials"

/** Why an answer does not do. */
export interface AnswerFault {
  /** Name of the field; absent when the answer as a whole is meant. */
  readonly field?: string
  /** `missing`: it is required and absent. `credential`: it looks like one. `misfit`: it does not fit. */
  readonly reason: "missing" | "credential" | "misfit"
  /** What is expected, as the end of a sentence that begins with the field; never the value. */
  readonly text: string
}

// --- Expectations ---------------------------------------------------------------------------------------------------

const range = (least: number | undefined, most: number | undefined, unit: string): string => {
  if (least !== undefined && most !== undefined)
    return least === most ? ` ${least}${unit}` : ` ${least} to ${most}${unit}`
  if (least !== undefined) return ` at least ${least}${unit}`
  return most === undefined ? "" : ` at most ${most}${unit}`
}

/** What a field expects, in a few words: `a whole number, 1 to 9`. Options are not repeated. */
export const expectation = (field: Field): string => {
  switch (field.kind) {
    case "string": {
      const what = field.format === undefined ? "text" : formatTexts[field.format]
      const characters = field.minLength === 1 && field.maxLength === undefined ? " character" : " characters"
      const least = field.minLength === 0 ? undefined : field.minLength
      const length = range(least, field.maxLength, characters)
      return [
        what,
        ...(length === "" ? [] : [length.trim()]),
        ...(field.pattern === undefined ? [] : [`matching ${clip(escapeLine(field.pattern.source), SHOWN_PATTERN)}`])
      ].join(", ")
    }
    case "number":
    case "integer": {
      const bounds = [
        range(field.minimum, field.maximum, "").trim(),
        field.exclusiveMinimum === undefined ? "" : `more than ${field.exclusiveMinimum}`,
        field.exclusiveMaximum === undefined ? "" : `less than ${field.exclusiveMaximum}`
      ].filter((text) => text !== "")
      return [field.kind === "integer" ? "a whole number" : "a number", ...bounds].join(", ")
    }
    case "boolean":
      return "yes or no"
    case "select":
      return "one of the options"
    case "multi":
      return `any of the options${manyText(field)}`
  }
}

const manyText = (field: MultiField): string => {
  const count = range(field.minItems === 0 ? undefined : field.minItems, field.maxItems, "")
  return count === "" ? "" : `,${count} of them`
}

// --- Values ---------------------------------------------------------------------------------------------------------

/** A word that is a path or an address: its parts are names, not keys. */
const isPlace = (word: string): boolean =>
  /^(?:\/|\.{1,2}[/\\]|~|[A-Za-z]:[/\\]|[A-Za-z][A-Za-z0-9+.-]{0,30}:\/\/)/.test(word)

/** Whether a text looks like a credential: 32 characters or more without a gap, of lower and upper case and digits. */
export const looksLikeCredential = (text: string): boolean =>
  text
    .split(/\s+/)
    .flatMap((word) => word.split(isPlace(word) ? /[^A-Za-z0-9_+-]+/ : /[^A-Za-z0-9+/_=.~-]+/))
    .some((run) => run.length >= CREDENTIAL_LENGTH && /[a-z]/.test(run) && /[A-Z]/.test(run) && /[0-9]/.test(run))

const isOneOf = (choices: ReadonlyArray<Choice>, value: Json): boolean =>
  choices.some((choice) => choice.value === value)

const numberOf = (value: Json): number | undefined => {
  const number = isLosslessNumber(value) ? Number(value.value) : value
  return typeof number === "number" && Number.isFinite(number) ? number : undefined
}

type Checked = Either.Either<Json, AnswerFault>

/** The fault of a value that does not fit; without a text it says what the field expects. */
export const misfit = (field: Field, text: string = `expected ${expectation(field)}`): Checked =>
  Either.left({ field: field.name, reason: "misfit", text })

const checkText = (field: Extract<Field, { kind: "string" }>, value: Json): Checked => {
  if (typeof value !== "string") return misfit(field)
  if (Buffer.byteLength(value) > MAX_STRING_BYTES) return misfit(field, `expected at most ${MAX_STRING_BYTES} bytes`)
  const characters = [...value].length
  if (characters < (field.minLength ?? 0) || characters > (field.maxLength ?? Infinity)) return misfit(field)
  if (field.format !== undefined && !hasFormat(field.format, value)) return misfit(field)
  if (field.pattern !== undefined && !field.pattern.test(value)) return misfit(field)
  // A default comes from the server: there is nothing in it to keep from it.
  if (value !== field.default && looksLikeCredential(value))
    return Either.left({
      field: field.name,
      reason: "credential",
      text: CREDENTIAL
    })
  return Either.right(value)
}

const checkNumber = (field: Extract<Field, { kind: "number" | "integer" }>, value: Json): Checked => {
  const number = numberOf(value)
  if (number === undefined) return misfit(field)
  // Beyond 2^53 a whole number would silently become another one.
  if (field.kind === "integer" && !Number.isSafeInteger(number)) return misfit(field)
  if (number < (field.minimum ?? -Infinity) || number > (field.maximum ?? Infinity)) return misfit(field)
  if (number <= (field.exclusiveMinimum ?? -Infinity) || number >= (field.exclusiveMaximum ?? Infinity))
    return misfit(field)
  // JSON has no negative zero.
  return Either.right(number === 0 ? 0 : number)
}

const checkMany = (field: MultiField, value: Json): Checked => {
  if (!Array.isArray(value)) return misfit(field)
  // Array.isArray does not narrow readonly arrays.
  const items = value as ReadonlyArray<Json>
  if (items.length < (field.minItems ?? 0) || items.length > (field.maxItems ?? Infinity)) return misfit(field)
  if (new Set(items).size < items.length || items.some((item) => !isOneOf(field.choices, item))) return misfit(field)
  return Either.right(items)
}

/** A value held against its field; numbers come back as JavaScript numbers. */
export const checkField = (field: Field, value: Json): Either.Either<Json, AnswerFault> => {
  switch (field.kind) {
    case "string":
      return checkText(field, value)
    case "number":
    case "integer":
      return checkNumber(field, value)
    case "boolean":
      return typeof value === "boolean" ? Either.right(value) : misfit(field)
    case "select":
      return isOneOf(field.choices, value) ? Either.right(value) : misfit(field)
    case "multi":
      return checkMany(field, value)
  }
}

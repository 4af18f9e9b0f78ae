/**
 * Arguments typed in a shell, made into what a tool's schema wants. Pure.
 *
 * `k=v` is coerced by the declared type of the property, `k:=json` is JSON as it stands. Keys are never split and
 * never become prototypes. A word that fits no declared type stays text, and validation says what is wrong.
 */
import * as Either from "effect/Either"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { near } from "../base/Near.ts"
import { parse } from "../protocol/Codec.ts"
import { resolveLocal } from "./SchemaGuard.ts"

/** One argument: text to be coerced, or JSON as given. */
export type Word =
  | { readonly _tag: "Text"; readonly key: string; readonly text: string }
  | { readonly _tag: "Json"; readonly key: string; readonly text: string }
  | { readonly _tag: "File"; readonly key: string; readonly file: string }
  | { readonly _tag: "Artifact"; readonly key: string; readonly handle: string }

/** Splits `k:=json`, `k=@artifact:HANDLE`, `k=@file`, `k=v`; `undefined` when the word is none of them. */
export const readWord = (word: string): Word | undefined => {
  const equals = word.indexOf("=")
  if (equals <= 0) return undefined
  if (word[equals - 1] === ":") {
    return equals === 1 ? undefined : { _tag: "Json", key: word.slice(0, equals - 1), text: word.slice(equals + 1) }
  }
  const key = word.slice(0, equals)
  const text = word.slice(equals + 1)
  if (text.startsWith("@artifact:")) return { _tag: "Artifact", key, handle: text.slice("@artifact:".length) }
  return text.startsWith("@") && text.length > 1 ? { _tag: "File", key, file: text.slice(1) } : { _tag: "Text", key, text }
}

/** Why an argument cannot be read. */
export interface Fault {
  readonly key: string
  readonly expectation: string
  readonly candidates: ReadonlyArray<string>
}

const typesOf = (schema: Json | undefined, root: JsonObject, hops: number): ReadonlyArray<string> => {
  if (!isJsonObject(schema) || hops > 8) return []
  const ref = own(schema, "$ref")
  if (typeof ref === "string") return typesOf(resolveLocal(root, ref), root, hops + 1)
  const type = own(schema, "type")
  if (typeof type === "string") return [type]
  if (Array.isArray(type)) return (type as ReadonlyArray<Json>).filter((one) => typeof one === "string")
  return ["anyOf", "oneOf"].flatMap((keyword) => {
    const alternatives = own(schema, keyword)
    return Array.isArray(alternatives)
      ? (alternatives as ReadonlyArray<Json>).flatMap((one) => typesOf(one, root, hops + 1))
      : []
  })
}

const tryParse = (text: string): Json | undefined => {
  try {
    return parse(text)
  } catch {
    return undefined
  }
}

const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** Text as one of the declared types; text wins over everything else only when it is declared. */
const coerceText = (text: string, types: ReadonlyArray<string>): Json => {
  const wants = (type: string): boolean => types.includes(type)
  if (wants("string") || types.length === 0) return text
  if ((wants("number") || wants("integer")) && number.test(text)) return tryParse(text) ?? text
  if (wants("boolean") && (text === "true" || text === "false")) return text === "true"
  if (wants("null") && text === "null") return null
  if ((wants("array") && text.startsWith("[")) || (wants("object") && text.startsWith("{"))) return tryParse(text) ?? text
  return text
}

const propertiesOf = (schema: JsonObject): JsonObject => {
  const properties = own(schema, "properties")
  return isJsonObject(properties) ? properties : {}
}

/** Whether the schema says that keys outside `properties` may come. */
const isOpen = (schema: JsonObject): boolean => {
  const additional = own(schema, "additionalProperties")
  if (isJsonObject(additional) || additional === true) return true
  if (isJsonObject(own(schema, "patternProperties"))) return true
  return additional === undefined && Object.keys(propertiesOf(schema)).length === 0
}

/** One argument as a value. Files and artifacts are read by the caller and arrive here as text. */
export const coerce = (
  word: { readonly key: string; readonly text: string; readonly json: boolean },
  schema: JsonObject
): Either.Either<Json, Fault> => {
  const properties = propertiesOf(schema)
  if (!Object.hasOwn(properties, word.key) && !isOpen(schema)) {
    const candidates = near(word.key, Object.keys(properties))
    const known = Object.keys(properties)
    // With additionalProperties unset the schema is open by the letter; a key that it does not know is a typo far
    // more often than a wish, and `k:=json` or --args still send it.
    if (own(schema, "additionalProperties") === false || candidates.length > 0) {
      return Either.left({
        key: word.key,
        expectation: known.length === 0 ? "the tool takes no arguments" : `is not a known key; known: ${known.join(", ")}`,
        candidates
      })
    }
  }
  if (!word.json) return Either.right(coerceText(word.text, typesOf(own(properties, word.key), schema, 0)))
  const value = tryParse(word.text)
  return value === undefined
    ? Either.left({ key: word.key, expectation: "after ':=' must be JSON; quote text, e.g. name:='\"text\"'", candidates: [] })
    : Either.right(value)
}

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
  return text.startsWith("@") && text.length > 1
    ? { _tag: "File", key, file: text.slice(1) }
    : { _tag: "Text", key, text }
}

/** Why an argument cannot be read. */
export interface Fault {
  readonly key: string
  readonly expectation: string
  readonly candidates: ReadonlyArray<string>
}

/** Schemas that are looked at for one answer; a hostile schema refers without end. */
const MAX_LOOKS = 200

/**
 * The schemas that speak about the value of `schema`: itself, what it refers to, and the members of `allOf`,
 * `anyOf` and `oneOf`. Each once.
 */
const voices = (schema: Json | undefined, root: JsonObject): ReadonlyArray<JsonObject> => {
  const found = new Set<JsonObject>()
  const open: Array<Json | undefined> = [schema]
  while (open.length > 0 && found.size < MAX_LOOKS) {
    const next = open.shift()
    if (!isJsonObject(next) || found.has(next)) continue
    found.add(next)
    const ref = own(next, "$ref")
    if (typeof ref === "string") open.push(resolveLocal(root, ref))
    for (const keyword of ["allOf", "anyOf", "oneOf"]) {
      const members = own(next, keyword)
      // Array.isArray does not narrow readonly arrays.
      if (Array.isArray(members)) open.push(...(members as ReadonlyArray<Json>).slice(0, MAX_LOOKS))
    }
  }
  return [...found]
}

const typeOfValue = (value: Json): string => {
  if (value === null) return "null"
  if (Array.isArray(value)) return "array"
  return isJsonObject(value) ? "object" : typeof value === "object" ? "number" : typeof value
}

/** The types a property may have, as far as its schema says. */
const typesOf = (schema: Json | undefined, root: JsonObject): ReadonlyArray<string> =>
  voices(schema, root).flatMap((voice) => {
    const type = own(voice, "type")
    if (typeof type === "string") return [type]
    if (Array.isArray(type)) return (type as ReadonlyArray<Json>).filter((one) => typeof one === "string")
    const values = own(voice, "enum") ?? (Object.hasOwn(voice, "const") ? [own(voice, "const") ?? null] : [])
    return Array.isArray(values) ? (values as ReadonlyArray<Json>).map(typeOfValue) : []
  })

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
  if ((wants("array") && text.startsWith("[")) || (wants("object") && text.startsWith("{")))
    return tryParse(text) ?? text
  return text
}

/** The declared properties, wherever the schema declares them; the first declaration of a name counts. */
const propertiesOf = (schemas: ReadonlyArray<JsonObject>): ReadonlyMap<string, Json | undefined> => {
  const found = new Map<string, Json | undefined>()
  for (const schema of schemas) {
    const properties = own(schema, "properties")
    if (!isJsonObject(properties)) continue
    for (const [name, property] of Object.entries(properties)) if (!found.has(name)) found.set(name, property)
  }
  return found
}

/** Whether the schema says that keys outside `properties` may come. */
const isOpen = (schemas: ReadonlyArray<JsonObject>): boolean =>
  schemas.some((schema) => {
    const additional = own(schema, "additionalProperties")
    return isJsonObject(additional) || additional === true || isJsonObject(own(schema, "patternProperties"))
  }) ||
  schemas.every(
    (schema) => own(schema, "additionalProperties") === undefined && own(schema, "properties") === undefined
  )

/** One argument as a value. Files and artifacts are read by the caller and arrive here as text. */
export const coerce = (
  word: { readonly key: string; readonly text: string; readonly json: boolean },
  schema: JsonObject
): Either.Either<Json, Fault> => {
  const schemas = voices(schema, schema)
  const properties = propertiesOf(schemas)
  if (!properties.has(word.key) && !isOpen(schemas)) {
    const known = [...properties.keys()]
    const candidates = near(word.key, known)
    const closed = schemas.some((each) => own(each, "additionalProperties") === false)
    // With additionalProperties unset the schema is open by the letter; a key that it does not know is a typo far
    // more often than a wish, and --args still sends it.
    if (closed || candidates.length > 0) {
      return Either.left({
        key: word.key,
        expectation:
          known.length === 0 ? "the tool takes no arguments" : `is not a known key; known: ${known.join(", ")}`,
        candidates
      })
    }
  }
  if (!word.json) return Either.right(coerceText(word.text, typesOf(properties.get(word.key), schema)))
  const value = tryParse(word.text)
  return value === undefined
    ? Either.left({
        key: word.key,
        expectation: "after ':=' must be JSON; quote text, e.g. name:='\"text\"'",
        candidates: []
      })
    : Either.right(value)
}

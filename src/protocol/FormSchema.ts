/**
 * Reads a form from the `requestedSchema` of a server (MCP elicitation; K section 9.14, R section 9.5).
 *
 * Everything that a person could not see on a screen is refused instead of guessed: nested objects, references,
 * alternatives, defaults that do not fit. A form that asks for credentials is refused for every server: MCP forbids
 * them in forms. All spellings of choices are taken in every revision that has forms; servers mix them. Pure; the
 * size is bounded before anything is read.
 *
 * The pattern engine makes this module heavy: import it lazily, at the first form.
 */
import * as Either from "effect/Either"
import { isLosslessNumber } from "lossless-json"
import { RE2JS } from "re2js"
import { clip, escapeLine } from "../base/Display.ts"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { KIB } from "../base/Units.ts"
import { stringify } from "./Codec.ts"
import type {
  BooleanField,
  Choice,
  Field,
  FieldBase,
  Form,
  MultiField,
  NumberField,
  Pattern,
  SelectField,
  TextField
} from "./Form.ts"
import { formats } from "./FormFormats.ts"
import { checkField } from "./FormValue.ts"

/** Properties of one form (R section 9.5, like all limits here). */
export const MAX_FIELDS = 32
/** Options of one choice. */
export const MAX_OPTIONS = 64
/** Bytes of one text of a schema: name, title, description, option, default, pattern. */
export const MAX_TEXT_BYTES = KIB
/** Bytes of a whole schema as JSON. */
export const MAX_SCHEMA_BYTES = 32 * KIB
/** Levels of nesting of a schema. */
export const MAX_SCHEMA_DEPTH = 8
/** Values in a schema, objects and lists included. */
export const MAX_SCHEMA_NODES = 512

/** Why a schema is no form. */
export interface FormFault {
  /** Name of the field, escaped and cut; absent when the whole schema is meant. */
  readonly field?: string
  readonly reason: "too_large" | "not_flat" | "unsupported" | "credential" | "misfit"
  /** One sentence, safe to show and to send. */
  readonly text: string
}

/** Characters of a name in a fault. */
const SHOWN = 64

/** Thrown by the readers below and caught in `parseForm`, so that they read as they are. */
class Refused {
  readonly fault: FormFault
  constructor(fault: FormFault) {
    this.fault = fault
  }
}

/** A name as it may stand in a message. */
const named = (name: string): string => clip(escapeLine(name), SHOWN)

const refuse = (reason: FormFault["reason"], text: string, field?: string): never => {
  // The only way out of readers that return plain values; caught in this file.
  // oxlint-disable-next-line typescript/only-throw-error
  throw new Refused({
    reason,
    text: field === undefined ? text : `Field '${named(field)}': ${text}`,
    ...(field === undefined ? {} : { field: named(field) })
  })
}

// --- Bounds ---------------------------------------------------------------------------------------------------------

const bound = (schema: JsonObject): void => {
  let level: ReadonlyArray<Json> = [schema]
  let nodes = 0
  for (let depth = 1; level.length > 0; depth += 1) {
    nodes += level.length
    if (nodes > MAX_SCHEMA_NODES) refuse("too_large", `The schema holds more than ${MAX_SCHEMA_NODES} values.`)
    const next: Array<Json> = []
    for (const value of level) {
      if (typeof value !== "object" || value === null || isLosslessNumber(value)) continue
      if (depth > MAX_SCHEMA_DEPTH) refuse("too_large", `The schema is nested deeper than ${MAX_SCHEMA_DEPTH} levels.`)
      for (const [key, child] of Object.entries(value)) {
        // A reference could name anything from anywhere in the schema.
        if (references.has(key)) refuse("unsupported", `The schema uses '${key}', which forms do not have.`)
        if (child !== undefined) next.push(child)
      }
    }
    level = next
  }
  if (Buffer.byteLength(stringify(schema)) > MAX_SCHEMA_BYTES)
    refuse("too_large", `The schema is larger than ${MAX_SCHEMA_BYTES} bytes.`)
}

const references = new Set(["$ref", "$dynamicRef", "$recursiveRef"])
/** Keywords that would make one property several things at once. */
const combinators = [
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "dependentSchemas",
  "dependentRequired",
  "dependencies",
  "patternProperties",
  "propertyNames"
]
/** Keywords that restrict a value in a way no field shows. */
const unshown = ["const", "multipleOf", "properties", "prefixItems", "contains", "items", "enum", "enumNames"]

const refuseKeywords = (schema: JsonObject, keywords: ReadonlyArray<string>, field?: string): void => {
  for (const keyword of keywords) {
    if (Object.hasOwn(schema, keyword)) refuse("unsupported", `'${keyword}' is not supported here.`, field)
  }
}

// --- Credentials ----------------------------------------------------------------------------------------------------

/** What a name or title may not contain, separators and case aside (R section 9.5). */
const credentialWords = ["password", "passwd", "apikey", "apitoken", "accesstoken", "credential", "secret"]

/** Whether a name or a title asks for a credential. */
export const asksForCredential = (text: string): boolean => {
  const plain = text
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, "")
  return credentialWords.some((word) => plain.includes(word))
}

// --- Values ---------------------------------------------------------------------------------------------------------

/** A number of a schema; one that a double cannot hold as it is counts as its nearest double. */
const numberIn = (value: Json | undefined): number | undefined => {
  const number = isLosslessNumber(value) ? Number(value.value) : value
  return typeof number === "number" && Number.isFinite(number) ? number : undefined
}

/** Reads the members of one property's schema. */
const reader = (field: string, schema: JsonObject) => {
  const text = (key: string): string | undefined => {
    const value = own(schema, key)
    if (value === undefined || value === null) return undefined
    if (typeof value !== "string") return refuse("misfit", `'${key}' is not a text.`, field)
    return short(value, `'${key}'`, field)
  }
  const number = (key: string): number | undefined => {
    const value = own(schema, key)
    if (value === undefined || value === null) return undefined
    return numberIn(value) ?? refuse("misfit", `'${key}' is not a number.`, field)
  }
  const count = (key: string): number | undefined => {
    const value = number(key)
    if (value === undefined || (Number.isSafeInteger(value) && value >= 0)) return value
    return refuse("misfit", `'${key}' is not a count.`, field)
  }
  return { text, number, count }
}

const short = (text: string, what: string, field: string): string =>
  Buffer.byteLength(text) <= MAX_TEXT_BYTES
    ? text
    : refuse("too_large", `${what} is longer than ${MAX_TEXT_BYTES} bytes.`, field)

/** The members that are there. */
const present = <A extends object>(values: A): { [key in keyof A]?: Exclude<A[key], undefined> } =>
  // The result has the keys of `values` whose value is not undefined, which is what the type says.
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [key in keyof A]?: Exclude<A[key], undefined>
  }

const ordered = (least: number | undefined, most: number | undefined, field: string): void => {
  if (least !== undefined && most !== undefined && least > most)
    refuse("misfit", "no value can satisfy its limits.", field)
}

// --- Choices --------------------------------------------------------------------------------------------------------

const list = (value: Json | undefined): ReadonlyArray<Json> | undefined =>
  // Array.isArray does not narrow readonly arrays.
  Array.isArray(value) ? (value as ReadonlyArray<Json>) : undefined

/** `enum` with optional `enumNames`, or `oneOf`/`anyOf` of `const` and `title`; `undefined` when it is no choice. */
const choicesOf = (
  schema: JsonObject,
  keys: ReadonlyArray<"oneOf" | "anyOf">,
  field: string
): ReadonlyArray<Choice> | undefined => {
  const values = own(schema, "enum")
  const titled = keys.map((key) => own(schema, key)).find((value) => value !== undefined)
  if (values === undefined && titled === undefined) return undefined
  const items = list(values ?? titled)
  if (items === undefined || items.length === 0 || (values !== undefined && titled !== undefined))
    return refuse("misfit", "its options are not a list with something in it.", field)
  if (items.length > MAX_OPTIONS) return refuse("too_large", `it has more than ${MAX_OPTIONS} options.`, field)
  const names = values === undefined ? undefined : own(schema, "enumNames")
  const titles = names === undefined || names === null ? undefined : list(names)
  if (names !== undefined && names !== null && titles?.length !== items.length)
    return refuse("misfit", "'enumNames' does not name each option.", field)
  if (titled !== undefined && items.some((item) => !isJsonObject(item) || !Object.hasOwn(item, "const")))
    return refuse("unsupported", "alternatives other than options with 'const' and 'title' are not supported.", field)
  const choices = items.map((item, index): Choice => {
    const value = isJsonObject(item) && values === undefined ? own(item, "const") : item
    const title = titles === undefined ? (isJsonObject(item) ? own(item, "title") : undefined) : titles[index]
    if (typeof value !== "string" || (title !== undefined && typeof title !== "string"))
      return refuse("unsupported", "an option is not a text.", field)
    if (isJsonObject(item)) refuseKeywords(item, [...combinators, "properties", "items"], field)
    return { value: short(value, "an option", field), title: short(title ?? value, "an option", field) }
  })
  if (new Set(choices.map(({ value }) => value)).size < choices.length)
    return refuse("misfit", "it has the same option twice.", field)
  return choices
}

/**
 * The one schema beside `null`: `{anyOf: [schema, {type: "null"}]}` and `{type: [type, "null"]}` are how schema
 * generators write a field that may be left out. An answer leaves such a field out, it never sends null.
 */
const withoutNull = (schema: JsonObject): JsonObject => {
  const types = list(own(schema, "type"))
  if (types !== undefined) {
    const real = types.filter((type) => type !== "null")
    const [only] = real
    return real.length === 1 && only !== undefined ? { ...schema, type: only } : schema
  }
  for (const key of ["anyOf", "oneOf"]) {
    const members = list(own(schema, key))
    if (members === undefined) continue
    const real = members.filter((member) => !(isJsonObject(member) && own(member, "type") === "null"))
    const [only] = real
    if (real.length !== 1 || members.length !== 2 || !isJsonObject(only)) continue
    const { [key]: _dropped, ...rest } = schema
    return { ...only, ...rest }
  }
  return schema
}

// --- Fields ---------------------------------------------------------------------------------------------------------

const textField = (base: FieldBase, schema: JsonObject): TextField => {
  refuseKeywords(schema, [...combinators, ...unshown], base.name)
  const read = reader(base.name, schema)
  const format = read.text("format")
  if (format?.toLowerCase() === "password")
    refuse("credential", "it asks for a credential, which forms may not.", base.name)
  const source = read.text("pattern")
  const limits = { minLength: read.count("minLength"), maxLength: read.count("maxLength") }
  ordered(limits.minLength, limits.maxLength, base.name)
  return {
    ...base,
    kind: "string",
    ...present({
      ...limits,
      // Formats that MCP does not have for forms are remarks to people, as in JSON Schema.
      format: formats.find((known) => known === format),
      pattern: source === undefined ? undefined : patternOf(source, base.name),
      default: read.text("default")
    })
  }
}

const patternOf = (source: string, field: string): Pattern => {
  try {
    const compiled = RE2JS.compile(RE2JS.translateRegExp(source))
    return { source, test: (text) => compiled.matcher(text).find() }
  } catch {
    return refuse("unsupported", "its pattern cannot be run in linear time.", field)
  }
}

const numberField = (base: FieldBase, schema: JsonObject, kind: "number" | "integer"): NumberField => {
  refuseKeywords(schema, [...combinators, ...unshown], base.name)
  const read = reader(base.name, schema)
  const limits = {
    minimum: read.number("minimum"),
    maximum: read.number("maximum"),
    exclusiveMinimum: read.number("exclusiveMinimum"),
    exclusiveMaximum: read.number("exclusiveMaximum")
  }
  ordered(limits.minimum, limits.maximum, base.name)
  return { ...base, kind, ...present({ ...limits, default: read.number("default") }) }
}

const booleanField = (base: FieldBase, schema: JsonObject): BooleanField => {
  refuseKeywords(schema, [...combinators, ...unshown], base.name)
  const given = own(schema, "default")
  if (given === undefined || given === null) return { ...base, kind: "boolean" }
  return typeof given === "boolean"
    ? { ...base, kind: "boolean", default: given }
    : refuse("misfit", "its default is neither true nor false.", base.name)
}

const multiField = (base: FieldBase, schema: JsonObject): MultiField => {
  refuseKeywords(schema, [...combinators, "const", "enum", "enumNames", "prefixItems", "contains"], base.name)
  const items = own(schema, "items")
  if (!isJsonObject(items)) return refuse("unsupported", "it is a list of anything, not a choice.", base.name)
  const type = own(items, "type")
  if (type !== undefined && type !== "string") return refuse("unsupported", "its options are not texts.", base.name)
  const choices = choicesOf(items, ["anyOf", "oneOf"], base.name)
  if (choices === undefined) return refuse("unsupported", "it is a list of anything, not a choice.", base.name)
  const read = reader(base.name, schema)
  const limits = { minItems: read.count("minItems"), maxItems: read.count("maxItems") }
  ordered(limits.minItems, Math.min(limits.maxItems ?? Infinity, choices.length), base.name)
  const given = own(schema, "default")
  const texts = list(given)?.filter((one) => typeof one === "string")
  if (given !== undefined && given !== null && texts?.length !== list(given)?.length)
    return refuse("misfit", "its default is not a list of options.", base.name)
  return { ...base, kind: "multi", choices, ...present({ ...limits, default: texts }) }
}

const selectField = (base: FieldBase, schema: JsonObject): SelectField | undefined => {
  const choices = choicesOf(schema, ["oneOf", "anyOf"], base.name)
  if (choices === undefined) return undefined
  const others = combinators.filter((keyword) => !(keyword === "oneOf" || keyword === "anyOf"))
  refuseKeywords(schema, [...others, "const", "properties", "items"], base.name)
  if (Object.hasOwn(schema, "oneOf")) refuseKeywords(schema, ["anyOf"], base.name)
  return { ...base, kind: "select", choices, ...present({ default: reader(base.name, schema).text("default") }) }
}

const fieldOf = (name: string, value: Json | undefined, required: boolean): Field => {
  short(name, "its name", name)
  if (name === "") return refuse("misfit", "A field has no name.")
  if (!isJsonObject(value)) return refuse("unsupported", "its schema is not an object.", name)
  const schema = withoutNull(value)
  const read = reader(name, schema)
  const title = read.text("title")
  if (asksForCredential(name) || (title !== undefined && asksForCredential(title)))
    return refuse("credential", "it asks for a credential, which forms may not.", name)
  const base: FieldBase = { name, required, ...present({ title, description: read.text("description") }) }
  const type = own(schema, "type")
  switch (type) {
    case "string":
      return selectField(base, schema) ?? textField(base, schema)
    case "number":
    case "integer":
      return numberField(base, schema, type)
    case "boolean":
      return booleanField(base, schema)
    case "array":
      return multiField(base, schema)
    case "object":
      return refuse("not_flat", "it is an object; a form is flat.", name)
    case undefined: {
      // A choice says what it is without a type.
      const select = selectField(base, schema)
      return select ?? refuse("unsupported", "it has no type.", name)
    }
    default:
      return refuse("unsupported", "its type is not one that forms have.", name)
  }
}

const formOf = (schema: JsonObject): Form => {
  bound(schema)
  if (own(schema, "type") !== "object") refuse("not_flat", "The schema is not of the type 'object'.")
  refuseKeywords(schema, combinators)
  const properties = own(schema, "properties") ?? {}
  if (!isJsonObject(properties)) return refuse("misfit", "'properties' is not an object.")
  const names = Object.keys(properties)
  if (names.length > MAX_FIELDS) refuse("too_large", `The form has more than ${MAX_FIELDS} fields.`)
  const given = own(schema, "required") ?? []
  const required = list(given)
  if (required === undefined || required.some((name) => typeof name !== "string"))
    return refuse("misfit", "'required' is not a list of names.")
  const unknown = required.find((name) => typeof name === "string" && !names.includes(name))
  if (typeof unknown === "string") refuse("misfit", "it is required, but not described.", unknown)
  const fields = names.map((name) => fieldOf(name, own(properties, name), required.includes(name)))
  for (const field of fields) {
    if (field.default !== undefined && Either.isLeft(checkField(field, field.default)))
      refuse("misfit", "its default does not fit it.", field.name)
  }
  return { fields }
}

/** The form that a `requestedSchema` describes. Every default in it fits its field. */
export const parseForm = (requestedSchema: Json | undefined): Either.Either<Form, FormFault> => {
  if (!isJsonObject(requestedSchema))
    return Either.left({ reason: "misfit", text: "'requestedSchema' is not an object." })
  try {
    return Either.right(formOf(requestedSchema))
  } catch (error) {
    if (error instanceof Refused) return Either.left(error.fault)
    throw error
  }
}

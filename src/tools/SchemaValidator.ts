/**
 * JSON Schema validation of values against hostile schemas, in bounded time.
 *
 * ajv does the work on a rewritten schema (`SchemaRewrite.ts`); what it would leave open is closed here. Patterns
 * run on a linear-time engine, uniqueness and lengths are linear and counted, and every subschema counts what it
 * costs, so that a small schema of nested alternatives cannot keep the host busy. Data is never changed. The
 * first fault ends the fast check; only a value that does not fit is looked at again for all its faults.
 *
 * This module is heavy: import it lazily, at the first call of a tool.
 */
import {
  _,
  type CodeKeywordDefinition,
  type ErrorObject,
  type KeywordCxt,
  type Options,
  type ValidateFunction
} from "ajv"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as Either from "effect/Either"
import { isLosslessNumber } from "lossless-json"
import { RE2JS } from "re2js"
import { clip, escapeLine } from "../base/Display.ts"
import { isJsonObject, type Json, type JsonObject, own, pointerSegment } from "../base/Json.ts"
import { near } from "../base/Near.ts"
import { holdsLossless } from "../protocol/Codec.ts"
import type { Misfit } from "./CallRefused.ts"
import { examine, type Problem } from "./SchemaGuard.ts"
import { plainNumber, rewrite, STEP } from "./SchemaRewrite.ts"

/** Steps allowed for one value (spec section 9: nothing without a bound). */
export const MAX_STEPS = 1_000_000
/** Steps allowed to find more faults after the first. */
const MAX_FAULT_STEPS = 20_000
/** Problems reported for one value. */
export const MAX_PROBLEMS = 10
/** Characters of a string that cost one step: in a pattern, and where they are only counted. */
const PATTERN_CHARACTERS = 8
const COUNTED_CHARACTERS = 256
/** Characters of a path and of an expectation. */
const MAX_TEXT = 300

/** A compiled schema. */
export interface Validator {
  /** What does not fit, at most ten; empty when the value fits. Text of the value is never repeated. */
  readonly validate: (value: Json) => ReadonlyArray<Misfit>
}

/** Thrown through ajv's generated code, which has no other way out, and caught in this file. */
class Exhausted {}
const exhausted = new Exhausted()

/** A pattern that the engine cannot do. */
class UnsupportedPattern {
  readonly pattern: string
  constructor(pattern: string) {
    this.pattern = pattern
  }
}

/** Steps left; validation is synchronous, so one counter serves all. */
let left = 0
const spend = (steps: number): void => {
  left -= steps
  if (left < 0) throw exhausted
}

/** A pattern on the linear-time engine, in the form ajv expects: `toString` tells patterns apart. */
const regExp = Object.assign(
  (pattern: string) => {
    try {
      const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern))
      return {
        test: (text: string): boolean => {
          spend(1 + Math.ceil(text.length / PATTERN_CHARACTERS))
          return compiled.matcher(text).find()
        },
        toString: () => pattern
      }
    } catch {
      throw new UnsupportedPattern(pattern)
    }
  },
  { code: "regExp" }
)

/** Characters as JSON Schema counts them, by code point. */
const lengthOf = (text: string): number => {
  spend(Math.ceil(text.length / COUNTED_CHARACTERS))
  let count = text.length
  for (let index = 0; index + 1 < text.length; index += 1) {
    if ((text.charCodeAt(index) & 0xfc00) === 0xd800 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00) {
      count -= 1
      index += 1
    }
  }
  return count
}

/** The units of a string are at least its characters and at most twice as many; most strings need no counting. */
const withinMax = (text: string, limit: number): boolean =>
  text.length <= limit || (text.length <= limit * 2 && lengthOf(text) <= limit)
const withinMin = (text: string, limit: number): boolean =>
  text.length >= limit * 2 || (text.length >= limit && lengthOf(text) >= limit)

const sizeOf = (value: object): number => {
  const size = Object.keys(value).length
  spend(Math.ceil(size / COUNTED_CHARACTERS))
  return size
}

/** Arrays whose items were numbers in lossless form, by the array that ajv sees instead. */
const originals = new WeakMap<object, ReadonlyArray<Json>>()

/** The one text of a number: digits without zeros at either end and an exponent. */
const canonicalNumber = (text: string): string => {
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text)
  if (parts === null) return text
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = parts
  const digits = (whole + fraction).replace(/^0+/, "")
  const kept = digits.replace(/0+$/, "")
  if (kept === "") return "0"
  return `${sign}${kept}e${BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - kept.length)}`
}

/** A text that two JSON values share exactly when they are equal: keys sorted, numbers by value. */
const canonical = (value: unknown): string => {
  spend(1)
  if (typeof value === "string") {
    spend(Math.ceil(value.length / COUNTED_CHARACTERS))
    return JSON.stringify(value)
  }
  if (typeof value === "number") return canonicalNumber(String(value))
  if (isLosslessNumber(value)) return canonicalNumber(value.value)
  if (typeof value !== "object" || value === null) return String(value)
  if (Array.isArray(value)) return `[${(originals.get(value) ?? value).map(canonical).join(",")}]`
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(",")}}`
}

const areUnique = (items: ReadonlyArray<unknown>): boolean => {
  const list = originals.get(items) ?? items
  const seen = new Set<string>()
  for (const item of list) {
    const text = canonical(item)
    if (seen.has(text)) return false
    seen.add(text)
  }
  return true
}

/** A keyword that fails when `holds` says no. */
const check = (
  keyword: string,
  type: "string" | "array" | "object",
  schemaType: "number" | "boolean",
  holds: (value: never, limit: never) => boolean
): CodeKeywordDefinition => ({
  keyword,
  type,
  schemaType,
  error: { message: keyword, params: ({ schema }) => _`{limit: ${schema}}` },
  code: (cxt: KeywordCxt) => {
    const call = cxt.gen.scopeValue("func", { ref: holds })
    cxt.fail(_`!${call}(${cxt.data}, ${cxt.schema})`)
  }
})

const keywords: ReadonlyArray<CodeKeywordDefinition> = [
  check("maxLength", "string", "number", (text: string, limit: number) => withinMax(text, limit)),
  check("minLength", "string", "number", (text: string, limit: number) => withinMin(text, limit)),
  check("maxProperties", "object", "number", (value: object, limit: number) => sizeOf(value) <= limit),
  check("minProperties", "object", "number", (value: object, limit: number) => sizeOf(value) >= limit),
  check(
    "uniqueItems",
    "array",
    "boolean",
    (items: ReadonlyArray<unknown>, wanted: boolean) => !wanted || areUnique(items)
  )
]

const options: Options = {
  strict: false,
  validateFormats: false,
  validateSchema: false,
  meta: false,
  addUsedSchema: false,
  inlineRefs: false,
  ownProperties: true,
  messages: false,
  logger: false,
  // The optimizer takes time in the square of the schema: two seconds for a thousand properties, and ends nowhere.
  code: { regExp, optimize: false }
}

/** A compiler of its own for every schema: one that is shared would keep a part of each for ever. */
const compiler = (allErrors: boolean, unevaluated: boolean): Ajv2020 => {
  const ajv = new Ajv2020({ ...options, allErrors })
  // Keeping account of what was evaluated makes every alternative run even after one fits; only two keywords need it.
  ajv.opts.unevaluated = unevaluated
  ajv.addKeyword({
    keyword: STEP,
    // Before anything that looks further, so that the work is counted when it begins.
    before: "$ref",
    schemaType: "number",
    code: (cxt: KeywordCxt) => {
      const call = cxt.gen.scopeValue("func", { ref: spend })
      cxt.gen.code(_`${call}(${cxt.schema})`)
    }
  })
  for (const definition of keywords) {
    ajv.removeKeyword(String(definition.keyword))
    ajv.addKeyword(definition)
  }
  return ajv
}

/** The value with numbers in lossless form as plain numbers; the same value when there is none. */
const plain = (value: Json): unknown => {
  if (isLosslessNumber(value)) return plainNumber(value.value)
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) {
    const items = (value as ReadonlyArray<Json>).map(plain)
    originals.set(items, value)
    return items
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, inner === undefined ? inner : plain(inner)])
  )
}

const shown = (text: string): string => clip(escapeLine(text), MAX_TEXT)

/** What some keywords want, with the schema's own number or text. */
const expectations = new Map<string, (limit: string) => string>([
  ["maxLength", (limit) => `must have at most ${limit} characters`],
  ["minLength", (limit) => `must have at least ${limit} characters`],
  ["maxItems", (limit) => `must have at most ${limit} items`],
  ["minItems", (limit) => `must have at least ${limit} items`],
  ["maxProperties", (limit) => `must have at most ${limit} keys`],
  ["minProperties", (limit) => `must have at least ${limit} keys`],
  ["minimum", (limit) => `must be at least ${limit}`],
  ["maximum", (limit) => `must be at most ${limit}`],
  ["exclusiveMinimum", (limit) => `must be more than ${limit}`],
  ["exclusiveMaximum", (limit) => `must be less than ${limit}`],
  ["uniqueItems", () => "must not hold the same item twice"],
  ["anyOf", () => "must fit at least one of the alternatives"],
  ["oneOf", () => "must fit exactly one of the alternatives"],
  ["not", () => "must not fit the schema under 'not'"],
  ["contains", () => "must hold an item that fits 'contains'"],
  ["unevaluatedItems", () => "has more items than the schema knows"],
  ["additionalItems", () => "has more items than the schema knows"],
  ["items", () => "has more items than the schema knows"],
  ["propertyNames", () => "has a key whose name does not fit"],
  ["false schema", () => "is not allowed here"]
])

const misfit = (error: ErrorObject, root: JsonObject): Misfit => {
  const { keyword, instancePath } = error
  // ajv types the parameters as any; each is looked at before it is used.
  const params = error.params as { readonly [name: string]: unknown }
  const text = (name: string): string | undefined => {
    const value = params[name]
    return typeof value === "string" ? value : undefined
  }
  const at = (key: string | undefined, expectation: string): Misfit => ({
    path: shown(key === undefined ? instancePath : `${instancePath}/${pointerSegment(key)}`),
    expectation: shown(expectation),
    keyword
  })
  const missing = text("missingProperty")
  if (missing !== undefined) return at(missing, "is required")
  const extra = text("additionalProperty") ?? text("unevaluatedProperty")
  if (extra !== undefined) {
    const properties = own(root, "properties")
    const known = isJsonObject(properties) && instancePath === "" ? Object.keys(properties) : []
    const guesses = near(extra, known)
    const hint = guesses.length > 0 ? `; did you mean ${guesses.map((name) => `'${name}'`).join(" or ")}?` : ""
    return at(extra, `is not a known key${hint}`)
  }
  if (keyword === "type") {
    const type: unknown = params["type"]
    const types: ReadonlyArray<unknown> = Array.isArray(type) ? type : [type]
    return at(undefined, `must be ${types.map((one) => aType(String(one))).join(" or ")}`)
  }
  if (keyword === "enum" && Array.isArray(params["allowedValues"])) {
    const allowed: ReadonlyArray<unknown> = params["allowedValues"]
    return at(undefined, `must be one of ${allowed.map((one) => JSON.stringify(one)).join(", ")}`)
  }
  if (keyword === "const") return at(undefined, `must be ${JSON.stringify(params["allowedValue"])}`)
  if (keyword === "multipleOf") return at(undefined, `must be a multiple of ${String(params["multipleOf"])}`)
  if (keyword === "pattern") return at(undefined, `must match the pattern ${text("pattern") ?? ""}`)
  const known = expectations.get(keyword)
  return at(undefined, known === undefined ? `must satisfy '${keyword}'` : known(String(params["limit"])))
}

const aType = (type: string): string => (/^[aio]/.test(type) ? `an ${type}` : type === "null" ? "null" : `a ${type}`)

/** Keywords whose fault only repeats that of another one. */
const echoes = new Set(["if", "propertyNames"])

const budgetGone: Misfit = {
  path: "",
  expectation: "cannot be checked against this schema with a bounded amount of work",
  keyword: "validation_budget"
}

/** Runs one compiled function; `undefined` when the value could not be checked to the end. */
const faultsOf = (
  validate: ValidateFunction,
  value: unknown,
  steps: number
): ReadonlyArray<ErrorObject> | undefined => {
  left = steps
  try {
    return validate(value) ? [] : (validate.errors ?? [])
  } catch {
    // The budget; or the stack, when a recursive schema follows a value that is too deep; or a fault in the
    // compiled code, which some odd schemas provoke. Whatever it is, the value was not found to fit.
    return undefined
  } finally {
    validate.errors = null
  }
}

const report = (errors: ReadonlyArray<ErrorObject>, root: JsonObject): ReadonlyArray<Misfit> => {
  const own = errors.filter(({ keyword }) => !echoes.has(keyword))
  const found = (own.length > 0 ? own : errors).map((error) => misfit(error, root))
  const unique = new Map(found.map((each) => [`${each.path}\0${each.expectation}`, each]))
  return [...unique.values()].slice(0, MAX_PROBLEMS)
}

/**
 * Compiles a schema. What cannot be used is a problem of its tool: what the guard refuses,
 * `schema_pattern_unsupported` for patterns without a linear-time form, `schema_invalid` for the rest.
 */
export const compile = (schema: JsonObject): Either.Either<Validator, Problem> => {
  const examined = examine(schema)
  if ("problem" in examined) return Either.left(examined.problem)
  const { facts } = examined
  const unevaluated = facts.schemas.some(
    (each) => Object.hasOwn(each, "unevaluatedProperties") || Object.hasOwn(each, "unevaluatedItems")
  )
  let first: ValidateFunction
  try {
    first = compiler(false, unevaluated).compile(rewrite(schema, facts, false))
  } catch (error) {
    return Either.left(problemOf(error))
  }
  let all: ValidateFunction | undefined
  return Either.right({
    validate: (value) => {
      const data = holdsLossless(value) ? plain(value) : value
      const faults = faultsOf(first, data, MAX_STEPS)
      if (faults === undefined) return [budgetGone]
      if (faults.length === 0) return []
      all ??= compiler(true, unevaluated).compile(rewrite(schema, facts, true))
      const every = faultsOf(all, data, MAX_FAULT_STEPS)
      return report(every === undefined || every.length === 0 ? faults : every, schema)
    }
  })
}

const problemOf = (error: unknown): Problem => {
  if (error instanceof UnsupportedPattern) {
    return {
      code: "schema_pattern_unsupported",
      path: "",
      message: `the pattern ${shown(error.pattern)} needs look-around, a back reference or more, which no linear-time engine can do`
    }
  }
  const reason = error instanceof Error ? error.message : "unknown fault"
  return { code: "schema_invalid", path: "", message: `the schema cannot be compiled: ${shown(reason)}` }
}

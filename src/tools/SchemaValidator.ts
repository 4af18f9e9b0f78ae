/**
 * JSON Schema validation of values against hostile schemas (2020-12 and draft-07), in bounded time.
 *
 * ajv does the work; what it would leave open is closed here: patterns run on a linear-time engine, uniqueness is
 * linear, and every subschema counts a step, so that a small schema of nested alternatives cannot keep the host
 * busy. Call `SchemaGuard.guard` first. This module is heavy: import it lazily, at the first call of a tool.
 */
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from "ajv"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as Either from "effect/Either"
import { canonicalize } from "json-canonicalize"
import { LosslessNumber } from "lossless-json"
import { RE2JS } from "re2js"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { near } from "../base/Near.ts"
import type { Misfit } from "./CallRefused.ts"
import type { Problem } from "./SchemaGuard.ts"

/** Subschema evaluations allowed for one value. */
export const MAX_STEPS = 1_000_000
/** Problems reported for one value. */
const MAX_PROBLEMS = 10
const STEP = "x-sigil-step"

/** A compiled schema. */
export interface Validator {
  /** What does not fit, at most ten; empty when the value fits. Text of the value is never repeated. */
  readonly validate: (value: Json) => ReadonlyArray<Misfit>
}

class Unsupported {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}
const exhausted = new Unsupported("validation budget")

let steps = 0
const countStep = (): true => {
  steps += 1
  // Thrown through ajv's generated code and caught in `validate`: it has no other way out.
  if (steps > MAX_STEPS) throw exhausted
  return true
}

/** A pattern on the linear-time engine, in the form ajv expects. */
const regExp = Object.assign(
  (pattern: string) => {
    try {
      const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern))
      return { test: (text: string) => compiled.matcher(text).find() }
    } catch {
      throw new Unsupported("a pattern uses what no linear-time engine can do (look-around or a back reference)")
    }
  },
  { code: "regExp" }
)

const unique = (wanted: boolean, value: ReadonlyArray<unknown>): boolean => {
  if (!wanted || value.length < 2) return true
  const seen = new Set<string>()
  for (const item of value) {
    const text = canonicalize(item) ?? "undefined"
    if (seen.has(text)) return false
    seen.add(text)
  }
  return true
}

const options: Options = {
  strict: false,
  allErrors: true,
  validateFormats: false,
  validateSchema: false,
  meta: false,
  addUsedSchema: false,
  inlineRefs: false,
  logger: false,
  code: { regExp }
}

const prepare = <A extends Ajv | Ajv2020>(ajv: A): A => {
  ajv.addKeyword({ keyword: STEP, validate: countStep, errors: false })
  ajv.removeKeyword("uniqueItems")
  ajv.addKeyword({ keyword: "uniqueItems", type: "array", schemaType: "boolean", validate: unique })
  return ajv
}

let modern: Ajv2020 | undefined
let draft7: Ajv | undefined

/** Keywords whose values are data, not schemas. */
const dataKeywords = new Set(["enum", "const", "default", "examples", "required", "type"])
/** Keywords whose values map names to schemas. */
const mapKeywords = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"])

/** A copy in which every subschema counts a step; `$schema` and `$id` of the root are left out. */
const instrumented = (schema: Json, asMap: boolean, root: boolean): Json => {
  if (Array.isArray(schema)) return (schema as ReadonlyArray<Json>).map((item) => instrumented(item, false, false))
  if (!isJsonObject(schema)) return schema
  const copy: Array<readonly [string, Json]> = []
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined || (root && (key === "$schema" || key === "$id"))) continue
    if (!asMap && dataKeywords.has(key)) copy.push([key, value])
    else copy.push([key, instrumented(value, !asMap && mapKeywords.has(key), false)])
  }
  if (!asMap) copy.push([STEP, true])
  return Object.fromEntries(copy)
}

/** Numbers in lossless form are numbers to a schema. */
const plain = (value: Json): unknown => {
  if (value instanceof LosslessNumber) return Number(value.value)
  if (Array.isArray(value)) return (value as ReadonlyArray<Json>).map(plain)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, inner === undefined ? undefined : plain(inner)]))
}

const escape = (key: string): string => key.replaceAll("~", "~0").replaceAll("/", "~1")

const propertyOf = (error: ErrorObject, name: string): string | undefined => {
  const value: unknown = error.params[name]
  return typeof value === "string" ? value : undefined
}

const misfit = (error: ErrorObject, root: JsonObject): Misfit => {
  const { keyword, instancePath: path } = error
  const missing = propertyOf(error, "missingProperty")
  if (missing !== undefined) return { path: `${path}/${escape(missing)}`, expectation: "is required", keyword }
  const extra = propertyOf(error, "additionalProperty") ?? propertyOf(error, "unevaluatedProperty")
  if (extra !== undefined) {
    const known = isJsonObject(own(root, "properties")) && path === "" ? Object.keys(own(root, "properties") ?? {}) : []
    const guesses = near(extra, known)
    const hint = guesses.length > 0 ? `; did you mean ${guesses.map((name) => `'${name}'`).join(" or ")}?` : ""
    return { path: `${path}/${escape(extra)}`, expectation: `is not a known key${hint}`, keyword }
  }
  const allowed: unknown = error.params["allowedValues"]
  if (Array.isArray(allowed)) {
    return { path, expectation: `must be one of ${JSON.stringify(allowed).slice(1, -1).slice(0, 500)}`, keyword }
  }
  if (keyword === "uniqueItems") return { path, expectation: "must not hold the same item twice", keyword }
  return { path, expectation: error.message ?? `must satisfy '${keyword}'`, keyword }
}

const run = (validate: ValidateFunction, value: Json, root: JsonObject): ReadonlyArray<Misfit> => {
  steps = 0
  try {
    if (validate(plain(value))) return []
  } catch (error) {
    if (error === exhausted || error instanceof RangeError) {
      return [{ path: "", expectation: "needs too much work to check against this schema", keyword: "validation_budget" }]
    }
    throw error
  }
  const misfits = (validate.errors ?? []).filter(({ keyword }) => keyword !== STEP && keyword !== "if")
  return misfits.slice(0, MAX_PROBLEMS).map((error) => misfit(error, root))
}

/** Compiles a guarded schema; a schema that cannot be used is a problem of its tool. */
export const compile = (schema: JsonObject): Either.Either<Validator, Problem> => {
  const dialect = own(schema, "$schema")
  const old = typeof dialect === "string" && dialect.includes("draft-07")
  const ajv = old ? (draft7 ??= prepare(new Ajv(options))) : (modern ??= prepare(new Ajv2020(options)))
  const copy = instrumented(schema, false, true)
  // The instrumented copy of an object is an object.
  const target = copy as { [key: string]: unknown }
  try {
    const validate = ajv.compile(target)
    return Either.right({ validate: (value) => run(validate, value, schema) })
  } catch (error) {
    return error instanceof Unsupported
      ? Either.left({ code: "schema_pattern_unsupported", path: "", message: error.message })
      : Either.left({
          code: "schema_invalid",
          path: "",
          message: `the schema cannot be compiled: ${error instanceof Error ? error.message.slice(0, 300) : "unknown fault"}`
        })
  } finally {
    ajv.removeSchema(target)
  }
}

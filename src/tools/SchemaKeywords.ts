/**
 * The keywords of JSON Schema 2020-12 and draft-07 that matter to validation, and the form each value must have.
 *
 * One table serves the guard, which checks a hostile schema before anything else looks at it, and the rewriting
 * for the validator, which copies nothing that is not in it. Keywords outside the table are annotations.
 */
import { isLosslessNumber } from "lossless-json"
import { isJsonObject, type Json } from "../base/Json.ts"

/** What the value of a keyword must be. */
export type Shape =
  | "schema"
  | "schemas"
  | "schemaMap"
  | "patternMap"
  | "items"
  | "dependencies"
  | "reference"
  | "anchor"
  | "number"
  | "positive"
  | "count"
  | "names"
  | "nameLists"
  | "pattern"
  | "boolean"
  | "type"
  | "values"
  | "value"

/** Every keyword by its exact name. A Map: names such as `constructor` come from outside. */
export const shapes: ReadonlyMap<string, Shape> = new Map<string, Shape>([
  ["$ref", "reference"],
  ["$dynamicRef", "reference"],
  ["$recursiveRef", "reference"],
  ["$anchor", "anchor"],
  ["$dynamicAnchor", "anchor"],
  ["$defs", "schemaMap"],
  ["definitions", "schemaMap"],
  ["type", "type"],
  ["enum", "values"],
  ["const", "value"],
  ["allOf", "schemas"],
  ["anyOf", "schemas"],
  ["oneOf", "schemas"],
  ["not", "schema"],
  ["if", "schema"],
  ["then", "schema"],
  ["else", "schema"],
  ["properties", "schemaMap"],
  ["patternProperties", "patternMap"],
  ["additionalProperties", "schema"],
  ["unevaluatedProperties", "schema"],
  ["propertyNames", "schema"],
  ["dependentSchemas", "schemaMap"],
  ["dependentRequired", "nameLists"],
  ["dependencies", "dependencies"],
  ["required", "names"],
  ["minProperties", "count"],
  ["maxProperties", "count"],
  ["prefixItems", "schemas"],
  ["items", "items"],
  ["additionalItems", "schema"],
  ["unevaluatedItems", "schema"],
  ["contains", "schema"],
  ["minContains", "count"],
  ["maxContains", "count"],
  ["minItems", "count"],
  ["maxItems", "count"],
  ["uniqueItems", "boolean"],
  ["pattern", "pattern"],
  ["minLength", "count"],
  ["maxLength", "count"],
  ["minimum", "number"],
  ["maximum", "number"],
  ["exclusiveMinimum", "number"],
  ["exclusiveMaximum", "number"],
  ["multipleOf", "positive"]
])

/** Keywords that apply a schema to the very same value; a cycle through these alone would never end. */
export const inPlace: ReadonlySet<string> = new Set([
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "dependentSchemas",
  "dependencies"
])

const types: ReadonlySet<unknown> = new Set(["null", "boolean", "object", "array", "number", "string", "integer"])

/** A number whatever form it was parsed into; `undefined` for anything else. */
export const numberOf = (value: Json | undefined): number | undefined => {
  if (typeof value === "number") return value
  return isLosslessNumber(value) ? Number(value.value) : undefined
}

/** Whether a value can be a schema: an object or a boolean. */
const isSchema = (value: Json | undefined): boolean => typeof value === "boolean" || isJsonObject(value)

/** What is wrong with the value of a keyword; `undefined` when it has its form. Members are not looked at. */
export const fault = (shape: Shape, value: Json | undefined): string | undefined => {
  switch (shape) {
    case "schema":
      return isSchema(value) ? undefined : "expected a schema"
    case "schemas":
      return Array.isArray(value) && value.length > 0 ? undefined : "expected a list of schemas"
    case "schemaMap":
    case "patternMap":
      return isJsonObject(value) ? undefined : "expected an object of schemas"
    case "items":
      return isSchema(value) || Array.isArray(value) ? undefined : "expected a schema"
    case "dependencies":
      return isJsonObject(value) ? undefined : "expected an object of schemas or lists of names"
    case "reference":
    case "anchor":
    case "pattern":
      return typeof value === "string" ? undefined : "expected a string"
    case "number":
      return numberOf(value) === undefined ? "expected a number" : undefined
    case "positive":
      return (numberOf(value) ?? 0) > 0 ? undefined : "expected a number above 0"
    case "count": {
      const count = numberOf(value)
      return count !== undefined && count >= 0 && count % 1 === 0 ? undefined : "expected a whole number of at least 0"
    }
    case "names":
      return Array.isArray(value) ? undefined : "expected a list of strings"
    case "nameLists":
      return isJsonObject(value) ? undefined : "expected an object of lists of names"
    case "boolean":
      return typeof value === "boolean" ? undefined : "expected true or false"
    case "type":
      return types.has(value) ||
        (Array.isArray(value) &&
          value.length > 0 &&
          value.length <= types.size &&
          value.every((each: unknown) => types.has(each)))
        ? undefined
        : "expected the name of a JSON type or a list of them"
    case "values":
      return Array.isArray(value) && value.length > 0 ? undefined : "expected a list with at least one value"
    case "value":
      return undefined
  }
}

/** What an object or array of the schema is read as. `literal` is data that is compared, never a schema. */
export type Role = "schema" | "schemas" | "map" | "dependencies" | "nameLists" | "names" | "types" | "data" | "literal"

/** What the value of a keyword is read as. */
const keywordRole = (keyword: string, value: Json): Role => {
  switch (shapes.get(keyword)) {
    case "schema":
      return "schema"
    case "items":
    case "schemas":
      return Array.isArray(value) ? "schemas" : "schema"
    case "schemaMap":
    case "patternMap":
      return "map"
    case "dependencies":
      return "dependencies"
    case "nameLists":
      return "nameLists"
    case "names":
      return "names"
    case "type":
      return "types"
    case "values":
    case "value":
      return "literal"
    default:
      return "data"
  }
}

/** What a member of an object or list is read as. */
export const childRole = (role: Role, key: string, value: Json): Role => {
  switch (role) {
    case "schema":
      return keywordRole(key, value)
    case "schemas":
    case "map":
      return "schema"
    case "dependencies":
      return Array.isArray(value) ? "names" : "schema"
    case "nameLists":
      return "names"
    default:
      return role
  }
}

/** What is wrong with a member of a list or map of this role. */
export const memberFault = (role: Role, value: Json): string | undefined => {
  switch (role) {
    case "schemas":
    case "map":
      return isSchema(value) ? undefined : "expected a schema"
    case "dependencies":
      return isSchema(value) || Array.isArray(value) ? undefined : "expected a schema or a list of names"
    case "nameLists":
      return Array.isArray(value) ? undefined : "expected a list of names"
    case "names":
      return typeof value === "string" ? undefined : "expected a string"
    default:
      return undefined
  }
}

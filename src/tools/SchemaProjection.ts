/**
 * Tool definitions in the form each model provider takes (spec section 9). Pure.
 *
 * Providers want an object at the root without alternatives, and Gemini knows only part of JSON Schema. What does
 * not fit is flattened or left out of the copy a model sees; arguments are always validated against the original,
 * so a projection can only be more lenient, never change what a server gets.
 */
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { resolveLocal } from "./SchemaGuard.ts"

/** Providers that lists can be made for. */
export const providers = ["openai", "anthropic", "gemini"] as const
/** One provider. */
export type Provider = (typeof providers)[number]

/** What a projection needs of a tool. */
export interface Projectable {
  readonly visibleName: string
  readonly description: string
  readonly inputSchema: JsonObject
}

const without = (schema: JsonObject, keys: ReadonlySet<string>): JsonObject =>
  Object.fromEntries(Object.entries(schema).filter(([key]) => !keys.has(key)))

const meta = new Set(["$schema", "$id", "$comment", "$anchor"])
const combinators = new Set(["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const", "$ref"])

const propertiesOf = (schema: JsonObject): JsonObject => {
  const properties = own(schema, "properties")
  return isJsonObject(properties) ? properties : {}
}

const requiredOf = (schema: JsonObject): ReadonlyArray<string> => {
  const required = own(schema, "required")
  return Array.isArray(required) ? (required as ReadonlyArray<Json>).filter((name) => typeof name === "string") : []
}

const branchesOf = (schema: JsonObject, keyword: string): ReadonlyArray<JsonObject> => {
  const branches = own(schema, keyword)
  return Array.isArray(branches) ? (branches as ReadonlyArray<Json>).filter(isJsonObject) : []
}

/** Properties and required names of an object schema with its root references and combinators merged in. */
interface Flat {
  readonly properties: JsonObject
  readonly required: ReadonlyArray<string>
}

const merge = (left: JsonObject, right: JsonObject): JsonObject =>
  Object.fromEntries([...Object.entries(right), ...Object.entries(left)])

/** `seen` holds what was merged already: each part of the schema is looked at once, however it is referred to. */
const flatten = (schema: JsonObject, root: JsonObject, seen: Set<JsonObject>): Flat => {
  if (seen.has(schema)) return { properties: {}, required: [] }
  seen.add(schema)
  let properties = propertiesOf(schema)
  let required = requiredOf(schema)
  const ref = own(schema, "$ref")
  const target = typeof ref === "string" ? resolveLocal(root, ref) : undefined
  const all = [...(isJsonObject(target) ? [target] : []), ...branchesOf(schema, "allOf")]
  for (const branch of all) {
    const flat = flatten(branch, root, seen)
    properties = merge(properties, flat.properties)
    required = [...new Set([...required, ...flat.required])]
  }
  for (const keyword of ["anyOf", "oneOf"]) {
    const flats = branchesOf(schema, keyword).map((branch) => flatten(branch, root, seen))
    const [first, ...others] = flats
    if (first === undefined) continue
    for (const flat of flats) properties = merge(properties, flat.properties)
    // Only what every alternative needs is needed.
    const common = first.required.filter((name) => others.every((flat) => flat.required.includes(name)))
    required = [...new Set([...required, ...common])]
  }
  return { properties, required }
}

/** An object schema without combinators at its root; the inside stays as it is. */
export const flatRoot = (schema: JsonObject): JsonObject => {
  const { properties, required } = flatten(schema, schema, new Set())
  const rest = without(without(schema, meta), combinators)
  return {
    ...rest,
    type: "object",
    properties,
    ...(required.length === 0 ? {} : { required })
  }
}

/** Keywords that Gemini's JSON Schema support knows; everything else would be refused or ignored. */
const geminiKeywords = new Set([
  "type",
  "properties",
  "required",
  "items",
  "prefixItems",
  "anyOf",
  "enum",
  "title",
  "description",
  "format",
  "minimum",
  "maximum",
  "minItems",
  "maxItems",
  "additionalProperties",
  "$ref",
  "$defs",
  "$anchor"
])

/** A schema, or a map from names to schemas. */
const geminiSchema = (schema: Json, asMap: boolean): Json => {
  if (Array.isArray(schema)) return (schema as ReadonlyArray<Json>).map((item) => geminiSchema(item, false))
  if (!isJsonObject(schema)) return schema
  const entries: Array<readonly [string, Json]> = []
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined) continue
    if (asMap) entries.push([key, geminiSchema(value, false)])
    else if (key === "const") entries.push(["enum", [value]])
    else if (key === "oneOf") entries.push(["anyOf", geminiSchema(value, false)])
    else if (key === "definitions") entries.push(["$defs", geminiSchema(value, true)])
    else if (key === "$ref" && typeof value === "string")
      entries.push([key, value.replace("#/definitions/", "#/$defs/")])
    else if (key === "enum" || key === "required" || key === "type") entries.push([key, value])
    else if (geminiKeywords.has(key)) entries.push([key, geminiSchema(value, key === "properties" || key === "$defs")])
  }
  return Object.fromEntries(entries)
}

/** The definition exactly as the provider gets it. */
export const project = (tool: Projectable, provider: Provider): JsonObject => {
  const schema = flatRoot(tool.inputSchema)
  const described = tool.description === "" ? {} : { description: tool.description }
  switch (provider) {
    case "openai":
      return { type: "function", function: { name: tool.visibleName, ...described, parameters: schema, strict: false } }
    case "anthropic":
      return { name: tool.visibleName, ...described, input_schema: schema }
    case "gemini":
      return { name: tool.visibleName, ...described, parametersJsonSchema: geminiSchema(schema, false) }
  }
}

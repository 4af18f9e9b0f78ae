/**
 * A guarded schema in the one form the validator compiles: 2020-12, without identifiers, every reference a name.
 *
 * Rewriting and not compiling what the server wrote has three reasons. Nothing outside the table of keywords
 * reaches the compiler, so `$async`, `$data`, formats and identifiers cannot do anything. draft-07 and 2019-09
 * become 2020-12, so one build of the compiler serves all. And every subschema gets a keyword that counts the
 * work it stands for, which bounds validation whatever the schema looks like.
 */
import { isLosslessNumber } from "lossless-json"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { type Facts, isDraft7 } from "./SchemaGuard.ts"
import { shapes } from "./SchemaKeywords.ts"

/** Keyword that counts work; its value is what one evaluation of the schema costs, at least 1. */
export const STEP = "x-sigil-step"
/** Characters of a compared literal that cost one step. */
const LITERAL_CHARACTERS = 32

/** What the compiler gets. */
export interface Rewritten {
  [keyword: string]: unknown
}

/** JSON with numbers as the compiler knows them. Digits beyond a double are rounded; a value beyond it is its end. */
export const plainNumber = (text: string): number => {
  const value = Number(text)
  return Number.isFinite(value) ? value : Math.sign(value) * Number.MAX_VALUE
}

const literal = (value: Json | undefined): unknown => {
  if (isLosslessNumber(value)) return plainNumber(value.value)
  if (Array.isArray(value)) return (value as ReadonlyArray<Json>).map(literal)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, literal(inner)]))
}

/** The name that the compiler skips in maps. As a property it becomes a pattern, as a pattern it gets brackets. */
const PROTO = "__proto__"
const PROTO_PROPERTY = "^__proto__$"
const PROTO_PATTERN = "(?:__proto__)"

class Rewriting {
  private readonly root: JsonObject
  private readonly facts: Facts
  private readonly early: boolean
  private readonly draft7: boolean
  private readonly names = new Map<JsonObject, string>()

  constructor(root: JsonObject, facts: Facts, early: boolean) {
    this.root = root
    this.facts = facts
    this.early = early
    this.draft7 = isDraft7(root)
    for (const targets of facts.references.values()) {
      for (const target of targets) {
        if (isJsonObject(target) && !this.names.has(target)) this.names.set(target, `d${this.names.size}`)
      }
    }
  }

  run(): Rewritten {
    const definitions = [...this.names].map(([target, name]) => [name, this.counted(this.body(target))])
    const whole = this.place(this.root)
    // The root is an object, so its place is one, too.
    return definitions.length === 0
      ? (whole as Rewritten)
      : { ...(whole as Rewritten), $defs: Object.fromEntries(definitions) }
  }

  /** A schema where it stands: a reference when others refer to it too, so that it is compiled once. */
  private place(schema: Json): boolean | Rewritten {
    if (!isJsonObject(schema)) return schema !== false
    return this.names.has(schema) ? this.pointTo(schema) : this.counted(this.body(schema))
  }

  private pointTo(target: Json): boolean | Rewritten {
    if (!isJsonObject(target)) return target !== false
    return { $ref: `#/$defs/${this.names.get(target)}`, [STEP]: 1 }
  }

  /** Counts before the type is looked at, so that failing costs too. */
  private counted(body: Rewritten): Rewritten {
    return this.early ? this.before(body) : body
  }

  private before(schema: boolean | Rewritten): Rewritten {
    return { [STEP]: 1, allOf: [schema === false ? { not: {} } : schema] }
  }

  private body(schema: JsonObject): Rewritten {
    const out: Rewritten = {}
    const extra: Array<boolean | Rewritten> = []
    let cost = 1
    const references = (this.facts.references.get(schema) ?? []).map((target) => this.pointTo(target))
    const [first, ...others] = references
    if (first !== undefined) {
      if (typeof first === "boolean") extra.push(first)
      else out["$ref"] = first["$ref"]
      extra.push(...others)
      cost += references.length
    }
    const alone = this.draft7 && references.length > 0
    const tuple = own(schema, "items")
    for (const [key, value] of alone ? [] : Object.entries(schema)) {
      if (value === undefined) continue
      switch (shapes.get(key)) {
        case "schema":
          cost += 1
          if (key === "additionalItems") {
            if (Array.isArray(tuple)) out["items"] = this.place(value)
          } else if (key === "contains") out[key] = this.before(this.place(value))
          else out[key] = this.place(value)
          break
        case "schemas":
          cost += this.list(out, key, value)
          break
        case "items":
          if (Array.isArray(value)) cost += value.length > 0 ? this.list(out, "prefixItems", value) : 0
          else out[key] = this.place(value)
          cost += 1
          break
        case "schemaMap":
        case "patternMap":
        case "dependencies":
        case "nameLists":
          if (key !== "$defs" && key !== "definitions") cost += this.map(out, extra, key, value)
          break
        case "names":
          out[key] = value
          cost += Array.isArray(value) ? value.length : 0
          break
        case "values":
        case "value":
          out[key] = literal(value)
          cost += Math.ceil(JSON.stringify(out[key]).length / LITERAL_CHARACTERS)
          break
        case "type":
          out[key] = own(schema, "nullable") === true ? withNull(value) : value
          break
        case "number":
        case "positive":
        case "count":
        case "boolean":
        case "pattern":
          out[key] = literal(value)
          break
        default:
          break
      }
    }
    if (extra.length > 0) out["allOf"] = [...((out["allOf"] as ReadonlyArray<unknown> | undefined) ?? []), ...extra]
    out[STEP] = cost
    return out
  }

  private list(out: Rewritten, key: string, value: Json): number {
    // The guard has checked that it is a list of schemas.
    const items = value as ReadonlyArray<Json>
    out[key] = items.map((item) => this.place(item))
    return items.length
  }

  /** Maps by property name; gives what they cost. */
  private map(out: Rewritten, extra: Array<boolean | Rewritten>, key: string, value: Json): number {
    const required: Array<readonly [string, unknown]> = []
    const schemas: Array<readonly [string, unknown]> = []
    // The guard has checked that it is an object.
    const entries = Object.entries(value as JsonObject)
    for (const [name, each] of entries) {
      if (each === undefined) continue
      if (Array.isArray(each)) required.push([name, each])
      else schemas.push([name, this.place(each)])
    }
    for (const [name, each] of [...required, ...schemas]) {
      if (key === "properties" && name === PROTO) add(out, "patternProperties", PROTO_PROPERTY, each)
      else if (key === "properties") add(out, key, name, each)
      else if (key === "patternProperties") add(out, key, name === PROTO ? PROTO_PATTERN : name, each)
      else if (name === PROTO) {
        const needs = Array.isArray(each) ? { required: each } : each
        extra.push({ anyOf: [{ not: { required: [name] } }, needs], [STEP]: 1 })
      } else add(out, Array.isArray(each) ? "dependentRequired" : "dependentSchemas", name, each)
    }
    return entries.length + required.reduce((sum, [, names]) => sum + (names as ReadonlyArray<unknown>).length, 0)
  }
}

/** Puts one entry under a keyword that is a map; two schemas for one name both hold. */
const add = (out: Rewritten, keyword: string, name: string, value: unknown): void => {
  // Only this function makes these maps.
  const map = (out[keyword] as Record<string, unknown> | undefined) ?? {}
  map[name] = Object.hasOwn(map, name) ? { allOf: [map[name], value], [STEP]: 1 } : value
  out[keyword] = map
}

const withNull = (type: Json): ReadonlyArray<Json> => {
  const types: ReadonlyArray<Json> = Array.isArray(type) ? type : [type]
  return types.includes("null") ? types : [...types, "null"]
}

/**
 * Rewrites a schema that the guard has passed. With `early` every schema counts before it looks at the type, which
 * costs a little more and bounds also what only fails; needed when all faults are wanted and not the first one.
 */
export const rewrite = (root: JsonObject, facts: Facts, early: boolean): Rewritten =>
  new Rewriting(root, facts, early).run()

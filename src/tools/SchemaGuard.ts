/**
 * The first look at a hostile tool definition: bounds and shape, without recursion and without a compiler.
 *
 * A schema decides how long validation takes and how much memory it needs, and it comes from a server that is not
 * trusted. What passes here is small, local, finite and well formed; what does not costs that one tool (spec
 * section 9). One pass with an explicit stack stops at the first bound that is broken, so a huge or very deep
 * schema is refused in a moment. What a `$ref` names is walked as a schema too, wherever it stands.
 */
import { isJsonObject, type Json, type JsonObject, own, pointerKey, pointerSegment } from "../base/Json.ts"
import { KIB } from "../base/Units.ts"
import { childRole, fault, inPlace, memberFault, type Role, shapes } from "./SchemaKeywords.ts"

/** UTF-8 bytes of a schema, keys and strings together. */
export const MAX_SIZE = 256 * KIB
/** Objects, arrays and scalars of a schema. */
export const MAX_NODES = 10_000
/** Nested objects and arrays of a schema, the schema itself included; arguments may be deeper. */
export const MAX_DEPTH = 64
/** Characters of one pattern. */
export const MAX_PATTERN = KIB
/** Characters of a tool's name. */
export const MAX_TOOL_NAME = 256
/** Characters of a tool's title. */
export const MAX_TOOL_TITLE = KIB
/** Characters of a tool's description. Far more than is ever shown; what is longer is an attack on memory. */
export const MAX_TOOL_DESCRIPTION = 64 * KIB
/** Bytes that a number, a literal or the punctuation of a member count for. */
const PUNCTUATION = 4

/** Why a definition is refused. */
export interface Problem {
  /** `schema_…` or `tool_…`, stable. */
  readonly code: string
  /** JSON pointer; empty for the whole. */
  readonly path: string
  readonly message: string
}

/** The verdict. */
export type Verdict = { readonly ok: true } | { readonly ok: false; readonly reason: Problem }

/** What the walk found out, for whoever compiles the schema. */
export interface Facts {
  /** Per schema object: its references and what each names. */
  readonly references: ReadonlyMap<JsonObject, ReadonlyArray<Json>>
  /** Every object that stands where a schema stands. */
  readonly schemas: ReadonlyArray<JsonObject>
}

interface Frame {
  readonly value: JsonObject | ReadonlyArray<Json>
  readonly role: Role
  readonly parent: Frame | undefined
  readonly key: string
  readonly depth: number
  /** Below a nested `$id`: references count from there, which is not supported. */
  readonly rebased: boolean
  /** Whether it adds to size and nodes; a reference may make a second walk necessary. */
  readonly counts: boolean
}

interface Reference {
  readonly from: Frame
  readonly keyword: string
  readonly text: string
}

const knownDialects = /^https?:\/\/json-schema\.org\/(?:draft\/2020-12|draft\/2019-09|draft-07)\/schema#?$/
const digits = /^(?:0|[1-9]\d{0,8})$/

const pointer = (frame: Frame | undefined, key?: string): string => {
  const parts = key === undefined ? [] : [key]
  for (let at = frame; at?.parent !== undefined; at = at.parent) parts.push(at.key)
  return parts
    .toReversed()
    .map((part) => `/${pointerSegment(part)}`)
    .join("")
}

/** Follows a JSON pointer (the part after `#`), own properties only; `undefined` when it does not resolve. */
const follow = (root: JsonObject, fragment: string): Json | undefined => {
  let at: Json | undefined = root
  for (const part of fragment.split("/").slice(1)) {
    let key: string
    try {
      key = pointerKey(decodeURIComponent(part))
    } catch {
      return undefined
    }
    // Array.isArray does not narrow readonly arrays; elements of a JSON array are JSON.
    if (Array.isArray(at)) at = digits.test(key) ? (at as ReadonlyArray<Json>)[Number(key)] : undefined
    else at = isJsonObject(at) ? own(at, key) : undefined
    if (at === undefined) return undefined
  }
  return at
}

/** Follows a local reference by pointer, `#` or `#/…`; `undefined` when it does not resolve. */
export const resolveLocal = (root: JsonObject, ref: string): Json | undefined =>
  ref === "#" || ref.startsWith("#/") ? follow(root, ref.slice(1)) : undefined

class Walk {
  readonly root: JsonObject
  readonly schemas: Array<JsonObject> = []
  readonly references = new Map<JsonObject, Array<Json>>()
  private readonly base: string
  private readonly draft7: boolean
  private readonly stack: Array<Frame> = []
  private readonly pending: Array<Reference> = []
  private readonly seen = new Map<Json, Role>()
  private readonly anchors = new Map<string, Json>()
  private nodes = 0
  private size = 0

  constructor(root: JsonObject) {
    this.root = root
    const id = own(root, "$id")
    this.base = typeof id === "string" ? id.replace(/#$/, "") : ""
    this.draft7 = isDraft7(root)
  }

  run(): Problem | undefined {
    this.stack.push({
      value: this.root,
      role: "schema",
      parent: undefined,
      key: "",
      depth: 1,
      rebased: false,
      counts: true
    })
    for (let reference = 0; ; reference += 1) {
      const problem = this.drain()
      if (problem !== undefined) return problem
      const next = this.pending[reference]
      if (next === undefined) return this.endless()
      const unresolved = this.resolve(next)
      if (unresolved !== undefined) return unresolved
    }
  }

  private drain(): Problem | undefined {
    for (let frame = this.stack.pop(); frame !== undefined; frame = this.stack.pop()) {
      // Array.isArray does not narrow readonly arrays; what is no array is an object.
      const problem = Array.isArray(frame.value)
        ? this.list(frame, frame.value as ReadonlyArray<Json>)
        : this.object(frame, frame.value as JsonObject)
      if (problem !== undefined) return problem
    }
    return undefined
  }

  private list(frame: Frame, items: ReadonlyArray<Json>): Problem | undefined {
    if (items.length + this.nodes > MAX_NODES && frame.counts) return this.tooMany(frame)
    return this.members(frame, [...items.keys()].map(String))
  }

  private object(frame: Frame, value: JsonObject): Problem | undefined {
    const keys = Object.keys(value)
    if (keys.length + this.nodes > MAX_NODES && frame.counts) return this.tooMany(frame)
    if (frame.role === "map" && frame.key === "patternProperties" && keys.some((key) => key.length > MAX_PATTERN)) {
      return patternTooLong(frame, undefined)
    }
    const rebased = frame.rebased || this.rebases(frame, value)
    // An object that stands in two places, as in a schema made in this process, is one schema.
    if (frame.role === "schema" && this.seen.get(value) !== "schema") {
      this.schemas.push(value)
      const problem = this.keywords({ ...frame, rebased }, value, keys)
      if (problem !== undefined) return problem
    }
    return this.members(rebased === frame.rebased ? frame : { ...frame, rebased }, keys)
  }

  /** A nested `$id` begins a resource of its own; in draft-07 one that is only a fragment is an anchor. */
  private rebases(frame: Frame, value: JsonObject): boolean {
    if (frame.role !== "schema" || frame.parent === undefined) return false
    const id = own(value, "$id")
    return typeof id === "string" && !id.startsWith("#")
  }

  private keywords(frame: Frame, value: JsonObject, keys: ReadonlyArray<string>): Problem | undefined {
    for (const key of keys) {
      const shape = shapes.get(key)
      const member = value[key]
      if (
        key === "$schema" &&
        (typeof member !== "string" || (frame.parent === undefined && !knownDialects.test(member)))
      ) {
        return problem(
          "schema_dialect_unknown",
          pointer(frame, key),
          "the schema's dialect is neither 2020-12 nor draft-07"
        )
      }
      if (key === "$id" && typeof member === "string" && member.startsWith("#"))
        this.anchors.set(member.slice(1), value)
      if (shape === undefined) continue
      const wrong = fault(shape, member)
      if (wrong !== undefined) return problem("schema_invalid", pointer(frame, key), `'${key}': ${wrong}`)
      // The shape says what the value is; `fault` has checked it.
      if (shape === "anchor") this.anchors.set(member as string, value)
      if (shape === "pattern" && (member as string).length > MAX_PATTERN) return patternTooLong(frame, key)
      if (shape === "reference") this.pending.push({ from: frame, keyword: key, text: member as string })
    }
    return undefined
  }

  private members(frame: Frame, keys: ReadonlyArray<string>): Problem | undefined {
    this.seen.set(frame.value, frame.role)
    const list = Array.isArray(frame.value)
    for (const key of keys) {
      const child = list ? (frame.value as ReadonlyArray<Json>)[Number(key)] : (frame.value as JsonObject)[key]
      if (child === undefined) continue
      const wrong = memberFault(frame.role, child)
      if (wrong !== undefined) return problem("schema_invalid", pointer(frame, key), wrong)
      if (frame.counts) {
        this.nodes += 1
        this.size += PUNCTUATION + (list ? 0 : bytesOf(key)) + (typeof child === "string" ? bytesOf(child) : 0)
        if (this.nodes > MAX_NODES) return this.tooMany(frame)
        if (this.size > MAX_SIZE) {
          return problem("schema_too_large", pointer(frame, key), `the schema is larger than ${MAX_SIZE} bytes`)
        }
      }
      if (isJsonObject(child) || Array.isArray(child)) {
        if (frame.depth >= MAX_DEPTH) {
          return problem("schema_too_deep", pointer(frame, key), `the schema is nested deeper than ${MAX_DEPTH} levels`)
        }
        this.stack.push({
          value: child,
          role: childRole(frame.role, key, child),
          parent: frame,
          key,
          depth: frame.depth + 1,
          rebased: frame.rebased,
          counts: frame.counts
        })
      }
    }
    return undefined
  }

  private tooMany(frame: Frame): Problem {
    return problem("schema_too_large", pointer(frame), `the schema has more than ${MAX_NODES} parts`)
  }

  private resolve({ from, keyword, text }: Reference): Problem | undefined {
    const path = pointer(from, keyword)
    if (from.rebased) {
      return problem("schema_ref_unsupported", path, "a reference below a nested $id is not supported")
    }
    const local =
      this.base !== "" && (text === this.base || text.startsWith(`${this.base}#`))
        ? text.slice(this.base.length) || "#"
        : text
    if (!local.startsWith("#")) return problem("schema_ref_external", path, "a reference leaves the schema")
    const target =
      local === "#" || local.startsWith("#/") ? follow(this.root, local.slice(1)) : this.anchors.get(local.slice(1))
    if (target === undefined) return problem("schema_ref_unresolved", path, "a reference names nothing in the schema")
    const role = this.seen.get(target)
    const usable = typeof target === "boolean" || (isJsonObject(target) && (role === "schema" || role === "data"))
    if (!usable) return problem("schema_ref_unresolved", path, "a reference names something that is not a schema")
    // The frame was walked as a schema, so its value is an object.
    const owner = from.value as JsonObject
    const known = this.references.get(owner)
    if (known === undefined) this.references.set(owner, [target])
    else known.push(target)
    if (isJsonObject(target) && role === "data") {
      this.stack.push({
        value: target,
        role: "schema",
        parent: from,
        key: keyword,
        depth: 1,
        rebased: false,
        counts: false
      })
    }
    return undefined
  }

  /** Whether in-place keywords lead from some schema back to it. Depth first with an explicit stack. */
  private endless(): Problem | undefined {
    if (this.references.size === 0) return undefined
    const left = new Set<JsonObject>()
    const open = new Set<JsonObject>()
    const path: Array<{ readonly schema: JsonObject; readonly rest: Array<Json> }> = []
    const enter = (schema: Json): boolean => {
      if (!isJsonObject(schema) || left.has(schema)) return false
      if (open.has(schema)) return true
      open.add(schema)
      path.push({ schema, rest: this.samePlace(schema) })
      return false
    }
    for (const start of this.schemas) {
      enter(start)
      for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
        const next = top.rest.pop()
        if (next === undefined) {
          open.delete(top.schema)
          left.add(top.schema)
          path.pop()
        } else if (enter(next)) {
          return problem("schema_endless", "", "a reference leads back to itself without taking a step into the value")
        }
      }
    }
    return undefined
  }

  /** The schemas that see the same value as `schema` does. */
  private samePlace(schema: JsonObject): Array<Json> {
    const found: Array<Json> = [...(this.references.get(schema) ?? [])]
    if (this.draft7 && found.length > 0) return found
    for (const [key, value] of Object.entries(schema)) {
      if (value === undefined || !inPlace.has(key)) continue
      if (Array.isArray(value)) found.push(...(value as ReadonlyArray<Json>))
      else if (key.startsWith("depend") && isJsonObject(value)) {
        for (const each of Object.values(value)) if (isJsonObject(each)) found.push(each)
      } else found.push(value)
    }
    return found
  }
}

const bytesOf = (text: string): number => (text.length > MAX_SIZE ? text.length : Buffer.byteLength(text))

const problem = (code: string, path: string, message: string): Problem => ({ code, path, message })

const patternTooLong = (frame: Frame, key: string | undefined): Problem =>
  problem("schema_pattern_unsupported", pointer(frame, key), `a pattern is longer than ${MAX_PATTERN} characters`)

/** Whether a schema says that it is written in draft-07, where the neighbours of `$ref` do not count. */
export const isDraft7 = (schema: JsonObject): boolean => {
  const dialect = own(schema, "$schema")
  return typeof dialect === "string" && dialect.includes("draft-07")
}

/** Judges a schema and says what its references name. */
export const examine = (schema: JsonObject): { readonly facts: Facts } | { readonly problem: Problem } => {
  const walk = new Walk(schema)
  const found = walk.run()
  return found === undefined ? { facts: walk } : { problem: found }
}

const fine: Verdict = { ok: true }
const bad = (code: string, path: string, message: string): Verdict => ({
  ok: false,
  reason: problem(code, path, message)
})

/** Judges a schema of a tool's input or output. Whatever it is given, it ends soon and never overflows the stack. */
export const guard = (schema: unknown): Verdict => {
  if (!isJsonObject(schema)) return bad("schema_invalid", "", "the schema is not an object")
  const examined = examine(schema)
  return "facts" in examined ? fine : { ok: false, reason: examined.problem }
}

/** Keywords that say something about objects, and those that say something about other values. */
const objectKeywords = [
  "properties",
  "required",
  "additionalProperties",
  "patternProperties",
  "minProperties",
  "maxProperties"
]
const otherKeywords = [
  "items",
  "prefixItems",
  "enum",
  "const",
  "pattern",
  "minimum",
  "maximum",
  "minLength",
  "maxLength"
]

/**
 * Whether arguments, which always are an object, can fit: the type says so, or there is no type and nothing that
 * speaks of another one. `looks.left` bounds how many schemas are looked at; beyond it the answer is yes.
 */
const isForObjects = (schema: Json | undefined, root: JsonObject, looks: { left: number }): boolean => {
  if (schema === true || looks.left <= 0) return true
  looks.left -= 1
  if (!isJsonObject(schema)) return false
  const type = own(schema, "type")
  if (type !== undefined) return type === "object" || (Array.isArray(type) && type.includes("object"))
  const ref = own(schema, "$ref")
  if (typeof ref === "string") {
    const target = resolveLocal(root, ref)
    return target === undefined || isForObjects(target, root, looks)
  }
  if (objectKeywords.some((key) => Object.hasOwn(schema, key))) return true
  const alternatives = own(schema, "anyOf") ?? own(schema, "oneOf")
  if (Array.isArray(alternatives)) {
    return (alternatives as ReadonlyArray<Json>).some((one) => isForObjects(one, root, looks))
  }
  return !otherKeywords.some((key) => Object.hasOwn(schema, key))
}

const textFault = (definition: JsonObject, field: string, limit: number): Verdict => {
  const text = own(definition, field)
  if (text === undefined || text === null) return fine
  if (typeof text !== "string") return bad(`tool_${field}_invalid`, `/${field}`, `the ${field} is not a string`)
  return text.length > limit
    ? bad(`tool_${field}_too_long`, `/${field}`, `the ${field} is longer than ${limit} characters`)
    : fine
}

const at = (verdict: Verdict, member: string): Verdict =>
  verdict.ok ? verdict : { ok: false, reason: { ...verdict.reason, path: `/${member}${verdict.reason.path}` } }

/** How many schemas are looked at to find the type of a root. */
const MAX_LOOKS = 100

/**
 * Judges a whole definition: name, texts, annotations, schemas. An empty name is legal: the tool is called by
 * exactly that. A definition that fails is quarantined; the others of the list are not touched.
 */
export const toolGuard = (definition: unknown): Verdict => {
  if (!isJsonObject(definition)) return bad("tool_invalid", "", "the definition is not an object")
  const name = own(definition, "name")
  if (typeof name !== "string") return bad("tool_name_missing", "/name", "the definition has no name")
  for (const [field, limit] of [
    ["name", MAX_TOOL_NAME],
    ["title", MAX_TOOL_TITLE],
    ["description", MAX_TOOL_DESCRIPTION]
  ] as const) {
    const text = textFault(definition, field, limit)
    if (!text.ok) return text
  }
  const annotations = own(definition, "annotations")
  if (annotations !== undefined && annotations !== null && !isJsonObject(annotations)) {
    return bad("tool_annotations_invalid", "/annotations", "the annotations are not an object")
  }
  const input = own(definition, "inputSchema")
  if (input === undefined) return bad("schema_missing", "/inputSchema", "the definition has no input schema")
  const guarded = at(guard(input), "inputSchema")
  if (!guarded.ok) return guarded
  if (isJsonObject(input) && !isForObjects(input, input, { left: MAX_LOOKS })) {
    return bad("schema_invalid", "/inputSchema/type", 'the input schema\'s type is not "object"')
  }
  const output = own(definition, "outputSchema")
  return output === undefined || output === null ? fine : at(guard(output), "outputSchema")
}

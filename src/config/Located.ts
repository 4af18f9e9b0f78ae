/**
 * A parsed configuration text in which every key and value knows its position.
 *
 * TOML and JSON both become this tree, so one decoder serves both spellings and every error can name line and
 * column. Objects are lists of properties, never JavaScript objects: names such as `__proto__` are plain data,
 * and a key that is written twice stays visible.
 */
import { LosslessNumber } from "lossless-json"
import type { Json, JsonObject } from "../base/Json.ts"

/** Deepest nesting of a configuration text; anything deeper is refused before it can cost stack. */
export const MAX_DEPTH = 128

/** Line and column, both from 1; columns count UTF-16 units as editors do. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** One key of an object. */
export interface LocatedProperty {
  readonly key: string
  /** Position of the key. */
  readonly at: Position
  readonly value: LocatedNode
}

/** An object or table. */
export interface LocatedObject {
  readonly kind: "object"
  readonly at: Position
  readonly properties: ReadonlyArray<LocatedProperty>
}

/** An array. */
export interface LocatedArray {
  readonly kind: "array"
  readonly at: Position
  readonly items: ReadonlyArray<LocatedNode>
}

/** A value without children. `text` is the value's JSON form for dates and for numbers that a double cannot hold. */
export type LocatedScalar =
  | { readonly kind: "string"; readonly at: Position; readonly value: string }
  | { readonly kind: "number"; readonly at: Position; readonly value: number; readonly text?: string }
  | { readonly kind: "boolean"; readonly at: Position; readonly value: boolean }
  | { readonly kind: "null"; readonly at: Position }
  | { readonly kind: "date"; readonly at: Position; readonly text: string }

/** Any value of a configuration text. */
export type LocatedNode = LocatedObject | LocatedArray | LocatedScalar

/** The property `key`; the last one when it is written more than once, as every JSON reader does. */
export const propertyOf = (object: LocatedObject, key: string): LocatedProperty | undefined =>
  object.properties.findLast((property) => property.key === key)

/** Keys that are written more than once in this very object, each with its second position. */
export const duplicatesOf = (object: LocatedObject): ReadonlyMap<string, Position> => {
  const seen = new Set<string>()
  const twice = new Map<string, Position>()
  for (const { key, at } of object.properties) {
    if (!seen.has(key)) seen.add(key)
    else if (!twice.has(key)) twice.set(key, at)
  }
  return twice
}

/** The first key that is written twice, here or anywhere below. */
export const deepDuplicate = (
  node: LocatedNode,
  path: string
): { readonly path: string; readonly at: Position } | undefined => {
  if (node.kind === "array") {
    for (const [index, item] of node.items.entries()) {
      const found = deepDuplicate(item, `${path}[${index}]`)
      if (found !== undefined) return found
    }
    return undefined
  }
  if (node.kind !== "object") return undefined
  for (const [key, at] of duplicatesOf(node)) return { path: childPath(path, key), at }
  for (const { key, value } of node.properties) {
    const found = deepDuplicate(value, childPath(path, key))
    if (found !== undefined) return found
  }
  return undefined
}

/** A record without a prototype, so that no lookup by a name from outside ever meets one. */
export const record = <A>(entries: Iterable<readonly [string, A]>): { readonly [key: string]: A } => {
  const target: { [key: string]: A } = Object.create(null)
  for (const [key, value] of entries) target[key] = value
  return target
}

/** The value as JSON. Objects have no prototype; numbers keep digits that a double cannot hold. */
export const toJson = (node: LocatedNode): Json => {
  switch (node.kind) {
    case "object":
      return objectToJson(node)
    case "array":
      return node.items.map(toJson)
    case "number":
      if (node.text === undefined) return node.value
      return Number.isFinite(node.value) ? new LosslessNumber(node.text) : node.text
    case "null":
      return null
    case "date":
      return node.text
    default:
      return node.value
  }
}

/** An object as JSON, optionally without some keys. */
export const objectToJson = (node: LocatedObject, without?: string): JsonObject =>
  record(node.properties.flatMap(({ key, value }) => (key === without ? [] : [[key, toJson(value)] as const])))

/** The path of a child: `a.b`, or `a["odd name"]` when the key is not a plain word. */
export const childPath = (path: string, key: string): string => {
  const plain = /^[A-Za-z_$][A-Za-z0-9_$-]*$/.test(key)
  if (path === "") return plain ? key : JSON.stringify(key)
  return plain ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`
}

/** Turns offsets of a text into positions. Lines end at LF, CRLF or a lone CR. */
export const positions = (text: string): ((offset: number) => Position) => {
  const starts = [0]
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index)
    if (unit === 10 || (unit === 13 && text.charCodeAt(index + 1) !== 10)) starts.push(index + 1)
  }
  return (offset) => {
    let low = 0
    let high = starts.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((starts[middle] ?? 0) <= offset) low = middle
      else high = middle - 1
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 }
  }
}

/**
 * The shape of arguments, without any value (R section 7.6).
 *
 * The audit says what kind of data left, not the data. Keys come from outside, so their number and size are
 * bounded, and whoever records them hides known secrets in them first.
 */
import { isLosslessNumber } from "lossless-json"
import type { Json, JsonObject } from "../base/Json.ts"
import { isJsonObject } from "../base/Json.ts"
import { KIB } from "../base/Units.ts"
import { stringify } from "../protocol/Codec.ts"

/** Keys that are named at most. */
export const MAX_KEYS = 64
/** Longest key that is named, bytes. */
export const MAX_KEY_BYTES = 256
/** Bytes of all named keys together. */
export const MAX_ALL_KEYS_BYTES = 8 * KIB

type JsonType = "null" | "boolean" | "number" | "string" | "array" | "object"

const typeOf = (value: Json | undefined): JsonType => {
  if (value === null || value === undefined) return "null"
  if (Array.isArray(value)) return "array"
  if (isLosslessNumber(value)) return "number"
  const type = typeof value
  return type === "boolean" || type === "number" || type === "string" ? type : "object"
}

/** Bytes of a value as compact JSON. */
const bytesOf = (value: Json): number => Buffer.byteLength(stringify(value))

/** How keys are named; a caller hides known secrets in them. */
export type RedactText = (text: string) => string

/**
 * The shape of a value: an object's size, its keys and their types; an array's size and length; a scalar's size.
 * Never a value. Keys beyond the bounds are counted in `omitted_top_level_keys` and set `truncated`.
 */
export const argumentShape = (value: Json, redact: RedactText = (text) => text): JsonObject => {
  const byte_count = bytesOf(value)
  if (Array.isArray(value)) return { byte_count, item_count: value.length, type: "array" }
  if (!isJsonObject(value)) return { byte_count, type: typeOf(value) }
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  const named: Array<readonly [string, JsonType]> = []
  let room = MAX_ALL_KEYS_BYTES
  for (const [raw, member] of members) {
    if (named.length === MAX_KEYS) break
    const key = redact(raw)
    const bytes = Buffer.byteLength(key)
    if (bytes > MAX_KEY_BYTES || bytes > room) continue
    room -= bytes
    named.push([key, typeOf(member)])
  }
  const omitted = members.length - named.length
  return {
    byte_count,
    // `fromEntries` defines own properties, whatever the key is called.
    field_types: Object.fromEntries([...named].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))),
    omitted_top_level_keys: omitted,
    top_level_key_count: members.length,
    top_level_keys: named.map(([key]) => key),
    truncated: omitted > 0,
    type: "object"
  }
}

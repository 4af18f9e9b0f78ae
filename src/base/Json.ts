/**
 * JSON values as TypeScript sees them.
 *
 * A number that JavaScript cannot hold exactly (16 or more digits, or an exponent) arrives as a
 * `LosslessNumber` of the protocol room; it is an object with a `value` string and travels through unchanged.
 */

/** A number with all its digits. The shape of lossless-json's class, so that no public type needs that package. */
export interface LosslessNumber {
  /** The digits as they were written. */
  readonly value: string
  readonly isLosslessNumber: boolean
  readonly toString: () => string
}

/** Any JSON value. */
export type Json = null | boolean | number | string | LosslessNumber | ReadonlyArray<Json> | JsonObject

/** A JSON object. Keys come from outside; read them with `Object.hasOwn` or after a copy to a Map. */
export interface JsonObject {
  readonly [key: string]: Json | undefined
}

/** Whether a value is a JSON object (no array, no null, no number in lossless form). */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  !("isLosslessNumber" in value && value.isLosslessNumber === true)

/** The own property `key` of a JSON object, never one of a prototype. */
export const own = (object: JsonObject, key: string): Json | undefined =>
  Object.hasOwn(object, key) ? object[key] : undefined

/** A key as a segment of a JSON pointer (RFC 6901, section 3). */
export const pointerSegment = (key: string): string => key.replaceAll("~", "~0").replaceAll("/", "~1")

/** The key that a segment of a JSON pointer stands for (RFC 6901, section 4). */
export const pointerKey = (segment: string): string => segment.replaceAll("~1", "/").replaceAll("~0", "~")

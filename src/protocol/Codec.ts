/**
 * JSON text to values and back without losing digits.
 *
 * JavaScript numbers hold about 15 digits. A text that contains a run of 16 or more digits or an exponent is
 * parsed by lossless-json, so that the wire, the model and the output see the same digits (spec section 6);
 * every other text takes the fast native path. Native parsing is iterative, so hostile nesting costs no stack;
 * what is nested deeper than the lossless parser can follow is parsed natively and refused later by depth.
 */
import { isLosslessNumber, LosslessNumber, parse as parseLossless, stringify as stringifyLossless } from "lossless-json"
import type { Json } from "../base/Json.ts"

/** Deepest nesting that sigil processes in results, arguments and schemas; deeper values are refused by name. */
export const MAX_NESTING = 1_000

/** Matches text in which some number might not survive a double. May match inside strings, which is harmless. */
const mayLoseDigits = /\d{16}|\d[eE]/

/** Whether any number in lossless form was ever made here; most processes never see one. */
let losslessMade = false

const parseNumber = (text: string): number | LosslessNumber => {
  const value = Number(text)
  if (String(value) === text) return value
  losslessMade = true
  return new LosslessNumber(text)
}

/** As JSON.parse does; the library's default is to throw. */
const lastWins = ({ newValue }: { readonly newValue: unknown }): unknown => newValue

/**
 * Parses one JSON text.
 *
 * @throws SyntaxError when the text is not JSON. Callers turn it into their own typed failure.
 */
export const parse = (text: string): Json => {
  if (!mayLoseDigits.test(text)) return JSON.parse(text)
  try {
    // lossless-json types its result as unknown; with this number parser it is exactly `Json`.
    return parseLossless(text, undefined, { parseNumber, onDuplicateKey: lastWins }) as Json
  } catch (error) {
    if (error instanceof RangeError) return JSON.parse(text)
    throw error
  }
}

/** Whether a value holds a number in lossless form. Iterative: depth costs no stack. */
export const holdsLossless = (value: unknown): boolean => {
  if (!losslessMade || typeof value !== "object" || value === null) return false
  const stack: Array<object> = [value]
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    if (isLosslessNumber(next)) return true
    for (const child of Object.values(next)) {
      if (typeof child === "object" && child !== null) stack.push(child)
    }
  }
  return false
}

/** Whether a value is nested deeper than `limit` levels. Recursion ends at the limit, so depth costs no stack. */
export const deeperThan = (value: unknown, limit: number): boolean => {
  if (typeof value !== "object" || value === null) return false
  if (limit <= 0) return true
  for (const child of Object.values(value)) {
    if (typeof child === "object" && child !== null && deeperThan(child, limit - 1)) return true
  }
  return false
}

/**
 * Prints a JSON value on one line. Numbers in lossless form keep their digits; a lone UTF-16 surrogate is
 * escaped by JSON itself, so the text is always valid UTF-8.
 */
export const stringify = (value: unknown, indent?: number): string =>
  holdsLossless(value)
    ? (stringifyLossless(value, undefined, indent) ?? "null")
    : (JSON.stringify(value, undefined, indent) ?? "null")

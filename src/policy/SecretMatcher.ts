/**
 * Finds known secret values in text, in the forms they travel in, in time linear in the text.
 *
 * Every value is searched in all forms of `SecretForms.ts`. Of each form one window of six characters, the rarest among all, goes into a table; the search
 * steps over the text in blocks of three (Wu and Manber's scheme), so it looks at a fraction of the characters,
 * and compares a whole form only where its window stands. A text made to look like secrets everywhere would cost
 * the product of both lengths; when comparing takes more than its share, prefix sums of a rolling hash answer
 * each comparison in one step.
 *
 * Invariants: what is hidden is the union of all occurrences, so the longest one wins and no tail of an
 * overlapping secret stays. Values under six characters would hide half of every text; they are hidden only where
 * they are the whole string (spec section 9). Adding a value touches only its own entries.
 */
import * as Beginnings from "./SecretBeginnings.ts"
import * as Spans from "./TextSpans.ts"
import { formsOf, MIN_LENGTH } from "./SecretForms.ts"

/** Characters of the window that leads to a form. */
const WINDOW = MIN_LENGTH
/** Characters of one block. */
const BLOCK = 3
const TABLE_SIZE = 1 << 16
const TABLE_MASK = TABLE_SIZE - 1
/** How far the search may step when a block is in no window. */
const FAR = WINDOW - BLOCK + 1
/** Places of a form that are considered for its window. */
const MAX_PLACES = 256
/**
 * What comparing costs, in time units of which the search needs a few per character: a fixed part, and one unit per
 * 2^5 characters. Above the budget per character the rolling hash, which costs about that much once, takes over.
 */
const COMPARE_WORK = 64
const COMPARE_BITS = 5
const WORK_PER_CHARACTER = 8
const FREE_WORK = 32_768
const HASH_BASE = 0x01000193

/** A growing set of values and the search over them. */
export interface SecretMatcher {
  /** Adds a value in all its forms; an empty one is ignored. */
  readonly add: (value: string) => void
  /** Where values stand in the text, or `undefined`; a short one covers the whole text or nothing. */
  readonly spans: (text: string) => Array<number> | undefined
  /** Whether some value occurs. */
  readonly finds: (text: string) => boolean
  /**
   * Where the longest end of the text begins that is the beginning of a form and has at least its `least` part:
   * anything, or so much of it that the rest is not worth keeping back. The text's length when there is none.
   */
  readonly openFrom: (text: string, least: "any" | "telling") => number
  /** How many values are known. */
  readonly size: () => number
}

const blockAt = (text: string, end: number): number =>
  ((text.charCodeAt(end) << 10) ^ (text.charCodeAt(end - 1) << 5) ^ text.charCodeAt(end - 2)) & TABLE_MASK

/** Where a window with these two blocks stands in the table. */
const slotOf = (first: number, last: number): number =>
  (Math.imul(first, 0x9e3779b1) ^ Math.imul(last, 0x85ebca6b)) >>> 16

/** Prefix sums of a rolling hash: the hash of any part in one step. */
const prefixSums = (text: string): Int32Array => {
  const sums = new Int32Array(text.length + 1)
  let sum = 0
  for (let index = 0; index < text.length; index += 1) {
    sum = (Math.imul(sum, HASH_BASE) + text.charCodeAt(index)) | 0
    sums[index + 1] = sum
  }
  return sums
}

/** Numbers of one form, side by side in one typed array: the search touches nothing else until it compares. */
const FIRST = 0
const LAST = 1
const OFFSET = 2
const LENGTH = 3
/** Index of the next shorter form in the same slot; -1 ends. */
const NEXT = 4
/** Hash of the whole form, and the factor that belongs to its length. */
const SUM = 5
const FACTOR = 6
/** First and last character, a cheap look before comparing. */
const ENDS = 7
/** 1: the character before, 2: the one after holds bits of the value, as base64 has it. */
const EDGES = 8
const FIELDS = 9

const endsOf = (text: string, start: number, end: number): number =>
  (text.charCodeAt(start) << 16) | text.charCodeAt(end - 1)

/** Both alphabets; `NaN` outside of the text is none of them. */
const isBase64 = (code: number): boolean =>
  (code >= 48 && code <= 57) ||
  (code >= 65 && code <= 90) ||
  (code >= 97 && code <= 122) ||
  code === 43 ||
  code === 45 ||
  code === 47 ||
  code === 95

/** Different characters in a window: one that repeats itself stands in many places. */
const variety = (text: string, from: number): number => {
  let different = 0
  for (let at = from; at < from + WINDOW; at += 1) if (text.indexOf(text[at] ?? "", from) === at) different += 1
  return different
}

/** An empty matcher. */
export const make = (): SecretMatcher => {
  const values = new Set<string>()
  const short = new Set<string>()
  const known = new Set<string>()
  const shifts = new Uint8Array(TABLE_SIZE).fill(FAR)
  const heads = new Int32Array(TABLE_SIZE).fill(-1)
  const texts: Array<string> = []
  let forms = new Int32Array(FIELDS * 64)
  // Only streams ask for beginnings; most runs never build this.
  const begun = Beginnings.make()

  const field = (form: number, which: number): number => forms[form * FIELDS + which] ?? -1

  const slotSize = (slot: number): number => {
    let size = 0
    for (let form = heads[slot] ?? -1; form >= 0; form = field(form, NEXT)) size += 1
    return size
  }

  /**
   * The place of a form whose window is the rarest so far; of those the one with the most different characters, and
   * of those the last: credentials of one maker differ at their ends.
   */
  const placeOf = (text: string): number => {
    let best = 0
    let bestScore = Infinity
    const places = text.length - WINDOW + 1
    const step = Math.max(1, Math.ceil(places / MAX_PLACES))
    for (let from = 0; from < places; from += step) {
      const present = slotSize(slotOf(blockAt(text, from + BLOCK - 1), blockAt(text, from + WINDOW - 1)))
      const score = present * (WINDOW + 1) - variety(text, from)
      if (score <= bestScore) {
        bestScore = score
        best = from
      }
    }
    return best
  }

  const enter = (text: string, edges: number): void => {
    const offset = placeOf(text)
    for (let end = BLOCK - 1; end < WINDOW; end += 1) {
      const block = blockAt(text, offset + end)
      shifts[block] = Math.min(shifts[block] ?? FAR, WINDOW - 1 - end)
    }
    const first = blockAt(text, offset + BLOCK - 1)
    const last = blockAt(text, offset + WINDOW - 1)
    const form = texts.push(text) - 1
    if (forms.length < texts.length * FIELDS) {
      const larger = new Int32Array(forms.length * 2)
      larger.set(forms)
      forms = larger
    }
    let sum = 0
    let factor = 1
    for (let index = 0; index < text.length; index += 1) {
      sum = (Math.imul(sum, HASH_BASE) + text.charCodeAt(index)) | 0
      factor = Math.imul(factor, HASH_BASE)
    }
    // Longest first: one that fits covers the shorter ones at the same place.
    const slot = slotOf(first, last)
    let before = -1
    let after = heads[slot] ?? -1
    while (after >= 0 && field(after, LENGTH) > text.length) {
      before = after
      after = field(after, NEXT)
    }
    forms.set(
      [first, last, offset, text.length, after, sum, factor, endsOf(text, 0, text.length), edges],
      form * FIELDS
    )
    if (before < 0) heads[slot] = form
    else forms[before * FIELDS + NEXT] = form
  }

  /**
   * Occurrences merged where they overlap, in order: start, end, start, end. Without `out` the first occurrence
   * ends the search. True when there is one.
   */
  const search = (text: string, out: Array<number> | undefined): boolean => {
    const size = text.length
    const budget = FREE_WORK + size * WORK_PER_CHARACTER
    const table = forms
    let work = 0
    let sums: Int32Array | undefined
    let any = false
    for (let end = WINDOW - 1; end < size;) {
      const last =
        ((text.charCodeAt(end) << 10) ^ (text.charCodeAt(end - 1) << 5) ^ text.charCodeAt(end - 2)) & TABLE_MASK
      const shift = shifts[last] ?? 1
      if (shift > 0) {
        end += shift
        continue
      }
      const first =
        ((text.charCodeAt(end - 3) << 10) ^ (text.charCodeAt(end - 4) << 5) ^ text.charCodeAt(end - 5)) & TABLE_MASK
      let form = heads[slotOf(first, last)] ?? -1
      // Shorter forms with the window at the place of one that fits are inside it.
      let covered = -1
      for (; form >= 0; form = table[form * FIELDS + NEXT] ?? -1) {
        const at = form * FIELDS
        const offset = table[at + OFFSET] ?? 0
        if (table[at + LAST] !== last || table[at + FIRST] !== first) continue
        const edges = table[at + EDGES] ?? 0
        if (offset === covered && edges === 0) continue
        const length = table[at + LENGTH] ?? 0
        const start = end - (WINDOW - 1) - offset
        const stop = start + length
        if (start < 0 || stop > size || endsOf(text, start, stop) !== table[at + ENDS]) continue
        if (sums === undefined) {
          work += COMPARE_WORK + (length >>> COMPARE_BITS)
          if (work > budget) sums = prefixSums(text)
        }
        // Comparing a slice is a comparison of memory; `startsWith` goes character by character.
        const fits =
          sums === undefined
            ? text.slice(start, stop) === texts[form]
            : (((sums[stop] ?? 0) - Math.imul(sums[start] ?? 0, table[at + FACTOR] ?? 0)) | 0) === table[at + SUM]
        if (!fits) continue
        any = true
        covered = offset
        if (out === undefined) return true
        Spans.join(
          out,
          (edges & 1) !== 0 && isBase64(text.charCodeAt(start - 1)) ? start - 1 : start,
          (edges & 2) !== 0 && isBase64(text.charCodeAt(stop)) ? stop + 1 : stop
        )
      }
      end += 1
    }
    return any
  }

  return {
    size: () => values.size,
    add: (value) => {
      if (value === "" || values.has(value)) return
      values.add(value)
      if (value.length < MIN_LENGTH) {
        short.add(value)
        return
      }
      for (const { text, before, after } of formsOf(value)) {
        if (known.has(text)) continue
        known.add(text)
        enter(text, (before ? 1 : 0) | (after ? 2 : 0))
      }
    },
    finds: (text) => short.has(text) || (known.size > 0 && search(text, undefined)),
    spans: (text) => {
      if (short.has(text)) return [0, text.length]
      if (known.size === 0 || text.length < MIN_LENGTH) return undefined
      const spans: Array<number> = []
      return search(text, spans) ? spans : undefined
    },
    openFrom: (text, least) => {
      while (begun.size() < texts.length) begun.add(texts[begun.size()] ?? "")
      return begun.openFrom(text, least)
    }
  }
}

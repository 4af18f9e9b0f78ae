/**
 * Finds known secret values in text, in the forms they travel in, in time linear in the text.
 *
 * Every value is searched as it is, JSON-escaped, URL-encoded, and in base64 at each of its three alignments in
 * both alphabets. Of each form one window of six characters, the rarest among all, goes into a table; the search
 * steps over the text in blocks of three (Wu and Manber's scheme), so it looks at a fraction of the characters,
 * and compares a whole form only where its window stands. A text made to look like secrets everywhere would cost
 * the product of both lengths; when comparing takes more than its share, prefix sums of a rolling hash answer
 * each comparison in one step.
 *
 * Invariants: what is hidden is the union of all occurrences, so the longest one wins and no tail of an
 * overlapping secret stays. Values under six characters would hide half of every text; they are hidden only where
 * they are the whole string (spec section 9). Adding a value touches only its own entries.
 */

/** Shorter values are matched as whole strings only. */
export const MIN_LENGTH = 6
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
  /** The text with every value replaced; the same string when there is none. */
  readonly replace: (text: string, placeholder: string) => string
  /** Whether some value occurs. */
  readonly finds: (text: string) => boolean
  /** How many values are known. */
  readonly size: () => number
}

const base64Forms = (value: string): ReadonlyArray<string> => {
  const bytes = Buffer.from(value)
  return [0, 1, 2].flatMap((offset) => {
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString("base64")
      .replace(/=+$/, "")
    // The first characters mix with what stands before the value, the last with what follows.
    const from = [0, 2, 3][offset] ?? 0
    const to = (offset + bytes.length) % 3 === 0 ? encoded.length : encoded.length - 1
    const fixed = encoded.slice(from, to)
    return [fixed, fixed.replaceAll("+", "-").replaceAll("/", "_")]
  })
}

/** JSON text of a string without its quotes, as writers differ: non-ASCII as it is or escaped, `/` with or without `\`. */
const jsonForms = (value: string): ReadonlyArray<string> => {
  const plain = JSON.stringify(value).slice(1, -1)
  const ascii = plain.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
  return [plain, ascii, plain.replaceAll("/", "\\/"), ascii.replaceAll("/", "\\/")]
}

const urlForms = (value: string): ReadonlyArray<string> => {
  // A lone surrogate cannot be encoded; the bytes of a process or a file hold U+FFFD in its place.
  const encoded = encodeURIComponent(Buffer.from(value).toString())
  const lower = encoded.replace(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase())
  // Forms and RFC 3986 also encode what encodeURIComponent leaves alone.
  const strict = encoded.replace(/[!'()*~]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)
  return [encoded, lower, strict, encoded.replaceAll("%20", "+"), strict.replaceAll("%20", "+")]
}

/** All forms of a value worth searching for. */
export const formsOf = (value: string): ReadonlyArray<string> =>
  [...new Set([value, ...jsonForms(value), ...urlForms(value), ...base64Forms(value)])].filter(
    (form) => form.length >= MIN_LENGTH
  )

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
const FIELDS = 8

const endsOf = (text: string, start: number, end: number): number =>
  (text.charCodeAt(start) << 16) | text.charCodeAt(end - 1)

/** Different characters in a window: one that repeats itself stands in many places. */
const variety = (text: string, from: number): number => new Set(text.slice(from, from + WINDOW)).size

/** An empty matcher. */
export const make = (): SecretMatcher => {
  const values = new Set<string>()
  const short = new Set<string>()
  const known = new Set<string>()
  const shifts = new Uint8Array(TABLE_SIZE).fill(FAR)
  const heads = new Int32Array(TABLE_SIZE).fill(-1)
  const texts: Array<string> = []
  let forms = new Int32Array(FIELDS * 64)

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

  const enter = (text: string): void => {
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
    forms.set([first, last, offset, text.length, after, sum, factor, endsOf(text, 0, text.length)], form * FIELDS)
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
        if (table[at + LAST] !== last || table[at + FIRST] !== first || offset === covered) continue
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
        join(out, start, stop)
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
      for (const form of formsOf(value)) {
        if (known.has(form)) continue
        known.add(form)
        enter(form)
      }
    },
    finds: (text) => short.has(text) || (known.size > 0 && search(text, undefined)),
    replace: (text, placeholder) => {
      if (short.has(text)) return placeholder
      if (known.size === 0 || text.length < MIN_LENGTH) return text
      const spans: Array<number> = []
      if (!search(text, spans)) return text
      const parts: Array<string> = []
      let at = 0
      for (let index = 0; index < spans.length; index += 2) {
        parts.push(text.slice(at, spans[index]), placeholder)
        at = spans[index + 1] ?? text.length
      }
      return parts.join("") + text.slice(at)
    }
  }
}

/**
 * Adds an occurrence to the spans. Windows come in order and each occurrence holds its window, so a new one
 * overlaps only spans at the end of the list.
 */
const join = (spans: Array<number>, start: number, end: number): void => {
  const last = spans.length - 1
  if (last > 0 && start < (spans[last] ?? 0) && start >= (spans[last - 1] ?? 0)) {
    if (end > (spans[last] ?? 0)) spans[last] = end
    return
  }
  let from = start
  let to = end
  while (spans.length > 0 && (spans[spans.length - 1] ?? 0) > from) {
    to = Math.max(to, spans.pop() ?? 0)
    from = Math.min(from, spans.pop() ?? 0)
  }
  spans.push(from, to)
}

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
/** Comparing may cost this much per character of the text before the rolling hash takes over. */
const WORK_PER_CHARACTER = 1
const FREE_WORK = 4_096
/** A comparison of the runtime looks at about this many characters in the time the search looks at one. */
const COMPARED_AT_ONCE = 16
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
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64").replace(/=+$/, "")
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

/** One form and the place of its window. */
interface Form {
  readonly text: string
  readonly first: number
  readonly last: number
  readonly offset: number
  /** Hash of the whole form, and the factor that belongs to its length; made when the rolling hash is needed. */
  sum: number | undefined
  factor: number
}

/** Receives an occurrence; true ends the search. */
type Found = (start: number, end: number) => boolean

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

const hashed = (form: Form): number => {
  if (form.sum !== undefined) return form.sum
  let sum = 0
  let factor = 1
  for (let index = 0; index < form.text.length; index += 1) {
    sum = (Math.imul(sum, HASH_BASE) + form.text.charCodeAt(index)) | 0
    factor = Math.imul(factor, HASH_BASE)
  }
  form.sum = sum
  form.factor = factor
  return sum
}

/** Different characters in a window: one that repeats itself stands in many places. */
const variety = (text: string, from: number): number => new Set(text.slice(from, from + WINDOW)).size

/** An empty matcher. */
export const make = (): SecretMatcher => {
  const values = new Set<string>()
  const short = new Set<string>()
  const known = new Set<string>()
  const shifts = new Uint8Array(TABLE_SIZE).fill(FAR)
  const slots: Array<Array<Form> | undefined> = Array.from({ length: TABLE_SIZE })

  /** The place of a form whose window is the rarest so far, and of those the one with the most different characters. */
  const placeOf = (text: string): number => {
    let best = 0
    let bestScore = Infinity
    const places = text.length - WINDOW + 1
    const step = Math.max(1, Math.ceil(places / MAX_PLACES))
    for (let from = 0; from < places; from += step) {
      const present = slots[slotOf(blockAt(text, from + BLOCK - 1), blockAt(text, from + WINDOW - 1))]?.length ?? 0
      const score = present * (WINDOW + 1) - variety(text, from)
      if (score < bestScore) {
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
    const slot = slotOf(first, last)
    const form: Form = { text, first, last, offset, sum: undefined, factor: 1 }
    const present = slots[slot]
    if (present === undefined) slots[slot] = [form]
    // Longest first: one that fits covers the shorter ones at the same place.
    else present.splice(present.findIndex((other) => other.text.length <= text.length) >>> 0, 0, form)
  }

  /** Gives every occurrence to `found`, ordered by the place of their windows. */
  const search = (text: string, found: Found): void => {
    const size = text.length
    let work = -FREE_WORK - size * WORK_PER_CHARACTER
    let sums: Int32Array | undefined
    const fits = (form: Form, start: number): boolean => {
      const length = form.text.length
      if (start < 0 || start + length > size) return false
      if (sums === undefined) {
        work += 1 + length / COMPARED_AT_ONCE
        if (work < 0) return text.startsWith(form.text, start)
        sums = prefixSums(text)
      }
      const wanted = hashed(form)
      return (((sums[start + length] ?? 0) - Math.imul(sums[start] ?? 0, form.factor)) | 0) === wanted
    }
    for (let end = WINDOW - 1; end < size; ) {
      const last =
        ((text.charCodeAt(end) << 10) ^ (text.charCodeAt(end - 1) << 5) ^ text.charCodeAt(end - 2)) & TABLE_MASK
      const shift = shifts[last] ?? 1
      if (shift > 0) {
        end += shift
        continue
      }
      const first = blockAt(text, end - BLOCK)
      const forms = slots[slotOf(first, last)]
      if (forms !== undefined) {
        for (const form of forms) {
          if (form.first !== first || form.last !== last) continue
          const start = end - (WINDOW - 1) - form.offset
          if (fits(form, start) && found(start, start + form.text.length)) return
        }
      }
      end += 1
    }
  }

  /** Occurrences merged where they overlap, in order: start, end, start, end. */
  const spans = (text: string): ReadonlyArray<number> => {
    const out: Array<number> = []
    search(text, (start, end) => {
      let from = start
      let to = end
      // The window of a later occurrence stands behind those of the earlier ones, so it can only join the last spans.
      for (let last = out.length - 1; last > 0 && (out[last] ?? 0) > from; last = out.length - 1) {
        to = Math.max(to, out[last] ?? 0)
        from = Math.min(from, out[last - 1] ?? 0)
        out.length -= 2
      }
      out.push(from, to)
      return false
    })
    return out
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
    finds: (text) => {
      if (short.has(text)) return true
      let any = false
      if (known.size > 0) {
        search(text, () => {
          any = true
          return true
        })
      }
      return any
    },
    replace: (text, placeholder) => {
      if (short.has(text)) return placeholder
      if (known.size === 0 || text.length < MIN_LENGTH) return text
      const found = spans(text)
      if (found.length === 0) return text
      const parts: Array<string> = []
      let at = 0
      for (let index = 0; index < found.length; index += 2) {
        parts.push(text.slice(at, found[index]), placeholder)
        at = found[index + 1] ?? text.length
      }
      return parts.join("") + text.slice(at)
    }
  }
}

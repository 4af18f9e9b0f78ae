/**
 * Finds known secret values in text: leftmost, longest, in the forms they travel in.
 *
 * Every value is searched as it is, JSON-escaped, URL-encoded, and in base64 at each of its three alignments in
 * both alphabets. The search skips over text in blocks (Wu and Manber's multi-pattern scheme): with no hit it
 * looks at a fraction of the characters. Values under six characters would hide half of every text; they are
 * hidden only where they are the whole string (spec section 9).
 */

/** Shorter values are matched as whole strings only. */
export const MIN_LENGTH = 6
const TABLE_BITS = 15
const TABLE_SIZE = 1 << TABLE_BITS
const MAX_SHIFT = 255
/** Characters of one block. */
const BLOCK = 3

/** A growing set of values and the search over them. */
export interface SecretMatcher {
  /** Adds a value in all its forms; an empty one is ignored. */
  readonly add: (value: string) => void
  /** The text with every value replaced; the same string when there is none. */
  readonly replace: (text: string, placeholder: string) => string
  /** Whether some value occurs. */
  readonly finds: (text: string) => boolean
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

/** All forms of a value worth searching for. */
export const formsOf = (value: string): ReadonlyArray<string> => {
  // A lone surrogate cannot be encoded; the bytes of a process or a file hold U+FFFD in its place.
  const wellFormed = Buffer.from(value).toString()
  const forms = [
    value,
    JSON.stringify(value).slice(1, -1),
    encodeURIComponent(wellFormed),
    encodeURIComponent(wellFormed).replaceAll("%20", "+"),
    ...base64Forms(value)
  ]
  return [...new Set(forms)].filter((form) => form.length >= MIN_LENGTH)
}

const blockHash = (text: string, end: number): number =>
  ((text.charCodeAt(end) * 31 + text.charCodeAt(end - 1)) * 31 + text.charCodeAt(end - 2)) & (TABLE_SIZE - 1)

/** An empty matcher. */
export const make = (): SecretMatcher => {
  const whole = new Set<string>()
  const known = new Set<string>()
  let shortest = Number.POSITIVE_INFINITY
  const shifts = new Uint8Array(TABLE_SIZE)
  /** Patterns by the hash of the block that ends their first `shortest` characters. */
  let buckets = new Map<number, Array<string>>()

  const enter = (pattern: string): void => {
    for (let end = BLOCK - 1; end < shortest; end += 1) {
      const hash = blockHash(pattern, end)
      const shift = Math.min(shortest - 1 - end, MAX_SHIFT)
      if (shift < (shifts[hash] ?? 0)) shifts[hash] = shift
      if (end !== shortest - 1) continue
      const bucket = buckets.get(hash)
      if (bucket === undefined) buckets.set(hash, [pattern])
      else {
        bucket.push(pattern)
        // Longest first: the first that fits is the longest.
        bucket.sort((left, right) => right.length - left.length)
      }
    }
  }
  const rebuild = (): void => {
    buckets = new Map()
    shifts.fill(Math.min(shortest - BLOCK + 1, MAX_SHIFT))
    for (const pattern of known) enter(pattern)
  }

  /** Start and end of the first match at or after `from`; `undefined` when there is none. */
  const next = (text: string, from: number): readonly [number, number] | undefined => {
    if (known.size === 0) return undefined
    for (let end = from + shortest - 1; end < text.length; ) {
      const hash = blockHash(text, end)
      const shift = shifts[hash] ?? 1
      if (shift > 0) {
        end += shift
        continue
      }
      const start = end - shortest + 1
      const hit = buckets.get(hash)?.find((pattern) => text.startsWith(pattern, start))
      if (hit !== undefined) return [start, start + hit.length]
      end += 1
    }
    return undefined
  }

  return {
    size: () => whole.size,
    add: (value) => {
      if (value === "" || whole.has(value)) return
      whole.add(value)
      if (value.length < MIN_LENGTH) return
      const fresh = formsOf(value).filter((form) => !known.has(form))
      const least = Math.min(...fresh.map((form) => form.length))
      for (const form of fresh) known.add(form)
      if (least < shortest) {
        shortest = least
        rebuild()
      } else for (const form of fresh) enter(form)
    },
    finds: (text) => whole.has(text) || next(text, 0) !== undefined,
    replace: (text, placeholder) => {
      if (whole.size === 0) return text
      if (whole.has(text)) return placeholder
      let at = 0
      let out = ""
      for (let match = next(text, 0); match !== undefined; match = next(text, match[1])) {
        out += text.slice(at, match[0]) + placeholder
        at = match[1]
      }
      return at === 0 && out === "" ? text : out + text.slice(at)
    }
  }
}

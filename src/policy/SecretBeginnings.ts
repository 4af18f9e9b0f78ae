/**
 * Whether a text ends with the beginning of a secret: what a stream needs to hide a value that comes in pieces.
 *
 * The hash of each short beginning of each form is kept; the ends of a text are hashed from the last character on and
 * looked up. Longer beginnings are compared where the first characters of their form stand. A hash that is taken for
 * another one hides the end of a text that did not need it, and nothing worse.
 */

/** Beginnings up to this length are looked up by their hash. */
const HASHED = 128
/** So many characters of a beginning are hidden though the value may not follow; less of short forms. */
const TELLING = 6
const BASE = 0x01000193

/** Beginnings of a growing list of forms. */
export interface Beginnings {
  readonly add: (form: string) => void
  readonly size: () => number
  /** See `SecretMatcher.openFrom`. */
  readonly openFrom: (text: string, least: "any" | "telling") => number
}

/** No forms yet. */
export const make = (): Beginnings => {
  /** Hash of a beginning: whether it says so much of its form that it is hidden. */
  const hashes = new Map<number, boolean>()
  const long: Array<string> = []
  let count = 0
  let longest = 0

  return {
    size: () => count,
    add: (form) => {
      count += 1
      const telling = Math.min(TELLING, Math.ceil(form.length / 2))
      let sum = 0
      for (let length = 1; length < form.length && length <= HASHED; length += 1) {
        sum = (Math.imul(sum, BASE) + form.charCodeAt(length - 1)) | 0
        const key = sum ^ (length << 20)
        hashes.set(key, hashes.get(key) === true || length >= telling)
        longest = Math.max(longest, length)
      }
      if (form.length > HASHED + 1) long.push(form)
    },
    openFrom: (text, least) => {
      let from = text.length
      for (const form of long) {
        const head = form.slice(0, HASHED)
        const first = Math.max(0, text.length - form.length + 1)
        for (let at = text.indexOf(head, first); at >= 0 && at < from; at = text.indexOf(head, at + 1)) {
          if (form.startsWith(text.slice(at))) from = at
        }
      }
      if (from < text.length) return from
      // The hash of an end grows to the left: each new character has the next power.
      let sum = 0
      let power = 1
      const furthest = Math.min(longest, text.length)
      for (let length = 1; length <= furthest; length += 1) {
        sum = (sum + Math.imul(text.charCodeAt(text.length - length), power)) | 0
        power = Math.imul(power, BASE)
        const telling = hashes.get(sum ^ (length << 20))
        if (telling === true || (telling === false && least === "any")) from = text.length - length
      }
      return from
    }
  }
}

/**
 * Where secrets stand in a text: known values, credentials of well-known formats, and known values in base64 that is
 * broken into lines, as mail and many tools write it.
 */
import * as CredentialScan from "./CredentialScan.ts"
import type { SecretMatcher } from "./SecretMatcher.ts"
import * as Spans from "./TextSpans.ts"

/** Stands for a hidden value. */
export const PLACEHOLDER = "[hidden]"

/** Lines of broken base64 have one length in these bounds; 64 and 76 are usual. */
const SHORTEST_LINE = 40
const LONGEST_LINE = 200

/** The search over one set of values. */
export interface SecretSearch {
  /** Parts of the text that must not be shown; `undefined` when there are none. */
  readonly spans: (text: string) => ReadonlyArray<number> | undefined
  /** The text without them; the same string when there are none. */
  readonly hide: (text: string) => string
  readonly finds: (text: string) => boolean
  /** See `SecretMatcher.openFrom`; credentials of well-known formats count too. */
  readonly openFrom: (text: string, least: "any" | "telling") => number
}

/** Only letters and digits of base64, both alphabets. */
const base64Line = /[A-Za-z0-9+/_-]*=?=?/y

/** The search with a matcher. */
export const make = (matcher: SecretMatcher): SecretSearch => {
  /** Whether `[from, to)` is one line of base64. */
  const isLine = (text: string, from: number, to: number): boolean => {
    base64Line.lastIndex = from
    return base64Line.test(text) && base64Line.lastIndex === to
  }

  /** Values in base64 that line breaks cut: the lines are put together, and what is found is put back. */
  const brokenSpans = (text: string): ReadonlyArray<number> | undefined => {
    let found: ReadonlyArray<number> | undefined
    let start = 0
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      const width = end - start
      if (width < SHORTEST_LINE || width > LONGEST_LINE + 1) {
        start = end + 1
        continue
      }
      const breakLength = text[end - 1] === "\r" ? 2 : 1
      const size = width - (breakLength - 1)
      if (!isLine(text, start, start + size)) {
        start = end + 1
        continue
      }
      const lines = [text.slice(start, start + size)]
      let next = end + 1
      for (;;) {
        base64Line.lastIndex = next
        base64Line.test(text)
        const taken = Math.min(base64Line.lastIndex, next + size)
        lines.push(text.slice(next, taken))
        const full = taken === next + size && text.startsWith(breakLength === 2 ? "\r\n" : "\n", taken)
        if (!full) {
          next = taken
          break
        }
        next = taken + breakLength
      }
      const back = (at: number): number => start + at + Math.floor(at / size) * breakLength
      const inside = matcher.spans(lines.join("")) ?? []
      const outside = inside.map((at, index) => (index % 2 === 0 ? back(at) : back(at - 1) + 1))
      found = Spans.union(found, outside)
      start = Math.max(end + 1, next)
    }
    return found
  }
  const spans = (text: string): ReadonlyArray<number> | undefined => {
    const known = matcher.spans(text)
    const formats = CredentialScan.spans(text)
    const broken = matcher.size() === 0 || text.length < SHORTEST_LINE ? undefined : brokenSpans(text)
    return Spans.union(Spans.union(known, formats), broken)
  }

  return {
    spans,
    hide: (text) => Spans.replace(text, spans(text), PLACEHOLDER),
    finds: (text) => spans(text) !== undefined,
    openFrom: (text, least) => Math.min(matcher.openFrom(text, least), CredentialScan.openFrom(text, least))
  }
}

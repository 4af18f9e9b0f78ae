/**
 * Where secrets stand in a text: known values, credentials of well-known formats, and known values in base64 that is
 * broken into lines, as mail and many tools write it.
 */
import * as CredentialScan from "./CredentialScan.ts"
import type { SecretMatcher } from "./SecretMatcher.ts"
import * as Spans from "./TextSpans.ts"

/** Stands for a hidden value. */
export const PLACEHOLDER = "[hidden]"

/** A line of broken base64 has at least so many characters, and at most so many are looked at. */
const SHORTEST_LINE = 32
const LONGEST_LINE = 512

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

/** A run of base64 from a place on, and one that ends a text. */
const runFrom = /[A-Za-z0-9+/_-]*/y
const runBefore = /[A-Za-z0-9+/_-]+$/

/** The search with a matcher. */
export const make = (matcher: SecretMatcher): SecretSearch => {
  /**
   * Values in base64 that line breaks cut: the lines are put together, and what is found is put back. A break is `cr`
   * and `lf`, or `lf` alone.
   */
  const brokenSpans = (text: string, cr: string, lf: string): ReadonlyArray<number> | undefined => {
    let found: ReadonlyArray<number> | undefined
    let from = 0
    for (let end = text.indexOf(lf); end >= 0; end = text.indexOf(lf, from)) {
      const stop = text.startsWith(cr, end - cr.length) ? end - cr.length : end
      const line = text.slice(Math.max(from, stop - LONGEST_LINE), stop)
      from = end + lf.length
      // A space is what most lines have near their end.
      if (line.length < SHORTEST_LINE || line.includes(" ", line.length - SHORTEST_LINE)) continue
      const first = runBefore.exec(line)?.[0] ?? ""
      if (first.length < SHORTEST_LINE) continue
      const parts = [first]
      const starts = [stop - first.length]
      for (let open = true; open;) {
        runFrom.lastIndex = from
        const part = runFrom.exec(text)?.[0] ?? ""
        parts.push(part)
        starts.push(from)
        const after = from + part.length
        const broken = text.startsWith(cr + lf, after)
          ? cr.length + lf.length
          : text.startsWith(lf, after)
            ? lf.length
            : 0
        open = broken > 0 && part.length >= SHORTEST_LINE
        from = open ? after + broken : after
      }
      const inside = matcher.spans(parts.join(""))
      if (inside !== undefined) found = Spans.union(found, outside(inside, parts, starts))
    }
    return found
  }

  const spans = (text: string): ReadonlyArray<number> | undefined => {
    const known = matcher.spans(text)
    const formats = CredentialScan.spans(text)
    const either = Spans.union(known, formats)
    if (matcher.size() === 0 || text.length < SHORTEST_LINE) return either
    // As they are, and as JSON text has them.
    return Spans.union(either, Spans.union(brokenSpans(text, "\r", "\n"), brokenSpans(text, "\\r", "\\n")))
  }

  return {
    spans,
    hide: (text) => Spans.replace(text, spans(text), PLACEHOLDER),
    finds: (text) => spans(text) !== undefined,
    openFrom: (text, least) => Math.min(matcher.openFrom(text, least), CredentialScan.openFrom(text, least))
  }
}

/** Where parts of the joined lines stand in the text; line breaks in between go with them. */
const outside = (
  inside: ReadonlyArray<number>,
  parts: ReadonlyArray<string>,
  starts: ReadonlyArray<number>
): ReadonlyArray<number> => {
  let part = 0
  let before = 0
  const place = (at: number): number => {
    while (at >= before + (parts[part]?.length ?? Infinity)) {
      before += parts[part]?.length ?? 0
      part += 1
    }
    return (starts[part] ?? 0) + at - before
  }
  // Ends are places behind the last character, which may be the last of its line.
  return inside.map((at, index) => (index % 2 === 0 ? place(at) : place(at - 1) + 1))
}

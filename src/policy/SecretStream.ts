/**
 * Hides secrets in texts that come one after the other and are read as one: lines of stderr, log messages, notes of
 * progress.
 *
 * A value may come in pieces. What the last texts ended with is kept as long as it may be the beginning of a secret,
 * and each new text is searched together with it, with and without a line break between them. A text is shown at
 * once, so its own end is hidden where it is a telling part of a secret that the next text may complete: a reader
 * gets at most the first characters of a value, never the rest.
 */
import { PLACEHOLDER, type SecretSearch } from "./SecretSearch.ts"
import * as Spans from "./TextSpans.ts"

/** Characters of the past that are searched again; the longest secret that may come in pieces. */
const MAX_PAST = 32_768

/** A place where texts come one after the other: gives each as it may be shown. */
export type SecretStream = (text: string) => string

/** What lies before the next text, joined in one way. */
interface Past {
  readonly between: string
  text: string
}

/** The beginning of a stream. */
export const make = (search: SecretSearch): SecretStream => {
  const pasts: ReadonlyArray<Past> = [
    { between: "", text: "" },
    { between: "\n", text: "" }
  ]
  return (text) => {
    if (text === "") return text
    let found = search.spans(text)
    for (const past of pasts) {
      const before = past.text === "" ? "" : past.text + past.between
      const joined = before + text
      if (before !== "")
        found = Spans.union(found, Spans.within(search.spans(joined) ?? [], before.length, joined.length))
      const telling = search.openFrom(joined, "telling")
      found = Spans.union(found, Spans.within([telling, joined.length], before.length, joined.length))
      const open = joined.slice(search.openFrom(joined, "any"))
      past.text = open.length > MAX_PAST ? open.slice(-MAX_PAST) : open
    }
    return Spans.replace(text, found, PLACEHOLDER)
  }
}

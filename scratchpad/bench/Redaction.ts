/** What the redaction bench measures: the shipped search, its matcher alone, and what would be written without them. */
import { make as makeMatcher } from "../../src/policy/SecretMatcher.ts"
import { make as makeSearch } from "../../src/policy/SecretSearch.ts"

/** The contenders over one set of values; each takes a text and gives it without secrets. */
export const contenders = (values: ReadonlyArray<string>) => {
  const matcher = makeMatcher()
  for (const value of values) matcher.add(value)
  const search = makeSearch(matcher)
  return {
    whole: search.hide,
    matcher: (text: string): string => (matcher.spans(text) === undefined ? text : "found"),
    /** The plain form only: no base64, no escapes, no formats. */
    naive: (text: string): string => values.reduce((rest, value) => rest.replaceAll(value, "[hidden]"), text)
  }
}

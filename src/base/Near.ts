/** Near names for "did you mean": by edit distance, best first. */
import { distance } from "fastest-levenshtein"

/** At most this many suggestions. */
const MAX_SUGGESTIONS = 3

/** Names close to `wanted`: a third of its length may differ, or one contains the other. */
export const near = (wanted: string, names: ReadonlyArray<string>): ReadonlyArray<string> => {
  const low = wanted.toLowerCase()
  return names
    .map((name) => ({ name, off: distance(low, name.toLowerCase()) }))
    .filter(
      ({ name, off }) =>
        // A swap of two letters counts as two edits.
        off <= (wanted.length < 4 ? 1 : Math.max(2, Math.floor(wanted.length / 3))) ||
        (low.length >= 3 && name.toLowerCase().includes(low)) ||
        (name.length >= 3 && low.includes(name.toLowerCase()))
    )
    .sort((left, right) => left.off - right.off || (left.name < right.name ? -1 : 1))
    .slice(0, MAX_SUGGESTIONS)
    .map(({ name }) => name)
}

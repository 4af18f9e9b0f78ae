/**
 * Wild cards of permission patterns: `*` is any run of characters, `/` included, `?` is one character, everything
 * else is itself. Two pointers and no backtracking stack, so a hostile text costs no more than both lengths multiplied.
 */

/** Whether the pattern has a wild card. */
export const isWild = (pattern: string): boolean => /[*?]/.test(pattern)

/** Whether the whole text fits the pattern. */
export const glob = (pattern: string, text: string): boolean => {
  let p = 0
  let t = 0
  let star = -1
  let resume = 0
  while (t < text.length) {
    if (p < pattern.length && pattern[p] === "*") {
      star = p++
      resume = t
    } else if (p < pattern.length && (pattern[p] === "?" || pattern[p] === text[t])) {
      p += 1
      t += 1
    } else if (star >= 0) {
      p = star + 1
      t = ++resume
    } else return false
  }
  while (pattern[p] === "*") p += 1
  return p === pattern.length
}

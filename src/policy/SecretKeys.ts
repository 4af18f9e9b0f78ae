/**
 * Which keys say that their value is a secret (spec section 9): exact names only, separators and case aside.
 *
 * Containing `token` or `password` is not enough: `max_tokens`, `pageToken` and `password_policy` are no secrets
 * (R section 7.4 lists what such rules break).
 */

const secretKeys = new Set([
  "password",
  "passwd",
  "secret",
  "clientsecret",
  "apikey",
  "accesstoken",
  "refreshtoken",
  "authorization",
  "privatekey"
])

/** Longest key that is looked at: the longest name with a separator after each character. */
const MAX_KEY = 32
/** Lower-case first letters of the names, a cheap look before the exact one. */
const firstLetters = /^[^A-Za-z0-9]*[psarc]/i

/** Whether a key names a secret. */
export const isSecretKey = (key: string): boolean =>
  key.length >= 6 &&
  key.length <= MAX_KEY &&
  firstLetters.test(key) &&
  secretKeys.has(key.replace(/[^A-Za-z0-9]/g, "").toLowerCase())

/** A member whose value is a string with something in it, as JSON text has it. */
const member = /"([^"\\\n]{6,32})"\s{0,8}:\s{0,8}"((?:[^"\\]|\\.){1,65536})"/gs

/**
 * Values of secret keys in a text that is JSON text: servers repeat structured content as text, and what is hidden
 * in the one must not stand in the other. Any other text has no keys.
 */
export const keyedSpans = (text: string): ReadonlyArray<number> | undefined => {
  if (!/^\s{0,64}[{[]/.test(text)) return undefined
  let found: Array<number> | undefined
  for (const match of text.matchAll(member)) {
    const [all, key = "", value = ""] = match
    if (!isSecretKey(key)) continue
    const end = match.index + all.length - 1
    found ??= []
    found.push(end - value.length, end)
  }
  return found
}

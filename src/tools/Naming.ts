/**
 * Names that models see: `mcp__<server>__<tool>` (spec section 5). Pure.
 *
 * A name depends on the set of tools, never on the order: members of a group that would share a name all carry a
 * suffix. Names are output only; nothing may be decided by taking one apart.
 */

/** Longest visible name. */
export const MAX_NAME = 64
const HASH_DIGITS = 16
const SUFFIX_LENGTH = 2 + HASH_DIGITS

/** One tool by its exact names. */
export interface ToolKey {
  readonly server: string
  readonly tool: string
}

const UNDERSCORE = 0x5f

/** A part of a name: `[A-Za-z0-9_-]`, other runs one `_`, edges without `_`, never empty (R section 2). */
export const sanitise = (part: string): string => {
  const clean = part.replace(/[^A-Za-z0-9_-]+/g, "_")
  // By hand: a pattern for trailing characters takes time in the square of a name made of them.
  let from = 0
  let to = clean.length
  while (from < to && clean.charCodeAt(from) === UNDERSCORE) from += 1
  while (to > from && clean.charCodeAt(to - 1) === UNDERSCORE) to -= 1
  return from === to ? "tool" : clean.slice(from, to)
}

const hex32 = (word: number): string => (word >>> 0).toString(16).padStart(8, "0")

/** FNV-1a with 64 bits over UTF-8, 16 hex digits; in two halves of 32 bits, because the prime is 2^40 + 0x1b3. */
export const fnv1a = (text: string): string => {
  let high = 0xcbf29ce4
  let low = 0x84222325
  for (const byte of Buffer.from(text)) {
    const mixed = (low ^ byte) >>> 0
    const product = mixed * 0x1b3
    high = (Math.imul(high, 0x1b3) + Math.floor(product / 0x1_0000_0000) + (mixed << 8)) >>> 0
    low = product >>> 0
  }
  return hex32(high) + hex32(low)
}

const plainName = ({ server, tool }: ToolKey): string => `mcp__${sanitise(server)}__${sanitise(tool)}`

const suffixed = (key: ToolKey, attempt: number): string => {
  // Later seeds carry a length, so that names with a NUL inside part in the end.
  const plainSeed = `${key.server}\0${key.tool}`
  const seed = attempt === 0 ? plainSeed : `${plainSeed}\0${key.server.length}\0${attempt}`
  return `${plainName(key).slice(0, MAX_NAME - SUFFIX_LENGTH)}__${fnv1a(seed)}`
}

/**
 * Every name the tool can be shown under, whatever else is listed beside it: without a suffix, and with each suffix it
 * gets in a clash. A list of one server and a list of all can show the same tool under different ones of them.
 */
export const possibleNames = (key: ToolKey): ReadonlyArray<string> => [
  plainName(key),
  suffixed(key, 0),
  suffixed(key, 1)
]

/** Names may hold any character, so the length says where one ends. */
const identity = ({ server, tool }: ToolKey): string => `${server.length}:${server}${tool}`

/**
 * Visible names in the order of the tools. The same tool given twice has the same name twice; different tools
 * never share one.
 */
export const visibleNames = (tools: ReadonlyArray<ToolKey>): ReadonlyArray<string> => {
  const unique = new Map(tools.map((key) => [identity(key), key]))
  const attempts = new Map<string, number>()
  for (const [id, key] of unique) if (plainName(key).length > MAX_NAME) attempts.set(id, 0)
  const nameOf = (id: string, key: ToolKey): string => {
    const attempt = attempts.get(id)
    return attempt === undefined ? plainName(key) : suffixed(key, attempt)
  }
  // What a round does to a clash depends on its members only, so the outcome does not depend on the order. Hashes
  // differ between tools, so rounds are few; a plain name that equals another's suffixed form joins in.
  for (let clash = true; clash;) {
    clash = false
    const groups = new Map<string, Array<string>>()
    for (const [id, key] of unique) {
      const name = nameOf(id, key)
      const group = groups.get(name)
      if (group === undefined) groups.set(name, [id])
      else group.push(id)
    }
    for (const group of groups.values()) {
      if (group.length < 2) continue
      clash = true
      // A plain name gives way first: a namesake must not be able to change the suffix of another tool.
      const plain = group.filter((id) => !attempts.has(id))
      for (const id of plain.length > 0 ? plain : group) attempts.set(id, (attempts.get(id) ?? -1) + 1)
    }
  }
  return tools.map((key) => nameOf(identity(key), key))
}

/** Whether a tool of this server could carry the visible name; the catalogue of the server decides. */
export const mayOwn = (server: string, visibleName: string): boolean => {
  const prefix = `mcp__${sanitise(server)}__`
  return (
    visibleName.startsWith(prefix) ||
    (visibleName.length === MAX_NAME && prefix.startsWith(visibleName.slice(0, MAX_NAME - SUFFIX_LENGTH)))
  )
}

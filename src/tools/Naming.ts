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
const MASK = 0xffff_ffff_ffff_ffffn

/** One tool by its exact names. */
export interface ToolKey {
  readonly server: string
  readonly tool: string
}

/** A part of a name: `[A-Za-z0-9_-]`, other runs one `_`, edges without `_`, never empty (R section 2). */
export const sanitise = (part: string): string => {
  const clean = part.replace(/[^A-Za-z0-9_-]+/g, "_").replace(/^_+|_+$/g, "")
  return clean === "" ? "tool" : clean
}

/** FNV-1a with 64 bits over UTF-8, 16 hex digits. */
const fnv1a = (text: string): string => {
  let hash = 0xcbf29ce484222325n
  for (const byte of Buffer.from(text)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & MASK
  return hash.toString(16).padStart(HASH_DIGITS, "0")
}

const plainName = ({ server, tool }: ToolKey): string => `mcp__${sanitise(server)}__${sanitise(tool)}`

const suffixed = (key: ToolKey, attempt: number): string => {
  const seed = attempt === 0 ? `${key.server}\0${key.tool}` : `${key.server}\0${key.tool}\0${attempt}`
  return `${plainName(key).slice(0, MAX_NAME - SUFFIX_LENGTH)}__${fnv1a(seed)}`
}

const identity = ({ server, tool }: ToolKey): string => `${server}\0${tool}`

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
  // Each round raises every member of every clash alike, so the outcome does not depend on the order. Hashes
  // differ between tools, so rounds are few; a plain name that equals another's suffixed form joins in.
  for (let clash = true; clash; ) {
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
      for (const id of group) attempts.set(id, (attempts.get(id) ?? -1) + 1)
    }
  }
  return tools.map((key) => nameOf(identity(key), key))
}

/** Whether a tool of this server could carry the visible name; the catalogue of the server decides. */
export const mayOwn = (server: string, visibleName: string): boolean => {
  const prefix = `mcp__${sanitise(server)}__`
  return visibleName.startsWith(prefix) || (visibleName.length === MAX_NAME && prefix.startsWith(visibleName.slice(0, MAX_NAME - SUFFIX_LENGTH)))
}

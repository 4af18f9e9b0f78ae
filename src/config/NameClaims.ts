/**
 * Names in a file that cannot be parsed, as far as they can be made out.
 *
 * They only ever claim names: a server of a broken file of the user is not replaced by a repository's namesake. A name
 * that is missed here costs nothing but that protection, so a rough reading is enough.
 */
import { parseTree } from "jsonc-parser"
import { positions } from "./Located.ts"
import { withoutBom } from "./JsonText.ts"
import { MAX_FILE_BYTES } from "./TextBounds.ts"

/** A name and the line it stands on, from 1. */
export interface NameClaim {
  readonly name: string
  readonly line: number
}

/** Deeper nesting than this is not looked at: the repairing parser is recursive. */
const MAX_BRACKETS = 20_000

const unique = (claims: ReadonlyArray<NameClaim>): ReadonlyArray<NameClaim> => {
  const seen = new Set<string>()
  return claims.filter(({ name }) => !seen.has(name) && name.trim() !== "" && seen.add(name))
}

/** Names under `[[mcp_servers]]` headers of a broken TOML text. */
export const claimsInToml = (whole: string): ReadonlyArray<NameClaim> => {
  const claims: Array<NameClaim> = []
  let inside = false
  for (const [index, line] of withoutBom(whole).slice(0, MAX_FILE_BYTES).split(/\r?\n/).entries()) {
    if (/^\s*\[/.test(line)) inside = /^\s*\[\[\s*["']?mcp_servers["']?\s*\]/.test(line)
    const name = inside ? /^\s*["']?name["']?\s*=\s*(?:"([^"\\]*)"|'([^']*)')/.exec(line) : null
    const text = name?.[1] ?? name?.[2]
    if (text !== undefined) claims.push({ name: text, line: index + 1 })
  }
  return unique(claims)
}

/** Keys under `mcpServers` of a broken JSON text, read by the parser that repairs what it can. */
export const claimsInJson = (whole: string): ReadonlyArray<NameClaim> => {
  const text = withoutBom(whole)
  if (text.length > MAX_FILE_BYTES || (text.match(/[[{]/g)?.length ?? 0) > MAX_BRACKETS) return []
  let depth = 0
  for (const character of text) {
    if (character === "{" || character === "[") depth += 1
    if (character === "}" || character === "]") depth -= 1
    if (depth > 1_000) return []
  }
  const at = positions(text)
  const root = parseTree(text, [], { allowTrailingComma: true })
  return unique(
    (root?.children ?? []).flatMap((property) => {
      const [key, value] = property.children ?? []
      if (key?.value !== "mcpServers" && key?.value !== "mcp_servers") return []
      return (value?.children ?? []).flatMap((entry) => {
        const name = entry.children?.[0]
        return name === undefined ? [] : [{ name: String(name.value), line: at(name.offset).line }]
      })
    })
  )
}

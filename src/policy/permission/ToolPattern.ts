/**
 * Whether a pattern of a rule names a tool (spec section 8, S section 6.3).
 *
 * `mcp__S__T` matches in two parts, the sanitised server name and the sanitised tool name, and `*` never crosses from
 * one to the other; `mcp__S` is the whole server. Names are chosen by servers, and two of them can read alike, so the
 * reading depends on what the pattern is for. One that tightens is read in every way that fits. One that widens is
 * read narrowly, so that no tool of one server borrows the permission of another by its name:
 *
 * - the parts of a name may themselves hold `__`; only the reading with the shortest server part counts, and not
 *   even that one where a longer reading names another declared server;
 * - a name that a tool of another declared server could carry as well is nobody's;
 * - a server part without wild cards that fits two declared servers means the one whose exact name it is.
 */
import { glob, isWild } from "./Glob.ts"

/** The names of one tool. */
export interface ToolNames {
  /** As models and rules see it. */
  readonly visibleName: string
  /** Other names it can be shown under, in other lists of tools; a pattern that tightens may be any of them. */
  readonly shownAs?: ReadonlyArray<string>
  /** Of a server's tool: the exact server name, and the sanitised parts before any suffix. */
  readonly mcp?: { readonly server: string; readonly serverPart: string; readonly toolPart: string }
  /** Sanitised names of the other declared servers. */
  readonly rivals: ReadonlyArray<string>
}

/** How a pattern is read. */
export interface Reading {
  /** It allows: it is read narrowly. */
  readonly widens: boolean
  /**
   * Letters compare without case. What tightens is then read leniently too: it may be any name the tool can be shown
   * under, and a part may have the edges that sanitising takes away. Write other characters as `asVisible` does.
   */
  readonly fold: boolean
}

const PREFIX = "mcp__"

/** A part of a pattern as sanitising leaves it: no `_` at its edges, never empty. */
const withoutEdges = (part: string): string => (part === "" ? part : part.replace(/^_+|(?<!_)_+$/g, "") || "tool")

/** Whether the pattern names the tool. */
export const namesTool = (pattern: string, { fold, widens }: Reading, names: ToolNames): boolean => {
  const plain = fold ? (text: string) => text.toLowerCase() : (text: string) => text
  const { mcp, rivals, shownAs = [], visibleName } = names
  const lenient = fold && !widens
  const wanted = plain(pattern)
  const visible = plain(visibleName)
  if (mcp === undefined) return glob(wanted, visible)

  const suffixed = visibleName !== `${PREFIX}${mcp.serverPart}__${mcp.toolPart}`
  const contested = () => !suffixed && rivals.some((rival) => visible.startsWith(`${PREFIX}${plain(rival)}__`))
  if (wanted === visible) return !(widens && contested())
  if (lenient && shownAs.some((name) => wanted === plain(name))) return true
  if (!wanted.startsWith(PREFIX)) return glob(wanted, visible) && !(widens && wanted.includes("__"))

  const server = plain(mcp.serverPart)
  const fits = (part: string, name: string): boolean => glob(part, name) || (lenient && glob(withoutEdges(part), name))
  const namesServer = (from: number, to: number): boolean => {
    const part = wanted.slice(from, to)
    if (!fits(part, server)) return false
    if (!widens || isWild(part) || !rivals.some((rival) => plain(rival) === server)) return true
    return pattern.slice(from, to) === mcp.server
  }
  const begin = PREFIX.length
  const first = wanted.indexOf("__", begin)
  if (first < 0) return namesServer(begin, wanted.length)
  const fitsAt = (at: number): boolean => namesServer(begin, at) && fits(wanted.slice(at + 2), plain(mcp.toolPart))
  if (widens) {
    // A longer reading that names a declared server: nobody can tell which of the two was meant.
    const ambiguous = rivals.some(
      (rival) => begin + rival.length > first && wanted.startsWith(`${PREFIX}${plain(rival)}__`)
    )
    return !ambiguous && fitsAt(first)
  }
  if (wanted.slice(begin) === server) return true
  for (let at = first; at >= 0; at = wanted.indexOf("__", at + 1)) if (fitsAt(at)) return true
  return false
}

/**
 * Whether a pattern for MCP tools could name any tool of a server, under any reading; for warnings only. `exact` is for
 * patterns whose case and edges count.
 */
export const reachesServer = (pattern: string, serverPart: string, exact = false): boolean => {
  const wanted = exact ? pattern : pattern.toLowerCase()
  const server = exact ? serverPart : serverPart.toLowerCase()
  const fits = (part: string): boolean => glob(part, server) || (!exact && glob(withoutEdges(part), server))
  if (!wanted.startsWith(PREFIX)) return isWild(wanted)
  const body = wanted.slice(PREFIX.length)
  if (fits(body)) return true
  for (let at = body.indexOf("__"); at >= 0; at = body.indexOf("__", at + 1)) if (fits(body.slice(0, at))) return true
  // A visible name with a suffix is cut to a bound, so its server part may be too.
  return body.length > 40 && server.startsWith(body.slice(0, 20))
}

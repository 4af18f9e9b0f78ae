/**
 * Ranking of tools for a query: pure, with the weights of S section 6.6.
 *
 * `select:a,b` takes exact names; a name stands for itself; `mcp__…` is a prefix; everything else is words. `+word`
 * must occur. Words outside ASCII match as substrings, because word boundaries do not exist in many scripts.
 */
import { isJsonObject, type JsonObject, own } from "../base/Json.ts"

/** Characters of parameter names and descriptions that are searched (S section 6.6). */
const MAX_PARAMETER_TEXT = 512
/** Most results before the caller's own limit (S section 6.6). */
export const MAX_MATCHES = 50
const PREFIX_SCORE = 50
const SELECT_SCORE = 100

/** What is searched of a tool. */
export interface Searchable {
  readonly server: string
  readonly name: string
  readonly visibleName: string
  readonly description: string
  readonly inputSchema: JsonObject
}

/** A hit. */
export interface Match<T extends Searchable> {
  readonly tool: T
  readonly score: number
}

const parameterText = (schema: JsonObject): string => {
  const properties = own(schema, "properties")
  if (!isJsonObject(properties)) return ""
  const words: Array<string> = []
  for (const [key, value] of Object.entries(properties)) {
    const description = isJsonObject(value) ? own(value, "description") : undefined
    words.push(key, typeof description === "string" ? description : "")
  }
  return words.join(" ").toLowerCase().slice(0, MAX_PARAMETER_TEXT)
}

/** `mcp__a__b_c` has the parts a, b, c; camelCase is split, too. */
export const partsOf = (visibleName: string): ReadonlyArray<string> =>
  visibleName
    .replace(/^mcp__/, "")
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((part) => part !== "")

/** Whether a text holds a word: whole for ASCII words, anywhere for others. */
const hasWord = (text: string, word: string): boolean => {
  if (/[^ -~]/.test(word)) return text.includes(word)
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    const before = at === 0 || !/\w/.test(text[at - 1] ?? "")
    const after = !/\w/.test(text[at + word.length] ?? "")
    if ((before || !/\w/.test(word[0] ?? "")) && (after || !/\w/.test(word.at(-1) ?? ""))) return true
  }
  return false
}

interface Prepared {
  readonly parts: ReadonlyArray<string>
  readonly spaced: string
  readonly description: string
  readonly parameters: string
}

const prepare = (tool: Searchable): Prepared => {
  const parts = partsOf(tool.visibleName)
  return {
    parts,
    spaced: parts.join(" "),
    description: tool.description.toLowerCase(),
    parameters: parameterText(tool.inputSchema)
  }
}

const scoreOf = (prepared: Prepared, words: ReadonlyArray<string>): number => {
  let score = 0
  for (const word of words) {
    if (prepared.parts.includes(word)) score += 12
    else if (prepared.parts.some((part) => part.includes(word))) score += 6
    else if (score === 0 && prepared.spaced.includes(word)) score += 3
    if (hasWord(prepared.parameters, word)) score += 3
    if (hasWord(prepared.description, word)) score += 2
  }
  return score
}

const holds = (prepared: Prepared, word: string): boolean =>
  prepared.parts.some((part) => part.includes(word)) ||
  hasWord(prepared.description, word) ||
  hasWord(prepared.parameters, word)

/** The tools that fit, best first; ties keep the order of the tools. */
export const search = <T extends Searchable>(tools: ReadonlyArray<T>, query: string): ReadonlyArray<Match<T>> => {
  const text = query.trim()
  const selected = /^select:(.*)$/i.exec(text)?.[1]
  const names = selected === undefined ? [text] : selected.split(",").map((name) => name.trim())
  const exact = tools.filter((tool) => names.includes(tool.visibleName) || names.includes(tool.name))
  if (selected !== undefined || exact.length > 0) return exact.map((tool) => ({ tool, score: SELECT_SCORE }))
  const low = text.toLowerCase()
  if (low.startsWith("mcp__") && low.length > "mcp__".length) {
    const found = tools.filter((tool) => tool.visibleName.toLowerCase().startsWith(low))
    if (found.length > 0) return found.slice(0, MAX_MATCHES).map((tool) => ({ tool, score: PREFIX_SCORE }))
  }
  const words = low.split(/\s+/).filter((word) => word !== "" && word !== "+")
  const required = words.filter((word) => word.startsWith("+")).map((word) => word.slice(1))
  const all = words.map((word) => word.replace(/^\+/, ""))
  return tools
    .map((tool) => ({ tool, prepared: prepare(tool) }))
    .filter(({ prepared }) => required.every((word) => holds(prepared, word)))
    .map(({ tool, prepared }) => ({ tool, score: scoreOf(prepared, all) }))
    .filter(({ score }) => score > 0)
    .sort((left, right) => right.score - left.score)
    .slice(0, MAX_MATCHES)
}

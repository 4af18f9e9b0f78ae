/**
 * Finds credentials of well-known formats in text, in time linear in the text.
 *
 * Three characters of each anchor, the rarest of it, go into a table; the search steps over the text in blocks of two
 * and looks at a rule only where its anchor stands. A pattern reads a bounded number of characters, and the next
 * attempt after a hit begins behind it. A private key block has no bound of its own: its end is looked for once and
 * remembered, so that many beginnings without an end cost no more than one.
 */
import { type CredentialFormat, credentialFormats, MAX_TOKEN } from "./CredentialFormats.ts"
import * as Spans from "./TextSpans.ts"

/** Characters of an anchor that lead to its rule. */
const WINDOW = 3
const TABLE_SIZE = 1 << 16
const TABLE_MASK = TABLE_SIZE - 1
/** Longest private key block, in characters. */
const MAX_BLOCK = 32_768
/** Characters of a token that are worth hiding when the text ends there, beyond its anchor. */
const TELLING = 8
/** Letters of base64 that a block has at least; a mention of the format has none. */
const MIN_BODY = 24

/** One way into a rule. */
interface Entry {
  readonly format: CredentialFormat
  readonly anchor: string
  /** Where the three characters stand in the anchor. */
  readonly offset: number
  readonly first: number
}

/** Letters of prose are frequent, marks and capitals are not. */
const weight = (code: number): number => (code >= 97 && code <= 122 ? 3 : code >= 65 && code <= 90 ? 1 : 0)

const entryOf = (format: CredentialFormat, anchor: string): Entry => {
  let offset = 0
  let least = Infinity
  for (let from = 0; from + WINDOW <= anchor.length; from += 1) {
    const score = weight(anchor.charCodeAt(from + 1)) + weight(anchor.charCodeAt(from + 2))
    if (score < least) {
      least = score
      offset = from
    }
  }
  return { format, anchor, offset, first: anchor.charCodeAt(offset) }
}

const shifts = new Uint8Array(TABLE_SIZE).fill(WINDOW - 1)
const rules = new Map<number, Array<Entry>>()
const blockOf = (first: number, second: number): number => ((first << 8) ^ second) & TABLE_MASK

for (const format of credentialFormats) {
  for (const anchor of format.anchors) {
    const entry = entryOf(format, anchor)
    const at = (index: number): number => anchor.charCodeAt(entry.offset + index)
    const early = blockOf(at(0), at(1))
    shifts[early] = Math.min(shifts[early] ?? 0, 1)
    const late = blockOf(at(1), at(2))
    shifts[late] = 0
    rules.set(late, [...(rules.get(late) ?? []), entry])
  }
}

const pemEnd = /-----END [A-Z0-9 ]{0,60}PRIVATE KEY(?: BLOCK)?-----/y
/** A line of the body, or of the headers before it; line ends may be escaped, as JSON has them. */
const bodyLine =
  /(?:\\r|\\n|%0[AaDd]|[\s"'+,])*(?:[A-Za-z-]{1,32}: [^\n\\]{0,128}|[A-Za-z0-9+/]{16,4096}={0,2}|[A-Za-z0-9+/]{1,15}(?:={1,2}|$))/y

/** The end of a block of which `at` is the end of its first line; `undefined` when nothing follows that is a key. */
const endOfBlock = (text: string, at: number, nextEnd: (from: number) => number): number | undefined => {
  const end = nextEnd(at)
  const limit = Math.min(text.length, at + MAX_BLOCK)
  if (end >= 0 && end <= limit) {
    pemEnd.lastIndex = end
    const inner = text.slice(at, end)
    const letters = inner.replace(/[^A-Za-z0-9+/]/g, "").length
    if (pemEnd.test(text) && letters >= MIN_BODY && !inner.includes("-----BEGIN ")) return pemEnd.lastIndex
  }
  // Cut before its end: what looks like its lines.
  let stop = at
  let letters = 0
  while (stop < limit) {
    bodyLine.lastIndex = stop
    const line = bodyLine.exec(text)
    if (line === null || line[0] === "") break
    letters += line[0].length
    stop = bodyLine.lastIndex
  }
  return letters >= MIN_BODY ? Math.min(stop, limit) : undefined
}

/** Where credentials stand in the text, or `undefined`. */
export const spans = (text: string): ReadonlyArray<number> | undefined => {
  const size = text.length
  let found: Array<number> | undefined
  let after = 0
  let knownEnd = -2
  const nextEnd = (from: number): number => {
    // -1: there is none from here on, so none further on either.
    if (knownEnd === -2 || (knownEnd >= 0 && knownEnd < from)) knownEnd = text.indexOf("-----END ", from)
    return knownEnd
  }
  for (let at = WINDOW - 1; at < size;) {
    const second = text.charCodeAt(at)
    const block = ((text.charCodeAt(at - 1) << 8) ^ second) & TABLE_MASK
    const shift = shifts[block] ?? 0
    if (shift > 0) {
      at += shift
      continue
    }
    const before = text.charCodeAt(at - 2)
    for (const { format, anchor, offset, first } of rules.get(block) ?? []) {
      const start = at - (WINDOW - 1) - offset
      if (before !== first || start < after || !text.startsWith(anchor, start)) continue
      const { pattern } = format
      pattern.lastIndex = start
      const match = pattern.exec(text)
      if (match === null) continue
      const matched = start + match[0].length
      const end = format.body === undefined ? matched : endOfBlock(text, matched, nextEnd)
      if (end === undefined) continue
      found ??= []
      Spans.join(found, match[1] === undefined ? start : matched - match[1].length, end)
      after = end
    }
    at = Math.max(at + 1, after)
  }
  return found
}

/** Whether some credential occurs. */
export const finds = (text: string): boolean => spans(text) !== undefined

/** Characters that tokens are made of. */
const tokenEnd = /[\w+/=.:-]*$/

/**
 * Where an end of the text begins that may be the beginning of a credential: `any` is the run of token characters at
 * the end, `telling` a token with its anchor and some of its characters, or a private key block without its end.
 * The text's length when there is none.
 */
export const openFrom = (text: string, least: "any" | "telling"): number => {
  const block = openBlock(text)
  if (block !== undefined) return block
  const tail = text.slice(-MAX_TOKEN)
  const run = text.length - (tokenEnd.exec(tail)?.[0].length ?? 0)
  if (least === "any") return run
  for (let at = run; at + WINDOW + TELLING <= text.length; at += 1) {
    if (at > 0 && /\w/.test(text[at - 1] ?? "")) continue
    for (const { token, anchors } of credentialFormats) {
      if (!token) continue
      for (const anchor of anchors) {
        if (at + anchor.length + TELLING <= text.length && text.startsWith(anchor, at)) return at
      }
    }
  }
  return text.length
}

const openBlock = (text: string): number | undefined => {
  const at = text.lastIndexOf("-----BEGIN ")
  if (at < 0 || at < text.length - MAX_BLOCK || text.includes("-----END ", at)) return undefined
  const line = text.indexOf("-----", at + 11)
  return line < 0 || text.slice(at, line).includes("PRIVATE KEY") ? at : undefined
}

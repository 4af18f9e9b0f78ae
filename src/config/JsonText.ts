/**
 * JSON as people write it into configuration files: byte order mark, CRLF, comments and trailing commas are fine.
 *
 * jsonc-parser does the reading. Its parser is recursive, so the nesting is measured first with its scanner, which
 * is not: a hostile file costs an error, never the stack. It also repairs what it can; any error refuses the text.
 */
import * as Either from "effect/Either"
import { createScanner, type Node, type ParseError, parseTree } from "jsonc-parser"
import { type LocatedNode, MAX_DEPTH, type Position, positions } from "./Located.ts"
import type { ConfigError } from "./ConfigError.ts"
import { unreadable } from "./Problem.ts"
import { tooLarge } from "./TextBounds.ts"

/** The byte order mark that some editors write. */
export const BOM = "\ufeff"

// The scanner's token kinds (the library declares them as a const enum, which isolated modules cannot read).
const OPEN_BRACE = 1
const CLOSE_BRACE = 2
const OPEN_BRACKET = 3
const CLOSE_BRACKET = 4
const END_OF_TEXT = 17

/** What jsonc-parser's error numbers mean, in the words of a person who edits the file. */
const errorTexts: { readonly [code: number]: string } = {
  1: "this is not valid JSON here",
  2: "this is not a valid number",
  3: "a key in double quotes is expected here",
  4: "a value is expected here",
  5: "a colon is expected after the key",
  6: "a comma is expected here",
  7: "a closing brace is missing",
  8: "a closing bracket is missing",
  9: "the text should have ended before this",
  10: "a comment is not allowed here",
  11: "the comment is not closed",
  12: "the string is not closed",
  13: "the number is not complete",
  14: "the \\u escape is not valid",
  15: "the escape is not valid",
  16: "a control character stands in the string"
}

/** Offset at which the nesting passes the bound; `undefined` when it never does. */
const tooDeepAt = (text: string): number | undefined => {
  const scanner = createScanner(text, true)
  let depth = 0
  for (let token = scanner.scan(); token !== END_OF_TEXT; token = scanner.scan()) {
    if (token === OPEN_BRACE || token === OPEN_BRACKET) depth += 1
    else if (token === CLOSE_BRACE || token === CLOSE_BRACKET) depth -= 1
    if (depth > MAX_DEPTH) return scanner.getTokenOffset()
  }
  return undefined
}

/** The text without its byte order mark; positions of line 1 then count from the first visible character. */
export const withoutBom = (text: string): string => (text.startsWith(BOM) ? text.slice(1) : text)

/** jsonc-parser's tree of a text that is known to be sound (see `parse`). */
export const tree = (text: string): Node | undefined => parseTree(text, [], { allowTrailingComma: true })

/** A number whose digits a double would change. */
const losesDigits = (text: string, value: number): boolean =>
  !Number.isFinite(value) || (/\d{16}/.test(text) && String(value) !== text)

const locate = (node: Node, text: string, at: (offset: number) => Position): LocatedNode => {
  const here = at(node.offset)
  switch (node.type) {
    case "object":
      return {
        kind: "object",
        at: here,
        properties: (node.children ?? []).flatMap((property) => {
          const [key, value] = property.children ?? []
          return key === undefined || value === undefined
            ? []
            : [{ key: String(key.value), at: at(key.offset), value: locate(value, text, at) }]
        })
      }
    case "array":
      return { kind: "array", at: here, items: (node.children ?? []).map((item) => locate(item, text, at)) }
    case "string":
      return { kind: "string", at: here, value: String(node.value) }
    case "number": {
      const written = text.slice(node.offset, node.offset + node.length)
      const value = Number(node.value)
      return losesDigits(written, value)
        ? { kind: "number", at: here, value, text: written }
        : { kind: "number", at: here, value }
    }
    case "boolean":
      return { kind: "boolean", at: here, value: node.value === true }
    default:
      return { kind: "null", at: here }
  }
}

/**
 * Parses one JSON text.
 *
 * Fails with `SIGIL_CONFIG_UNREADABLE` and the position when the text is too large, too deep or not JSON. Keys that
 * are written twice are no error here: they cost the name they stand for (`Located.duplicatesOf`).
 */
export const parse = (whole: string, file: string): Either.Either<LocatedNode, ConfigError> => {
  const large = tooLarge(whole, file)
  if (large !== undefined) return Either.left(large)
  const text = withoutBom(whole)
  const at = positions(text)
  const deep = tooDeepAt(text)
  if (deep !== undefined)
    return Either.left(unreadable(file, `The text is nested deeper than ${MAX_DEPTH} levels.`, at(deep)))
  const errors: Array<ParseError> = []
  const root = parseTree(text, errors, { allowTrailingComma: true })
  const first = errors[0]
  if (first !== undefined)
    return Either.left(
      unreadable(
        file,
        `The file is not valid JSON: ${errorTexts[first.error] ?? "this is not valid here"}.`,
        at(first.offset)
      )
    )
  if (root === undefined)
    return Either.left(unreadable(file, "The file is empty; a JSON object is expected.", { line: 1, column: 1 }))
  return Either.right(locate(root, text, at))
}

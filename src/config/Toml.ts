/**
 * TOML text with positions.
 *
 * smol-toml decides what is valid and gives the values; toml-eslint-parser gives the place of every key. The first
 * one bounds inline nesting and runs first, because the second one is recursive. A byte order mark and CRLF are fine.
 */
import * as Either from "effect/Either"
import { parse as parseValues, TomlError } from "smol-toml"
import { type AST, ParseError, parseTOML } from "toml-eslint-parser"
import { deeperThan } from "../protocol/Codec.ts"
import type { ConfigError } from "./ConfigError.ts"
import { withoutBom } from "./JsonText.ts"
import { type LocatedNode, type LocatedObject, MAX_DEPTH, type Position } from "./Located.ts"
import { unreadable } from "./Problem.ts"
import { tooLarge } from "./TextBounds.ts"

/** A valid TOML text: its values with positions, and the syntax tree that edits are located with. */
export interface TomlText {
  readonly root: LocatedObject
  /** Offsets count in the text without its byte order mark. */
  readonly ast: AST.TOMLProgram
}

/** Where keys and their values stand; arrays use their index as key. */
interface Places {
  at: Position | undefined
  valueAt: Position | undefined
  readonly children: Map<string | number, Places>
}

const noPlaces = (): Places => ({ at: undefined, valueAt: undefined, children: new Map() })

const child = (places: Places, key: string | number): Places => {
  const known = places.children.get(key)
  if (known !== undefined) return known
  const made = noPlaces()
  places.children.set(key, made)
  return made
}

const start = (node: AST.HasLocs): Position => ({ line: node.loc.start.line, column: node.loc.start.column + 1 })

const partName = (part: AST.TOMLBare | AST.TOMLQuoted): string => (part.type === "TOMLBare" ? part.name : part.value)

/** The names of a key's parts. */
export const keyNames = (key: AST.TOMLKey): ReadonlyArray<string> => key.keys.map(partName)

const placeValue = (places: Places, value: AST.TOMLContentNode): void => {
  places.at ??= start(value)
  places.valueAt ??= start(value)
  if (value.type === "TOMLArray") {
    for (const [index, element] of value.elements.entries()) placeValue(child(places, index), element)
  } else if (value.type === "TOMLInlineTable") placeBody(places, value.body)
}

const placeBody = (places: Places, body: ReadonlyArray<AST.TOMLKeyValue>): void => {
  for (const { key, value } of body) {
    let target = places
    for (const part of key.keys) {
      target = child(target, partName(part))
      target.at ??= start(part)
    }
    placeValue(target, value)
  }
}

const placesOf = (program: AST.TOMLProgram): Places => {
  const root = noPlaces()
  root.at = { line: 1, column: 1 }
  for (const node of program.body[0].body) {
    if (node.type === "TOMLKeyValue") {
      placeBody(root, [node])
      continue
    }
    let target = root
    for (const part of node.resolvedKey) {
      target = child(target, part)
      target.at ??= start(node)
    }
    placeBody(target, node.body)
  }
  return root
}

const locate = (value: unknown, places: Places | undefined, fallback: Position): LocatedNode => {
  const at = places?.valueAt ?? places?.at ?? fallback
  if (Array.isArray(value))
    return { kind: "array", at, items: value.map((item, index) => locate(item, places?.children.get(index), at)) }
  if (value instanceof Date) return { kind: "date", at, text: value.toISOString() }
  if (typeof value === "object" && value !== null)
    return {
      kind: "object",
      at,
      properties: Object.entries(value).map(([key, inner]) => {
        const place = places?.children.get(key)
        return { key, at: place?.at ?? at, value: locate(inner, place, at) }
      })
    }
  if (typeof value === "string") return { kind: "string", at, value }
  if (typeof value === "boolean") return { kind: "boolean", at, value }
  if (typeof value === "bigint") return { kind: "number", at, value: Number(value), text: String(value) }
  if (typeof value === "number")
    return Number.isFinite(value) ? { kind: "number", at, value } : { kind: "number", at, value, text: String(value) }
  return { kind: "null", at }
}

/** The first line of the library's text: the rest quotes the file, and with it perhaps a secret. */
const firstLine = (message: string): string =>
  (message.split("\n")[0] ?? message).replace(/^Invalid TOML document: /, "").trim()

/**
 * Parses one TOML text.
 *
 * Fails with `SIGIL_CONFIG_UNREADABLE` and the position when the text is too large, too deep or not TOML; a key that
 * is written twice is such an error, as the language has it.
 */
export const parse = (whole: string, file: string): Either.Either<TomlText, ConfigError> => {
  const large = tooLarge(whole, file)
  if (large !== undefined) return Either.left(large)
  const text = withoutBom(whole)
  try {
    const values = parseValues(text, { integersAsBigInt: "asNeeded", maxDepth: MAX_DEPTH })
    if (deeperThan(values, MAX_DEPTH))
      return Either.left(unreadable(file, `The text is nested deeper than ${MAX_DEPTH} levels.`))
    const ast = parseTOML(text)
    const root = locate(values, placesOf(ast), { line: 1, column: 1 })
    // A TOML document is always a table.
    return root.kind === "object"
      ? Either.right({ root, ast })
      : Either.left(unreadable(file, "The file is not a table."))
  } catch (error) {
    if (error instanceof TomlError)
      return Either.left(
        unreadable(file, `The file is not valid TOML: ${firstLine(error.message)}.`, {
          line: error.line,
          column: error.column
        })
      )
    if (error instanceof ParseError)
      return Either.left(
        unreadable(file, `The file is not valid TOML: ${firstLine(error.message)}.`, {
          line: error.lineNumber,
          column: error.column + 1
        })
      )
    throw error
  }
}

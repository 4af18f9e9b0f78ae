/**
 * Adds texts to lists in a table of sigil.toml, everything else as it is: comments, order, line ends. Pure.
 *
 * New elements stand first in a list, so a comment beside an element stays beside it.
 */
import * as Either from "effect/Either"
import type { AST } from "toml-eslint-parser"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import type { ConfigError } from "./ConfigError.ts"
import { append, behindLine, type Edited, eolOf, indentOf, inlineList } from "./EditToml.ts"
import { BOM, withoutBom } from "./JsonText.ts"
import { objectToJson, propertyOf, record } from "./Located.ts"
import * as Toml from "./Toml.ts"

/** Texts to add, by the key of their list. */
export interface ListAdditions {
  readonly [key: string]: ReadonlyArray<string>
}

/** A key below the table, wherever it is written: under its header, inline, or dotted. */
interface Written {
  /** Path below the table. */
  readonly path: ReadonlyArray<string>
  readonly node: AST.TOMLKeyValue
}

/** Where the table is written. */
interface Place {
  /** Its header. */
  readonly header: AST.TOMLTable | undefined
  /** Its value, where it is an inline table. */
  readonly inline: AST.TOMLInlineTable | undefined
  readonly keys: ReadonlyArray<Written>
}

const placeOf = (ast: AST.TOMLProgram, table: string): Place => {
  const nodes = ast.body[0].body
  const header = nodes.find(
    (node): node is AST.TOMLTable =>
      node.type === "TOMLTable" &&
      node.kind === "standard" &&
      node.resolvedKey.length === 1 &&
      node.resolvedKey[0] === table
  )
  const dotted = nodes.flatMap((node): ReadonlyArray<Written> => {
    if (node.type !== "TOMLKeyValue") return []
    const [first, ...path] = Toml.keyNames(node.key)
    return first === table ? [{ path, node }] : []
  })
  const whole = dotted.find(({ path }) => path.length === 0)?.node.value
  const inline = whole?.type === "TOMLInlineTable" ? whole : undefined
  const inside = (header ?? inline)?.body ?? []
  return { header, inline, keys: [...dotted, ...inside.map((node) => ({ path: Toml.keyNames(node.key), node }))] }
}

const literals = (texts: ReadonlyArray<string>): string => texts.map((text) => JSON.stringify(text)).join(", ")

/** Puts elements behind the bracket that opens a list: on lines of their own where it has such. */
const intoArray = (text: string, array: AST.TOMLArray, texts: ReadonlyArray<string>): string => {
  const open = array.range[0] + 1
  const [first] = array.elements
  const next = first === undefined ? array.range[1] - 1 : first.range[0]
  const gap = text.slice(open, next)
  const comma = first === undefined ? "" : ", "
  const firstLine = /^[ \t]*(?:#[^\n]*)?\r?\n/.exec(gap)?.[0]
  if (firstLine === undefined) return `${text.slice(0, next)}${literals(texts)}${comma}${text.slice(next)}`
  const at = open + firstLine.length
  const indent = first === undefined ? `${indentOf(text, next)}  ` : indentOf(text, next)
  const eol = eolOf(text)
  return text.slice(0, at) + texts.map((item) => `${indent}${JSON.stringify(item)},${eol}`).join("") + text.slice(at)
}

/** Adds to one list of a text that has the table. `undefined` when there is no way to write it. */
const addOne = (
  text: string,
  table: string,
  key: string,
  texts: ReadonlyArray<string>,
  ast: AST.TOMLProgram
): string | undefined => {
  const { header, inline, keys } = placeOf(ast, table)
  const there = keys.find(({ path }) => path.length === 1 && path[0] === key)?.node.value
  if (there !== undefined) return there.type === "TOMLArray" ? intoArray(text, there, texts) : undefined
  const line = `${key} = [${literals(texts)}]`
  const eol = eolOf(text)
  if (header !== undefined) {
    const last = header.body.at(-1) ?? header
    return behindLine(text, last.range[1], `${indentOf(text, last.range[0])}${line}${eol}`)
  }
  if (inline !== undefined) {
    const last = inline.body.at(-1)
    const at = last?.range[1] ?? inline.range[0] + 1
    return `${text.slice(0, at)}${last === undefined ? " " : ", "}${line}${last === undefined ? " " : ""}${text.slice(at)}`
  }
  const neighbour = keys.at(-1)?.node
  return neighbour === undefined
    ? append(text, `[${table}]${eol}${line}${eol}`)
    : behindLine(text, neighbour.range[1], `${indentOf(text, neighbour.range[0])}${table}.${line}${eol}`)
}

const listOf = (value: Json | undefined): ReadonlyArray<Json> | undefined =>
  value === undefined ? [] : Array.isArray(value) ? value : undefined

/**
 * Adds what the lists do not hold yet. `undefined` when they hold all of it. Fails when the file does not parse, or
 * holds something else where a list should stand.
 */
export const addToLists = (
  current: string,
  file: string,
  table: string,
  additions: ListAdditions
): Either.Either<Edited | undefined, ConfigError> =>
  Either.gen(function* () {
    const before = yield* Toml.parse(current, file)
    const values = objectToJson(before.root)
    const property = propertyOf(before.root, table)
    const old = own(values, table) ?? record<Json>([])
    if (property !== undefined && !isJsonObject(old)) return yield* Either.left(inlineList(file, table, property.at))
    const target: JsonObject = isJsonObject(old) ? old : record<Json>([])
    let text = withoutBom(current)
    const lists: Array<readonly [string, Json]> = []
    for (const [key, wanted] of Object.entries(additions)) {
      const there = listOf(own(target, key))
      const texts = there === undefined ? wanted : [...new Set(wanted)].filter((item) => !there.includes(item))
      if (texts.length === 0) continue
      // Offsets move with every change, so each one works on a fresh tree.
      const { ast } = yield* Toml.parse(text, file)
      const changed = there === undefined ? undefined : addOne(text, table, key, texts, ast)
      if (changed === undefined)
        return yield* Either.left(inlineList(file, `${table}.${key}`, property?.at ?? { line: 1, column: 1 }))
      text = changed
      lists.push([key, [...texts, ...(there ?? [])]])
    }
    if (lists.length === 0) return undefined
    const next = record<Json | undefined>(Object.entries({ ...target, ...record(lists) }))
    const expected = record<Json | undefined>([
      ...Object.entries(values).filter(([key]) => key !== table),
      [table, next]
    ])
    return { text: (current.startsWith(BOM) ? BOM : "") + text, expected }
  })

/**
 * Text edits of sigil.toml that keep everything else as it is: comments, order, quoting, line ends, byte order mark.
 *
 * The syntax tree says where a table begins and ends; only those lines are touched. Pure: the caller checks the result
 * and writes it.
 */
import * as Either from "effect/Either"
import { stringify } from "smol-toml"
import type { AST } from "toml-eslint-parser"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import type { ConfigError } from "./ConfigError.ts"
import { BOM, withoutBom } from "./JsonText.ts"
import { objectToJson, propertyOf, record, toJson } from "./Located.ts"
import { toError } from "./Problem.ts"
import * as Toml from "./Toml.ts"

/** A new text and what it must parse to. */
export interface Edited {
  readonly text: string
  readonly expected: Json
}

/** Start and end offset of lines to be replaced. */
interface Lines {
  readonly start: number
  readonly end: number
}

const lineStart = (text: string, offset: number): number => text.lastIndexOf("\n", offset - 1) + 1
const lineEnd = (text: string, offset: number): number => {
  const next = text.indexOf("\n", offset)
  return next < 0 ? text.length : next + 1
}

const linesOf = (text: string, table: AST.TOMLTable): Lines => ({
  start: lineStart(text, table.range[0]),
  end: lineEnd(text, table.range[1])
})

const inlineList = (file: string, key: string, at: { readonly line: number; readonly column: number }): ConfigError =>
  toError(
    {
      field: key,
      at,
      reason: "inline_list",
      text: "the list is written in one value, which cannot be edited without touching its comments; nothing was written",
      fix: `Write its entries as [[${key}]] tables, or edit the file by hand.`
    },
    { file }
  )

/** Tables as TOML text, with the file's line ends. */
const render = (tables: JsonObject, text: string): string => {
  const rendered = `${stringify(tables).trim()}\n`
  return text.includes("\r\n") ? rendered.replaceAll("\n", "\r\n") : rendered
}

const append = (text: string, block: string): string => {
  const eol = text.includes("\r\n") ? "\r\n" : "\n"
  if (text === "") return block
  return `${text}${text.endsWith("\n") ? "" : eol}${eol}${block}`
}

/** Cuts lines out, together with blank lines that would stand twice. */
const cut = (text: string, ranges: ReadonlyArray<Lines>): string => {
  let result = text
  for (const { start, end } of ranges.toReversed()) {
    const before = result.slice(0, start)
    const after = result.slice(end)
    const blank = /(?:^|\n)(\r?\n)$/.exec(before)?.[1]
    const doubled = blank !== undefined && (after === "" || /^\r?\n/.test(after))
    result = (doubled ? before.slice(0, before.length - blank.length) : before) + after
  }
  return result
}

/** The lines of each entry: its table, its sub-tables, and blank space between them. */
const entryLines = (text: string, ast: AST.TOMLProgram, index: number): ReadonlyArray<Lines> => {
  const ranges: Array<Lines> = []
  for (const node of ast.body[0].body) {
    if (node.type !== "TOMLTable" || node.resolvedKey[0] !== "mcp_servers" || node.resolvedKey[1] !== index) continue
    const lines = linesOf(text, node)
    const last = ranges.at(-1)
    if (last !== undefined && text.slice(last.end, lines.start).trim() === "")
      ranges[ranges.length - 1] = { start: last.start, end: lines.end }
    else ranges.push(lines)
  }
  return ranges
}

interface Opened {
  readonly bom: string
  readonly text: string
  readonly ast: AST.TOMLProgram
  readonly values: JsonObject
  /** The entries with their names, in order. */
  readonly entries: ReadonlyArray<{ readonly name: Json | undefined; readonly value: Json }>
}

const open = (whole: string, file: string): Either.Either<Opened, ConfigError> =>
  Either.flatMap(Toml.parse(whole, file), ({ root, ast }) => {
    const text = withoutBom(whole)
    const servers = propertyOf(root, "mcp_servers")
    const inline = ast.body[0].body.find(
      (node) => node.type === "TOMLKeyValue" && Toml.keyNames(node.key)[0] === "mcp_servers"
    )
    if (servers !== undefined && (inline !== undefined || servers.value.kind !== "array"))
      return Either.left(inlineList(file, "mcp_servers", servers.at))
    const items = servers?.value.kind === "array" ? servers.value.items : []
    return Either.right({
      bom: whole.startsWith(BOM) ? BOM : "",
      text,
      ast,
      values: objectToJson(root),
      entries: items.map((item) => {
        const name = item.kind === "object" ? propertyOf(item, "name")?.value : undefined
        return { name: name === undefined ? undefined : toJson(name), value: toJson(item) }
      })
    })
  })

const withServers = (values: JsonObject, servers: ReadonlyArray<Json>): JsonObject => {
  const rest = Object.entries(values).filter(([key]) => key !== "mcp_servers")
  return record<Json | undefined>(servers.length === 0 ? rest : [...rest, ["mcp_servers", servers]])
}

/** Names of the servers that a text declares; fails when it does not parse. */
export const namesInToml = (text: string, file: string): Either.Either<ReadonlyArray<Json | undefined>, ConfigError> =>
  Either.map(open(text, file), ({ entries }) => entries.map(({ name }) => name))

/** Adds an entry at the end, or in the place of the entries that have its name. */
export const addToToml = (
  current: string,
  file: string,
  entry: { readonly name: string; readonly fields: JsonObject }
): Either.Either<Edited, ConfigError> =>
  Either.map(open(current, file), ({ bom, text, ast, values, entries }) => {
    const value: JsonObject = record<Json | undefined>([["name", entry.name], ...Object.entries(entry.fields)])
    const block = render({ mcp_servers: [value] }, text)
    const same = entries.flatMap(({ name }, index) => (name === entry.name ? [index] : []))
    const [first] = same
    const kept = entries.flatMap(({ value: old }, index) =>
      index === first ? [value] : same.includes(index) ? [] : [old]
    )
    const expected = withServers(values, first === undefined ? [...kept, value] : kept)
    if (first === undefined) return { text: bom + append(text, block), expected }
    const ranges = same.flatMap((index) => entryLines(text, ast, index))
    const [place, ...rest] = ranges
    if (place === undefined) return { text: bom + append(text, block), expected }
    const shortened = cut(text, rest)
    const tail = shortened.slice(place.end)
    return { text: bom + shortened.slice(0, place.start) + block + tail, expected }
  })

/** Removes every entry of a name. `undefined` when there is none. */
export const removeFromToml = (
  current: string,
  file: string,
  name: string
): Either.Either<Edited | undefined, ConfigError> =>
  Either.map(open(current, file), ({ bom, text, ast, values, entries }) => {
    const same = entries.flatMap((entry, index) => (entry.name === name ? [index] : []))
    if (same.length === 0) return undefined
    const kept = entries.flatMap(({ value }, index) => (same.includes(index) ? [] : [value]))
    return {
      text:
        bom +
        cut(
          text,
          same.flatMap((index) => entryLines(text, ast, index))
        ),
      expected: withServers(values, kept)
    }
  })

/** Appends a `[[permission.rules]]`; `undefined` when the last rule already says exactly that. */
export const appendRule = (
  current: string,
  file: string,
  rule: { readonly tool_name: string; readonly subject_glob?: string; readonly mode: string }
): Either.Either<Edited | undefined, ConfigError> =>
  Either.flatMap(Toml.parse(current, file), ({ root }) => {
    const text = withoutBom(current)
    const permission = propertyOf(root, "permission")
    const table = permission?.value.kind === "object" ? permission.value : undefined
    if (permission !== undefined && table === undefined)
      return Either.left(inlineList(file, "permission", permission.at))
    const rules = table === undefined ? undefined : propertyOf(table, "rules")
    if (rules !== undefined && rules.value.kind !== "array")
      return Either.left(inlineList(file, "permission.rules", rules.at))
    const old = rules?.value.kind === "array" ? rules.value.items.map(toJson) : []
    const value: JsonObject = record([
      ["tool_name", rule.tool_name],
      ...(rule.subject_glob === undefined ? [] : [["subject_glob", rule.subject_glob] as const]),
      ["mode", rule.mode]
    ])
    const last = rules?.value.kind === "array" ? rules.value.items.at(-1) : undefined
    if (last?.kind === "object" && JSON.stringify(objectToJson(last)) === JSON.stringify(value))
      return Either.right(undefined)
    const values = objectToJson(root)
    const inner = table === undefined ? record<Json | undefined>([]) : objectToJson(table, "rules")
    const expected = record<Json | undefined>([
      ...Object.entries(values).filter(([key]) => key !== "permission"),
      ["permission", record<Json | undefined>([...Object.entries(inner), ["rules", [...old, value]]])]
    ])
    const block = render({ permission: { rules: [value] } }, text)
    return Either.right({ text: (current.startsWith(BOM) ? BOM : "") + append(text, block), expected })
  })

/** The nodes of the entry at `index`: its own table first, then its sub-tables. */
const tablesOf = (ast: AST.TOMLProgram, index: number): ReadonlyArray<AST.TOMLTable> =>
  ast.body[0].body.filter(
    (node): node is AST.TOMLTable =>
      node.type === "TOMLTable" && node.resolvedKey[0] === "mcp_servers" && node.resolvedKey[1] === index
  )

/**
 * Sets members of one server's `trust`, which is made when there is none. `undefined` when there is no such server.
 *
 * `trust` may be a table of its own, an inline table, or dotted keys of the entry; each is changed in its own way, and
 * what is set is written in that way, too.
 */
export const setTrustInToml = (
  current: string,
  file: string,
  name: string,
  members: JsonObject
): Either.Either<Edited | undefined, ConfigError> =>
  Either.map(open(current, file), ({ ast, bom, entries, text, values }) => {
    const index = entries.findIndex((entry) => entry.name === name)
    const old = entries[index]?.value
    if (!isJsonObject(old)) return undefined
    const oldTrust = own(old, "trust")
    const trust = record<Json | undefined>(Object.entries({ ...(isJsonObject(oldTrust) ? oldTrust : {}), ...members }))
    const next = record<Json | undefined>([...Object.entries(old).filter(([key]) => key !== "trust"), ["trust", trust]])
    const expected = withServers(
      values,
      entries.map(({ value }, at) => (at === index ? next : value))
    )
    const tables = tablesOf(ast, index)
    const [head] = tables
    if (head === undefined) return undefined
    const eol = text.includes("\r\n") ? "\r\n" : "\n"
    const written = head.body.filter(({ key }) => Toml.keyNames(key)[0] === "trust")
    const [first] = written
    const lines = ({ range }: { readonly range: readonly [number, number] }): Lines => ({
      start: lineStart(text, range[0]),
      end: lineEnd(text, range[1])
    })
    if (first !== undefined && Toml.keyNames(first.key).length === 1) {
      // An inline table: written anew in its place, for nothing inside it can be a comment.
      const value = stringifyInline(trust)
      return {
        text: bom + text.slice(0, first.value.range[0]) + value + text.slice(first.value.range[1]),
        expected
      }
    }
    if (first !== undefined) {
      const replaced = written.filter(({ key }) => Object.hasOwn(members, Toml.keyNames(key)[1] ?? ""))
      const last = lines(written.at(-1) ?? first)
      const dotted = Object.entries(members)
        .map(([key, value]) => `trust.${key} = ${stringifyInline(value ?? null)}${eol}`)
        .join("")
      const whole = text.slice(0, last.end) + (text.slice(0, last.end).endsWith("\n") ? "" : eol) + dotted
      return { text: bom + cut(whole, replaced.map(lines)) + text.slice(last.end), expected }
    }
    const table = tables.find(({ resolvedKey }) => resolvedKey.length === 3 && resolvedKey[2] === "trust")
    const inner = tables.filter(({ resolvedKey }) => resolvedKey[2] === "trust" && resolvedKey.length > 3)
    const scalars = record(Object.entries(members).filter(([, value]) => !isJsonObject(value)))
    const nested = record(Object.entries(members).filter(([, value]) => isJsonObject(value)))
    const block = (nodes: JsonObject): string =>
      Object.keys(nodes).length === 0
        ? ""
        : Object.entries(nodes)
            .map(
              ([key, value]) =>
                `${eol}[mcp_servers.trust.${key}]${eol}${render(isJsonObject(value) ? value : {}, text)}`
            )
            .join("")
    const gone = [
      ...(table === undefined
        ? []
        : table.body.filter(({ key }) => Object.hasOwn(members, Toml.keyNames(key)[0] ?? "")).map(lines)),
      ...inner
        .filter(({ resolvedKey }) => Object.hasOwn(members, String(resolvedKey[3])))
        .map((table) => linesOf(text, table))
    ].toSorted((a, b) => a.start - b.start)
    const after = table ?? tables.at(-1) ?? head
    const place = lines(after).end
    const before = text.slice(0, place)
    const opened = table === undefined ? `${eol}[mcp_servers.trust]${eol}` : ""
    const addition = `${before.endsWith("\n") || before === "" ? "" : eol}${opened}${render(scalars, text)}${block(nested)}`
    const withAddition = before + addition
    const later = gone.filter(({ start }) => start >= place)
    const earlier = gone.filter(({ start }) => start < place)
    const tail = cut(
      text.slice(place),
      later.map(({ end, start }) => ({ start: start - place, end: end - place }))
    )
    return { text: bom + cut(withAddition, earlier) + tail, expected }
  })

/** A value on one line. */
const stringifyInline = (value: Json): string => {
  if (!isJsonObject(value)) return stringify({ x: value }).trim().slice("x = ".length)
  return `{ ${Object.entries(value)
    .flatMap(([key, inner]) => (inner === undefined ? [] : [`${bareOrQuoted(key)} = ${stringifyInline(inner)}`]))
    .join(", ")} }`
}

const bareOrQuoted = (key: string): string => (/^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key))

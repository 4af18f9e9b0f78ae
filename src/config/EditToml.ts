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

/** The error of a list that stands where no edit can keep what is around it. */
export const inlineList = (
  file: string,
  key: string,
  at: { readonly line: number; readonly column: number }
): ConfigError =>
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

/** Puts a block at the end, a blank line before it. */
export const append = (text: string, block: string): string => {
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

/** A key of an entry, with what stands around it. Paths count from the entry. */
interface Written {
  readonly path: ReadonlyArray<string>
  readonly node: AST.TOMLKeyValue
  /** Path of the table or inline table that holds the key. */
  readonly owner: ReadonlyArray<string>
  /** Whether that is an inline table. */
  readonly inline: boolean
}

const writtenIn = (
  body: ReadonlyArray<AST.TOMLKeyValue>,
  owner: ReadonlyArray<string>,
  inline: boolean
): ReadonlyArray<Written> =>
  body.flatMap((node): ReadonlyArray<Written> => {
    const path = [...owner, ...Toml.keyNames(node.key)]
    const inner = node.value.type === "TOMLInlineTable" ? writtenIn(node.value.body, path, true) : []
    return [{ path, node, owner, inline }, ...inner]
  })

const startsWith = (path: ReadonlyArray<string>, start: ReadonlyArray<string>): boolean =>
  start.every((part, at) => path[at] === part)
const isPath = (path: ReadonlyArray<string>, other: ReadonlyArray<string>): boolean =>
  path.length === other.length && startsWith(path, other)

/** The line end that a text uses. */
export const eolOf = (text: string): string => (text.includes("\r\n") ? "\r\n" : "\n")

/** Puts whole lines behind the line that holds `offset`. */
export const behindLine = (text: string, offset: number, lines: string): string => {
  const end = lineEnd(text, offset)
  const before = text.slice(0, end)
  return `${before}${before.endsWith("\n") ? "" : eolOf(text)}${lines}${text.slice(end)}`
}

/** The white space that the line of an offset begins with. */
export const indentOf = (text: string, offset: number): string =>
  /^[ \t]*/.exec(text.slice(lineStart(text, offset), offset))?.[0] ?? ""

/**
 * Sets one value of an entry: in its place, or as the last one where its neighbours stand, written as they are.
 * `undefined` when the entry has no such place.
 */
const setValue = (
  text: string,
  tables: ReadonlyArray<AST.TOMLTable>,
  path: ReadonlyArray<string>,
  value: Json
): string | undefined => {
  const pathOf = (table: AST.TOMLTable) => table.resolvedKey.slice(2).map(String)
  const all = tables.flatMap((table) => writtenIn(table.body, pathOf(table), false))
  const there = all.find((written) => isPath(written.path, path))?.node.value
  const content = stringifyInline(value)
  if (there !== undefined) return text.slice(0, there.range[0]) + content + text.slice(there.range[1])
  const parent = path.slice(0, -1)
  const key = bareOrQuoted(path.at(-1) ?? "")
  const table = tables.find((candidate) => isPath(pathOf(candidate), parent))
  if (table !== undefined) {
    const line = `${indentOf(text, (table.body.at(-1) ?? table).range[0])}${key} = ${content}${eolOf(text)}`
    return behindLine(text, table.range[1], line)
  }
  const holder = all.find((written) => isPath(written.path, parent))?.node.value
  if (holder?.type === "TOMLInlineTable") {
    const last = holder.body.at(-1)
    const at = last?.range[1] ?? holder.range[0] + 1
    return `${text.slice(0, at)}${last === undefined ? " " : ", "}${key} = ${content}${last === undefined ? " " : ""}${text.slice(at)}`
  }
  // Dotted keys: the way to the parent is written as the neighbour writes it.
  const near = all.findLast((written) => startsWith(written.path, parent) && written.owner.length < parent.length)
  if (near === undefined) return undefined
  const { inline, node, owner } = near
  const way = node.key.keys[parent.length - owner.length - 1]
  const dotted = `${text.slice(node.key.range[0], way?.range[1])}.${key} = ${content}`
  return inline
    ? `${text.slice(0, node.range[1])}, ${dotted}${text.slice(node.range[1])}`
    : behindLine(text, node.range[1], `${indentOf(text, node.range[0])}${dotted}${eolOf(text)}`)
}

const isTable = (value: Json | undefined): value is JsonObject => value !== undefined && isJsonObject(value)

/** The members laid over an object, objects over objects. */
const laidOver = (old: Json | undefined, members: JsonObject): JsonObject =>
  record<Json | undefined>(
    Object.entries({
      ...(isTable(old) ? old : {}),
      ...record(
        Object.entries(members).map(([key, value]) => [
          key,
          isTable(value) && isTable(old) ? laidOver(own(old, key), value) : value
        ])
      )
    })
  )

/**
 * Sets members of one server's `trust`, which is made when there is none. `undefined` when there is no such server.
 *
 * `trust`, and an object in it, may be a table of its own, an inline table, or dotted keys. Values are replaced where
 * they stand, so every comment stays; what is missing is written beside the others, in their way.
 */
export const setTrustInToml = (
  current: string,
  file: string,
  name: string,
  members: JsonObject
): Either.Either<Edited | undefined, ConfigError> =>
  Either.flatMap(open(current, file), ({ bom, entries, text: original, values }) => {
    const index = entries.findIndex((entry) => entry.name === name)
    const old = entries[index]?.value
    if (!isTable(old)) return Either.right(undefined)
    const next = record<Json | undefined>([
      ...Object.entries(old).filter(([key]) => key !== "trust"),
      ["trust", laidOver(own(old, "trust"), members)]
    ])
    const expected = withServers(
      values,
      entries.map(({ value }, at) => (at === index ? next : value))
    )
    // Offsets move with every change, so each one works on a fresh tree.
    const set = (text: string, path: ReadonlyArray<string>, value: Json): Either.Either<string, ConfigError> =>
      Either.flatMap(open(text, file), ({ ast, entries: now }) => {
        const entry = now[index]?.value
        const there = path.reduce<Json | undefined>((at, key) => (isTable(at) ? own(at, key) : undefined), entry)
        if (there === value) return Either.right(text)
        if (isTable(value) && isTable(there)) return setAll(text, path, value)
        const tables = tablesOf(ast, index)
        const parent = tables.find(
          ({ resolvedKey }) =>
            resolvedKey.length === path.length + 1 && startsWith(resolvedKey.slice(2).map(String), path.slice(0, -1))
        )
        const header = parent !== undefined && isTable(value) && there === undefined
        const changed = header ? undefined : setValue(text, tables, path, value)
        if (changed !== undefined) return Either.right(changed)
        const after = path.length > 1 && header ? parent : tables.at(-1)
        return Either.right(behindLine(text, after?.range[1] ?? text.length, block(path, value, text)))
      })
    const setAll = (
      text: string,
      path: ReadonlyArray<string>,
      object: JsonObject
    ): Either.Either<string, ConfigError> =>
      Object.entries(object).reduce<Either.Either<string, ConfigError>>(
        (done, [key, value]) =>
          value === undefined ? done : Either.flatMap(done, (sofar) => set(sofar, [...path, key], value)),
        Either.right(text)
      )
    return Either.map(set(original, ["trust"], members), (text) => ({ text: bom + text, expected }))
  })

/** A new table of an entry, tables inside it with headers of their own; or the table that a lone value needs. */
const block = (path: ReadonlyArray<string>, value: Json, text: string): string => {
  const [names, members] = isTable(value) ? [path, value] : [path.slice(0, -1), record([[path.at(-1) ?? "", value]])]
  const scalars = record(Object.entries(members).filter(([, inner]) => !isTable(inner)))
  const nested = Object.entries(members).filter(([, inner]) => isTable(inner))
  const eol = eolOf(text)
  const header = `${eol}[${["mcp_servers", ...names.map(bareOrQuoted)].join(".")}]${eol}`
  const own = Object.keys(scalars).length === 0 ? "" : render(scalars, text)
  return [header, own, ...nested.map(([key, inner]) => block([...names, key], inner ?? null, text))].join("")
}

/** A value on one line. */
const stringifyInline = (value: Json): string => {
  if (!isJsonObject(value)) return stringify({ x: value }).trim().slice("x = ".length)
  return `{ ${Object.entries(value)
    .flatMap(([key, inner]) => (inner === undefined ? [] : [`${bareOrQuoted(key)} = ${stringifyInline(inner)}`]))
    .join(", ")} }`
}

const bareOrQuoted = (key: string): string => (/^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key))

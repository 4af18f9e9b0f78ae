/**
 * Text edits of the JSON files that keep everything else as it is: comments, order, indentation, line ends, byte
 * order mark, the missing or present last comma.
 *
 * jsonc-parser gives the offsets; its own `modify` formats neighbours anew and drops comments, so the few characters
 * that change are computed here. Pure: the caller checks the result and writes it.
 */
import * as Either from "effect/Either"
import { createScanner, type Node } from "jsonc-parser"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import type { ConfigError } from "./ConfigError.ts"
import { serverMap } from "./DecodeJson.ts"
import { camel } from "./Fields.ts"
import type { Edited } from "./EditToml.ts"
import * as JsonText from "./JsonText.ts"
import { objectToJson, record } from "./Located.ts"
import { toError } from "./Problem.ts"

// Token kinds of the scanner (see JsonText).
const COMMA = 5
const LINE_COMMENT = 12
const BLOCK_COMMENT = 13
const LINE_BREAK = 14
const SPACE = 15

/** The key that new files get. */
const SERVERS = "mcpServers"

/** One replacement; offsets count in the original text. */
interface Replacement {
  readonly start: number
  readonly end: number
  readonly text: string
}

const apply = (text: string, edits: ReadonlyArray<Replacement>): string => {
  let result = text
  for (const { start, end, text: content } of edits.toSorted((left, right) => right.start - left.start))
    result = result.slice(0, start) + content + result.slice(end)
  return result
}

interface Style {
  readonly eol: string
  readonly unit: string
}

const styleOf = (text: string): Style => ({
  eol: text.includes("\r\n") ? "\r\n" : "\n",
  unit: /^([ \t]+)"/m.exec(text)?.[1] ?? "  "
})

const indentAt = (text: string, offset: number): string => {
  const start = text.lastIndexOf("\n", offset - 1) + 1
  return /^[ \t]*/.exec(text.slice(start, offset))?.[0] ?? ""
}

const startsLine = (text: string, offset: number): boolean =>
  text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset).trim() === ""

const pretty = (value: Json, indent: string, style: Style): string =>
  JSON.stringify(value, null, style.unit).replaceAll("\n", `${style.eol}${indent}`)

const endOf = (node: Node): number => node.offset + node.length

/** What stands between a property's end and the next property or brace. */
const after = (
  text: string,
  offset: number
): { readonly comma: number | undefined; readonly lineEnd: number; readonly broken: boolean } => {
  const scanner = createScanner(text, false)
  scanner.setPosition(offset)
  let comma: number | undefined
  let lineEnd = offset
  for (;;) {
    const token = scanner.scan()
    const end = scanner.getTokenOffset() + scanner.getTokenLength()
    if (token === COMMA && comma === undefined) {
      comma = scanner.getTokenOffset()
      lineEnd = end
    } else if (token === LINE_COMMENT || token === BLOCK_COMMENT) lineEnd = end
    else if (token === LINE_BREAK) return { comma: comma ?? commaLater(scanner), lineEnd, broken: true }
    else if (token !== SPACE) return { comma, lineEnd, broken: false }
  }
}

/** A comma on a later line, after comments only. */
const commaLater = (scanner: ReturnType<typeof createScanner>): number | undefined => {
  for (;;) {
    const token = scanner.scan()
    if (token === COMMA) return scanner.getTokenOffset()
    if (![LINE_COMMENT, BLOCK_COMMENT, LINE_BREAK, SPACE].includes(token)) return undefined
  }
}

/** Where an empty object's comments end. */
const insideEmpty = (text: string, object: Node): number => {
  const scanner = createScanner(text, false)
  let position = object.offset + 1
  scanner.setPosition(position)
  for (;;) {
    const token = scanner.scan()
    if (token === LINE_COMMENT || token === BLOCK_COMMENT)
      position = scanner.getTokenOffset() + scanner.getTokenLength()
    else if (token !== SPACE && token !== LINE_BREAK) return position
  }
}

/** Adds a property as the last one of an object. */
const insert = (text: string, object: Node, key: string, value: Json): string => {
  const style = styleOf(text)
  const last = object.children?.at(-1)
  if (last === undefined) {
    const outer = indentAt(text, object.offset)
    const inner = outer + style.unit
    const at = insideEmpty(text, object)
    const property = `${style.eol}${inner}${JSON.stringify(key)}: ${pretty(value, inner, style)}${style.eol}${outer}`
    return apply(text, [{ start: at, end: endOf(object) - 1, text: property }])
  }
  const { comma, lineEnd, broken } = after(text, endOf(last))
  const multiLine = startsLine(text, last.offset) || broken
  const indent = startsLine(text, last.offset)
    ? indentAt(text, last.offset)
    : indentAt(text, object.offset) + style.unit
  // A comma that follows on a later line must come before the new property.
  const at = comma === undefined || comma < lineEnd ? lineEnd : comma + 1
  const property = multiLine
    ? `${style.eol}${indent}${JSON.stringify(key)}: ${pretty(value, indent, style)}`
    : ` ${JSON.stringify(key)}: ${JSON.stringify(value)}`
  const edits: Array<Replacement> = [{ start: at, end: at, text: comma === undefined ? property : `${property},` }]
  if (comma === undefined) {
    if (at === endOf(last)) return apply(text, [{ start: at, end: at, text: `,${property}` }])
    edits.push({ start: endOf(last), end: endOf(last), text: "," })
  }
  return apply(text, edits)
}

/** Removes the property at `index` of an object. */
const remove = (text: string, object: Node, index: number): string => {
  const property = object.children?.[index]
  const previous = object.children?.[index - 1]
  if (property === undefined) return text
  const { comma } = after(text, endOf(property))
  const edits: Array<Replacement> = []
  let end = comma !== undefined && text.slice(endOf(property), comma).trim() === "" ? comma + 1 : endOf(property)
  let start = property.offset
  if (comma !== undefined && end !== comma + 1) edits.push({ start: comma, end: comma + 1, text: "" })
  if (comma === undefined && previous !== undefined) {
    const before = after(text, endOf(previous)).comma
    if (before !== undefined) edits.push({ start: before, end: before + 1, text: "" })
  }
  const restOfLine = /^[ \t]*(\r?\n|$)/.exec(text.slice(end))
  if (startsLine(text, start) && restOfLine !== null) {
    start = text.lastIndexOf("\n", start - 1) + 1
    end += restOfLine[0].length
  } else if (comma === undefined) {
    while (/[ \t]/.test(text[start - 1] ?? "")) start -= 1
  } else {
    while (/[ \t]/.test(text[end] ?? "")) end += 1
  }
  return apply(text, [...edits, { start, end, text: "" }])
}

interface Opened {
  readonly bom: string
  readonly text: string
  readonly root: Node
  readonly values: JsonObject
  /** Key of the servers; the empty string when the file itself is the map; `undefined` when there are none yet. */
  readonly key: string | undefined
  readonly servers: Node | undefined
}

const open = (whole: string, file: string, mayBeBare: boolean): Either.Either<Opened, ConfigError> =>
  Either.flatMap(JsonText.parse(whole, file), (located) => {
    const text = JsonText.withoutBom(whole)
    const root = JsonText.tree(text)
    if (located.kind !== "object" || root === undefined)
      return Either.left(
        toError(
          { field: "", at: located.at, text: "The file does not hold a JSON object, so it cannot be edited." },
          { file }
        )
      )
    const found = serverMap(located, mayBeBare)
    if (found !== undefined && "text" in found) return Either.left(toError(found, { file }))
    // A file with remarks only is no map of servers yet.
    const bare = found?.key === "" && !located.properties.some(({ value }) => value.kind === "object")
    const key = bare ? undefined : found?.key
    const servers =
      key === "" ? root : root.children?.findLast((property) => property.children?.[0]?.value === key)?.children?.[1]
    return Either.right({
      bom: whole.startsWith(JsonText.BOM) ? JsonText.BOM : "",
      text,
      root,
      values: objectToJson(located),
      key,
      servers: key === undefined ? undefined : servers
    })
  })

const indexesOf = (object: Node | undefined, name: string): ReadonlyArray<number> =>
  (object?.children ?? []).flatMap((property, index) => (property.children?.[0]?.value === name ? [index] : []))

/** The servers of a document as a list of name and value, in order. */
const serversIn = (values: JsonObject, key: string | undefined): ReadonlyArray<readonly [string, Json | undefined]> => {
  if (key === undefined) return []
  const map = key === "" ? values : values[key]
  return typeof map === "object" && map !== null && !Array.isArray(map) ? Object.entries(map) : []
}

const withServers = (
  values: JsonObject,
  key: string,
  servers: ReadonlyArray<readonly [string, Json | undefined]>
): JsonObject =>
  key === ""
    ? record(servers)
    : record<Json | undefined>([...Object.entries(values).filter(([name]) => name !== key), [key, record(servers)]])

/** Names of the servers that a text declares; fails when it does not parse. */
export const namesInJson = (
  text: string,
  file: string,
  mayBeBare: boolean
): Either.Either<ReadonlyArray<string>, ConfigError> =>
  Either.map(open(text, file, mayBeBare), ({ servers }) =>
    (servers?.children ?? []).map((property) => String(property.children?.[0]?.value))
  )

/** Adds an entry as the last one, or in the place of the one that has its name. */
export const addToJson = (
  current: string,
  file: string,
  mayBeBare: boolean,
  entry: { readonly name: string; readonly fields: JsonObject }
): Either.Either<Edited, ConfigError> => {
  const blank = JsonText.withoutBom(current).trim() === ""
  const start = blank ? `${current.startsWith(JsonText.BOM) ? JsonText.BOM : ""}{}\n` : current
  return Either.map(open(start, file, mayBeBare), (opened) => {
    const { bom, text, root, values, key, servers } = opened
    const others = serversIn(values, key).filter(([name]) => name !== entry.name)
    const expected = withServers(values, key ?? SERVERS, [...others, [entry.name, entry.fields]])
    if (servers === undefined) {
      const map = record<Json>([[entry.name, entry.fields]])
      return { text: bom + insert(text, root, SERVERS, map), expected }
    }
    const [...same] = indexesOf(servers, entry.name)
    const target = same.pop()
    if (target === undefined) return { text: bom + insert(text, servers, entry.name, entry.fields), expected }
    const property = servers.children?.[target]
    const value = property?.children?.[1]
    const style = styleOf(text)
    const indent = property === undefined ? "" : indentAt(text, property.offset)
    let changed =
      value === undefined
        ? text
        : apply(text, [
            {
              start: value.offset,
              end: endOf(value),
              text:
                property !== undefined && startsLine(text, property.offset)
                  ? pretty(entry.fields, indent, style)
                  : JSON.stringify(entry.fields)
            }
          ])
    // Earlier entries of the same name, from the back: the changed value stands behind all of them.
    for (const index of same.toReversed()) changed = remove(changed, servers, index)
    return { text: bom + changed, expected }
  })
}

/** Removes every entry of a name. `undefined` when there is none. */
export const removeFromJson = (
  current: string,
  file: string,
  mayBeBare: boolean,
  name: string
): Either.Either<Edited | undefined, ConfigError> =>
  Either.map(open(current, file, mayBeBare), ({ bom, text, values, key, servers }) => {
    const count = indexesOf(servers, name).length
    if (count === 0 || servers === undefined || key === undefined) return undefined
    let changed = text
    for (let left = count; left > 0; left -= 1) {
      // Offsets move with every removal, so each one works on a fresh tree.
      const root = JsonText.tree(changed)
      const object =
        key === "" ? root : root?.children?.findLast((property) => property.children?.[0]?.value === key)?.children?.[1]
      const index = indexesOf(object, name).at(-1)
      if (object === undefined || index === undefined) break
      changed = remove(changed, object, index)
    }
    return {
      text: bom + changed,
      expected: withServers(
        values,
        key,
        serversIn(values, key).filter(([other]) => other !== name)
      )
    }
  })

/** Sets one member of an object of the text: in its place, or as the last one. */
const setMember = (text: string, object: Node, key: string, value: Json): string => {
  const index = indexesOf(object, key).at(-1)
  const old = index === undefined ? undefined : object.children?.[index]?.children?.[1]
  const property = index === undefined ? undefined : object.children?.[index]
  if (old === undefined || property === undefined) return insert(text, object, key, value)
  const indented = startsLine(text, property.offset)
  const content = indented ? pretty(value, indentAt(text, property.offset), styleOf(text)) : JSON.stringify(value)
  return apply(text, [{ start: old.offset, end: endOf(old), text: content }])
}

/** Two spellings of one key at once are a fault, so the one that is there stays. */
const spelledIn = (has: (key: string) => boolean, member: string): string =>
  has(camel(member)) ? camel(member) : member

/** The members laid over an object, objects over objects. */
const laidOver = (old: JsonObject, members: JsonObject): JsonObject => {
  const laid = Object.entries(members).map(([member, value]): readonly [string, Json | undefined] => {
    const key = spelledIn((name) => own(old, name) !== undefined, member)
    const inner = own(old, key)
    return [
      key,
      value !== undefined && isJsonObject(value) && inner !== undefined && isJsonObject(inner)
        ? laidOver(inner, value)
        : value
    ]
  })
  return record<Json | undefined>([
    ...Object.entries(old).filter(([key]) => laid.every(([other]) => other !== key)),
    ...laid
  ])
}

/** Sets members of one server's `trust`, which is made when there is none. `undefined` when there is no such server. */
export const setTrustInJson = (
  current: string,
  file: string,
  mayBeBare: boolean,
  name: string,
  members: JsonObject
): Either.Either<Edited | undefined, ConfigError> =>
  Either.map(open(current, file, mayBeBare), ({ bom, key, text, values }) => {
    const entryIn = (whole: string): Node | undefined => {
      const root = JsonText.tree(whole)
      const map =
        key === "" ? root : root?.children?.findLast((property) => property.children?.[0]?.value === key)?.children?.[1]
      const index = indexesOf(map, name).at(-1)
      return index === undefined ? undefined : map?.children?.[index]?.children?.[1]
    }
    const memberOf = (object: Node | undefined, member: string): Node | undefined =>
      object?.children?.findLast((property) => property.children?.[0]?.value === member)?.children?.[1]
    const before = entryIn(text)
    const old = serversIn(values, key).findLast(([other]) => other === name)?.[1]
    if (before === undefined || key === undefined || !isJsonObject(old)) return undefined
    const nodeAt = (whole: string, path: ReadonlyArray<string>): Node | undefined =>
      path.reduce<Node | undefined>(memberOf, entryIn(whole))
    // Offsets move with every change, so each one works on a fresh tree. Values are replaced where they stand, so
    // that comments between them stay.
    const set = (whole: string, path: ReadonlyArray<string>, values: JsonObject): string =>
      Object.entries(values).reduce((sofar, [member, value]) => {
        const object = nodeAt(sofar, path)
        if (object === undefined || value === undefined) return sofar
        const key = spelledIn((name) => memberOf(object, name) !== undefined, member)
        if (memberOf(object, key)?.value === value) return sofar
        return isJsonObject(value) && memberOf(object, key)?.type === "object"
          ? set(sofar, [...path, key], value)
          : setMember(sofar, object, key, value)
      }, whole)
    const changed = set(text, [], { trust: members })
    const next = laidOver(old, { trust: members })
    return {
      text: bom + changed,
      expected: withServers(
        values,
        key,
        serversIn(values, key).map(([other, value]) => [other, other === name ? next : value] as const)
      )
    }
  })

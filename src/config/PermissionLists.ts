/**
 * `permissions.{allow,ask,deny}` and `allowedTools` of settings.json (S section 6.3): decoded here, decided in the
 * policy room.
 *
 * A rule is `Tool` or `Tool(pattern)`. A tool may be written with the names of its server and itself as they are: what
 * a visible name replaces is replaced here too, or the rule would never match. A rule that cannot be read is a fault
 * of the table and not skipped, because it may be a deny.
 */
import type { Where } from "../base/Failure.ts"
import { deadText, type FieldReader } from "./Fields.ts"
import type { LocatedNode } from "./Located.ts"
import type { Decision } from "./PermissionSettings.ts"
import { kindText } from "./Problem.ts"

/** One rule of a list. */
export interface ListRule {
  /** As written. */
  readonly text: string
  /** Tool pattern in the alphabet of visible names, with `*` and `?`. */
  readonly tool: string
  /** Between the parentheses; absent for a bare rule. */
  readonly pattern?: string
  readonly where: Where
}

/** The lists of settings.json. */
export interface PermissionLists {
  readonly allow: ReadonlyArray<ListRule>
  readonly ask: ReadonlyArray<ListRule>
  readonly deny: ReadonlyArray<ListRule>
  /** Exact names, pre-approved. */
  readonly allowedTools: ReadonlyArray<ListRule>
}

/** No lists. */
export const noLists: PermissionLists = { allow: [], ask: [], deny: [], allowedTools: [] }

/** Lists that all count; within a list the order means nothing. */
export const joinLists = (one: PermissionLists, other: PermissionLists): PermissionLists => ({
  allow: [...one.allow, ...other.allow],
  ask: [...one.ask, ...other.ask],
  deny: [...one.deny, ...other.deny],
  allowedTools: [...one.allowedTools, ...other.allowedTools]
})

/** The keys that hold these lists, in snake_case. */
export const listKeys = ["permissions", "allowed_tools"] as const

const ruleForm = /^([^\s()]+)(?:\((.*)\))?$/s

/** The alphabet of visible names: any other run of characters is one `_` there. */
export const asVisible = (tool: string): string => tool.replace(/[^A-Za-z0-9_*?-]+/g, "_")

const items = (reader: FieldReader, name: string): ReadonlyArray<readonly [node: LocatedNode, field: string]> => {
  const property = reader.take(name)
  if (property === undefined) return []
  const field = reader.pathOf(property)
  if (property.value.kind === "array")
    return property.value.items.map((item, index) => [item, `${field}[${index}]`] as const)
  reader.add(field, property.value.at, `found ${kindText(property.value)}, expected a list of strings`)
  return []
}

/** The texts of a list, each with its place. */
const texts = (reader: FieldReader, name: string, file: string) =>
  items(reader, name).flatMap(([node, field]) => {
    if (node.kind !== "string") {
      reader.add(field, node.at, `found ${kindText(node)}, expected a string; write it in quotes`)
      return []
    }
    const fault = deadText(node.value)
    if (fault !== undefined) reader.add(field, node.at, fault)
    return [{ text: node.value.trim(), at: node.at, where: { file, ...node.at, field } }]
  })

const ruleList = (reader: FieldReader, name: Decision, file: string): ReadonlyArray<ListRule> =>
  texts(reader, name, file).flatMap(({ text, at, where }) => {
    const [, tool, pattern] = ruleForm.exec(text) ?? []
    if (tool === undefined || pattern?.trim() === "") {
      reader.add(where.field, at, "expected the name of a tool, or Tool(pattern)")
      return []
    }
    return [{ text, tool: asVisible(tool), ...(pattern === undefined ? {} : { pattern }), where }]
  })

/** Exact names; one text may hold several, separated by commas. */
export const exactNames = (text: string): ReadonlyArray<string> =>
  text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "")

/** Takes the lists from the root of settings.json; every fault goes to the reader's issues. */
export const decodeLists = (root: FieldReader, file: string): PermissionLists => {
  const allowedTools = texts(root, "allowed_tools", file).flatMap(({ text, where }) =>
    exactNames(text).map((name): ListRule => ({ text: name, tool: asVisible(name), where }))
  )
  const table = root.table("permissions")
  if (table === undefined) return { ...noLists, allowedTools }
  const lists = {
    allow: ruleList(table, "allow", file),
    ask: ruleList(table, "ask", file),
    deny: ruleList(table, "deny", file),
    allowedTools
  }
  table.refuseUnused("permissions")
  return lists
}

/** Whether a fault of settings.json leaves it open what these lists say. */
export const concernsLists = (field: string): boolean => /^(?:permissions|allowedTools|allowed_tools)\b/.test(field)

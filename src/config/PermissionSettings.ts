/** `[permission]` of sigil.toml (R section 1.8): decoded here, decided in the policy room. */
import type { Where } from "../base/Failure.ts"
import { deadText, FieldReader } from "./Fields.ts"
import { childPath, type LocatedNode, record } from "./Located.ts"
import { kindText } from "./Problem.ts"

/** A verdict that a setting can give. */
export type Decision = "allow" | "ask" | "deny"
/** All verdicts. */
export const decisions = ["allow", "ask", "deny"] as const

/** Modes of local access. */
export type PermissionMode = "read-only" | "manual" | "auto-edit" | "danger-full-access"

/** One `[[permission.rules]]`; the last matching one wins. */
export interface PermissionRule {
  /** Glob over visible tool names; absent = every tool. */
  readonly toolName?: string
  /** Glob over subjects; absent = every subject. */
  readonly subjectGlob?: string
  readonly mode: Decision
  /** Line in sigil.toml, from 1; for `--explain`. */
  readonly line: number
}

/** `[permission]`. */
export interface PermissionSettings {
  /** sigil.toml, where the table was read. */
  readonly file?: string
  /** Where each setting stands, by its path below `permission`: `mode`, `rules[0]`, `commands.deny[1]`. No prototype. */
  readonly places: { readonly [field: string]: Where }
  readonly mode: PermissionMode
  /** By exact visible tool name. Without a prototype. */
  readonly tools: { readonly [visibleName: string]: Decision }
  readonly rules: ReadonlyArray<PermissionRule>
  /** Patterns for shell-like tools; deny before ask before allow. */
  readonly commands: { readonly [group in Decision]: ReadonlyArray<string> }
  readonly externalDirectory: {
    readonly enabled: boolean
    readonly defaultMode: Decision
    readonly rules: ReadonlyArray<{ readonly pathGlob: string; readonly mode: Decision }>
  }
}

/** What holds without a `[permission]` table. */
export const defaultPermission: PermissionSettings = {
  places: record([]),
  mode: "manual",
  tools: record([]),
  rules: [],
  commands: { allow: [], ask: [], deny: [] },
  externalDirectory: { enabled: false, defaultMode: "ask", rules: [] }
}

/** Readers of the tables in a list such as `[[permission.rules]]`. */
const tables = (reader: FieldReader, name: string): ReadonlyArray<FieldReader> => {
  const property = reader.take(name)
  if (property === undefined) return []
  const field = reader.pathOf(property)
  if (property.value.kind !== "array") {
    reader.add(field, property.value.at, `found ${kindText(property.value)}, expected a list of tables`)
    return []
  }
  return property.value.items.flatMap((item, index) => {
    if (item.kind === "object") return [new FieldReader(item, `${field}[${index}]`, reader.spelling, reader.issues)]
    reader.add(`${field}[${index}]`, item.at, `found ${kindText(item)}, expected a table of keys`)
    return []
  })
}

const decodeRule = (reader: FieldReader): PermissionRule => {
  const toolName = reader.text("tool_name")
  const subjectGlob = reader.text("subject_glob")
  for (const [field, text] of [
    ["tool_name", toolName],
    ["subject_glob", subjectGlob]
  ] as const) {
    const fault = text === undefined ? undefined : deadText(text)
    if (fault !== undefined)
      reader.add(childPath(reader.path, field), reader.take(field)?.value.at ?? reader.object.at, fault)
  }
  const mode = reader.choice("mode", decisions) ?? "ask"
  reader.refuseUnused("a permission rule")
  return {
    ...(toolName === undefined ? {} : { toolName }),
    ...(subjectGlob === undefined ? {} : { subjectGlob }),
    mode,
    line: reader.object.at.line
  }
}

/** A name that no tool can have would never match, and a deny by it would protect nobody. */
const toolNameFault = (name: string): string | undefined => {
  const instead = `expected the exact name of one tool; write ${JSON.stringify(name)} as tool_name of a [[permission.rules]] entry`
  if (/[*?]/.test(name)) return `this is a pattern, ${instead}`
  return /^mcp__/i.test(name) && !name.slice("mcp__".length).includes("__")
    ? `this is a whole server, ${instead}`
    : undefined
}

const decodeTools = (reader: FieldReader): PermissionSettings["tools"] => {
  const property = reader.take("tools")
  const inner = property === undefined ? undefined : reader.innerObject(property)
  if (property === undefined || inner === undefined) return defaultPermission.tools
  const tools = new FieldReader(inner, reader.pathOf(property), reader.spelling, reader.issues)
  return record(
    inner.properties.flatMap((tool) => {
      const decision = tools.choiceIn(tool, decisions)
      const fault = deadText(tool.key) ?? toolNameFault(tool.key)
      if (fault !== undefined) {
        tools.add(tools.pathOf(tool), tool.at, fault)
        return []
      }
      return decision === undefined ? [] : [[tool.key, decision] as const]
    })
  )
}

const patternFault = (pattern: string): string | undefined => {
  if (pattern.trim() === "") return "the pattern is empty"
  return /[\r\n]/.test(pattern) ? "the pattern has more than one line" : undefined
}

const decodeCommands = (permission: FieldReader): PermissionSettings["commands"] => {
  const reader = permission.table("commands")
  if (reader === undefined) return defaultPermission.commands
  const groups = new Map<string, Decision>()
  const group = (name: Decision): ReadonlyArray<string> =>
    reader.strings(name, (pattern) => {
      const fault = patternFault(pattern)
      if (fault !== undefined) return fault
      const other = groups.get(pattern)
      groups.set(pattern, name)
      return other === undefined || other === name
        ? undefined
        : `the same pattern is also in ${other}; keep one of them`
    }) ?? []
  const commands = { allow: group("allow"), ask: group("ask"), deny: group("deny") }
  reader.refuseUnused("permission.commands")
  return commands
}

const decodeExternal = (permission: FieldReader): PermissionSettings["externalDirectory"] => {
  const reader = permission.table("external_directory")
  if (reader === undefined) return defaultPermission.externalDirectory
  const external = {
    enabled: reader.bool("enabled") ?? false,
    defaultMode: reader.choice("default_mode", decisions) ?? "ask",
    rules: tables(reader, "rules").map((rule) => {
      const pathGlob = rule.text("path_glob")
      if (pathGlob === undefined && !rule.has("path_glob"))
        rule.add(childPath(rule.path, "path_glob"), rule.object.at, "the rule has no path_glob")
      const mode = rule.choice("mode", decisions) ?? "ask"
      rule.refuseUnused("a rule for directories")
      return { pathGlob: pathGlob ?? "", mode }
    })
  }
  reader.refuseUnused("permission.external_directory")
  return external
}

/** Where every key and list item below a table stands. */
const placesBelow = (node: LocatedNode, path: string, root: string, file: string): ReadonlyArray<[string, Where]> => {
  const inner =
    node.kind === "object"
      ? node.properties.map(({ at, key, value }) => ({ at, value, path: path === "" ? key : `${path}.${key}` }))
      : node.kind === "array"
        ? node.items.map((value, index) => ({ at: value.at, value, path: `${path}[${index}]` }))
        : []
  return inner.flatMap((child): ReadonlyArray<[string, Where]> => [
    [child.path, { file, ...child.at, field: `${root}.${child.path}` }],
    ...placesBelow(child.value, child.path, root, file)
  ])
}

/** Reads `[permission]` of `file`; every fault goes to the reader's issues. */
export const decodePermission = (reader: FieldReader, file: string): PermissionSettings => {
  const settings = {
    file,
    places: record(placesBelow(reader.object, "", reader.path, file)),
    mode: reader.choice("mode", ["read-only", "manual", "auto-edit", "danger-full-access"]) ?? defaultPermission.mode,
    tools: decodeTools(reader),
    rules: tables(reader, "rules").map(decodeRule),
    commands: decodeCommands(reader),
    externalDirectory: decodeExternal(reader)
  }
  reader.refuseUnused("permission")
  return settings
}

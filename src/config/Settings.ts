/**
 * Everything in sigil.toml and settings.json that is not a server.
 *
 * An unknown key in sigil.toml is a fault of that file. A safety setting is never lost silently: one that this build
 * cannot enforce, or one that stands in a table or file that cannot be read, is listed in `unsupportedSafety`, and a
 * listed one refuses every start (spec section 3).
 */
import { distance } from "fastest-levenshtein"
import { escapeLine } from "../base/Display.ts"
import type { Where } from "../base/Failure.ts"
import { SECOND_MS, DAY_MS } from "../base/Units.ts"
import { type CompanyPolicy, decodeCompanyPolicy, policyFaults, policyRemarks } from "./CompanyPolicy.ts"
import type { ConfigError } from "./ConfigError.ts"
import { decodeExecution, defaultExecution, type ExecutionSettings } from "./ExecutionSettings.ts"
import { FieldReader } from "./Fields.ts"
import {
  deepDuplicate,
  duplicatesOf,
  type LocatedObject,
  type LocatedProperty,
  type Position,
  propertyOf
} from "./Located.ts"
import { decodeSwitches, decodeToolSearch, type McpSwitches, unsupportedSwitches } from "./McpSwitches.ts"
import { concernsLists, decodeLists, joinLists, listKeys, noLists, type PermissionLists } from "./PermissionLists.ts"
import { decodePermission, defaultPermission, type Decision, type PermissionSettings } from "./PermissionSettings.ts"
import { type Issues, toError } from "./Problem.ts"
import { decodeWeb, defaultWeb, type WebSettings } from "./WebSettings.ts"

/** Call deadline when `[agent]` says nothing, ms (R section 1.7). */
const TOOL_TIMEOUT_MS = 30 * SECOND_MS

/** Safety settings of settings.json; a key that only resembles one refuses every start. */
const jsonSafetyKeys = ["mcp_policy", "policy_limits", ...listKeys] as const

/** What a safety setting of a host guards, and the words that say what may happen to it: together they make one. */
const guarding = [
  {
    words: /deny|denied|denies|allow|forbid|block|restrict|prohibit|banned|reject|approv/,
    things:
      /mcp|tool|server|command|bash|shell|exec|network|domain|host|url|web|fetch|plugin|director|folder|path|file|env/
  },
  // These words stand in harmless keys, too.
  { words: /disabl|exclu|black|white|requir|trust|confirm/, things: /mcp|tool|server|command|plugin/ }
] as const
/** These guard whatever stands beside them. */
const guardingAlone =
  /permission|polic(?:y|ies)|sandbox|approval|^(?:deny|denied|(?:dis)?allow(?:ed)?|forbid(?:den)?|block(?:ed)?)(?:list)?$/

/** The letters of a key, without case; parts of a user interface are no tools. */
const lettersOf = (key: string): string =>
  key
    .normalize("NFKC")
    .replace(/[^\p{L}]/gu, "")
    .toLowerCase()
    .replace(/tool(?:tip|bar)/g, "")

const guards = (key: string): boolean => {
  const plain = lettersOf(key)
  return guarding.some(({ things, words }) => words.test(plain) && things.test(plain))
}

/**
 * Whether a key that nobody knows looks like a safety setting: one of ours but for case, separators and slips, or one
 * in the words that hosts use for theirs. It would guard nothing here, so it must not be passed over.
 */
const resemblesSafety = ({ key, value }: LocatedProperty): boolean => {
  const plain = lettersOf(key)
  if (guardingAlone.test(plain) || guards(key)) return true
  // Groups such as {"tools": {"exclude": […]}}; the names of variables below `env` are nobody's settings.
  if (value.kind === "object" && key !== "env" && value.properties.some((inner) => guards(`${key}.${inner.key}`)))
    return true
  return jsonSafetyKeys.some((name) => {
    const known = name.replaceAll("_", "")
    return known === plain || distance(known, plain) <= 3
  })
}

/** A safety setting that is present and not enforced. */
export interface UnsupportedSafety {
  readonly field: string
  /** File it stands in. */
  readonly source: string
  /** Why it counts as not enforced, when it is not simply missing from this build. */
  readonly why?: string
  readonly at?: Position
  readonly reason?: string
  readonly fix?: string
}

/** The settings of a run. */
export interface Settings {
  readonly permission: PermissionSettings
  readonly web: WebSettings
  /** `[web] network_mode`. */
  readonly networkMode: Decision
  /** Where `network_mode` stands, if it is written. */
  readonly networkWhere?: Where
  /** `permissions` and `allowedTools` of settings.json. */
  readonly lists: PermissionLists
  readonly execution: ExecutionSettings
  readonly mcp: McpSwitches
  readonly agent: { readonly toolTimeoutMs: number }
  readonly audit: { readonly sync: "write" | "always" }
  /** `[workspace] root` as written. */
  readonly workspaceRoot: string | undefined
  /** One for each file that has `mcpPolicy` or `policyLimits`, the managed file first; every one counts. */
  readonly company: ReadonlyArray<CompanyPolicy>
}

/** What holds without any file. */
export const defaultSettings: Settings = {
  permission: defaultPermission,
  web: defaultWeb,
  networkMode: defaultWeb.networkMode,
  lists: noLists,
  execution: defaultExecution,
  mcp: {},
  agent: { toolTimeoutMs: TOOL_TIMEOUT_MS },
  audit: { sync: "write" },
  workspaceRoot: undefined,
  company: []
}

/** What one file says besides servers. */
export interface DecodedSettings {
  readonly settings: Settings
  /** Faults that make the file unusable. */
  readonly faults: ReadonlyArray<ConfigError>
  /** Remarks that leave it usable. */
  readonly remarks: ReadonlyArray<ConfigError>
  readonly unsupportedSafety: ReadonlyArray<UnsupportedSafety>
}

/** Keys of sigil.toml that other readers take. */
const otherTomlKeys = ["mcp_servers", "config_version"]

/** Decodes sigil.toml's tables over `base`. */
export const decodeTomlSettings = (root: LocatedObject, file: string, base: Settings): DecodedSettings => {
  const issues: Issues = []
  const remarks: Issues = []
  const unsupportedSafety: Array<UnsupportedSafety> = []
  const reader = new FieldReader(root, "", "toml", issues)
  for (const key of otherTomlKeys) reader.takeExact(key)

  /** A table that guards something: with a fault in it, what it guards is unknown. */
  const guarded = <A>(name: string, decode: (table: FieldReader) => A, fallback: A): A => {
    const before = issues.length
    const table = reader.table(name)
    const value = table === undefined ? fallback : decode(table)
    const fault = issues[before]
    if (fault === undefined) return value
    unsupportedSafety.push({ field: name, source: file, why: `${fault.field}: ${fault.text}`, at: fault.at })
    return fallback
  }
  const permission = guarded("permission", (table) => decodePermission(table, file), base.permission)
  const web = guarded("web", decodeWeb, base.web)
  const execution = guarded("execution", decodeExecution, base.execution)

  const webTable = propertyOf(root, "web")?.value
  const networkMode = webTable?.kind === "object" ? propertyOf(webTable, "network_mode") : undefined

  const mcpTable = reader.table("mcp")
  const mcp = mcpTable === undefined ? {} : decodeSwitches(mcpTable)
  if (mcpTable !== undefined) remarks.push(...unsupportedSwitches(mcp, mcpTable))

  const agent = reader.table("agent")
  const seconds = agent?.number("tool_timeout_secs", { min: -Infinity, max: Infinity, integer: false, unit: "seconds" })
  agent?.refuseUnused("agent")
  const audit = reader.table("audit")
  const sync = audit?.choice("sync", ["write", "always"])
  audit?.refuseUnused("audit")
  const workspace = reader.table("workspace")
  const workspaceRoot = workspace?.text("root")
  workspace?.refuseUnused("workspace")
  reader.refuseUnused("sigil.toml")
  // A key that nobody knows may be a safety setting with a typo; what it was to guard is unknown.
  const [fault] = issues
  if (fault !== undefined && unsupportedSafety.length === 0)
    unsupportedSafety.push({ field: fault.field, source: file, why: fault.text })

  return {
    settings: {
      ...base,
      permission,
      web,
      networkMode: web.networkMode,
      ...(networkMode === undefined ? {} : { networkWhere: { file, ...networkMode.at, field: "web.network_mode" } }),
      execution,
      mcp: { ...base.mcp, ...mcp },
      agent: {
        toolTimeoutMs:
          seconds === undefined
            ? base.agent.toolTimeoutMs
            : seconds > 0
              ? Math.min(DAY_MS, Math.max(1, Math.floor(seconds * SECOND_MS)))
              : TOOL_TIMEOUT_MS
      },
      audit: { sync: sync ?? base.audit.sync },
      workspaceRoot: workspaceRoot ?? base.workspaceRoot
    },
    faults: issues.map((issue) => toError(issue, { file })),
    remarks: remarks.map((issue) => toError(issue, { file })),
    unsupportedSafety
  }
}

/** Decodes settings.json's keys over `base`. Unknown keys are remarks: the file may be shared with another host. */
export const decodeJsonSettings = (root: LocatedObject, file: string, base: Settings): DecodedSettings => {
  const issues: Issues = []
  const remarks: Issues = []
  const reader = new FieldReader(root, "", "json", issues)
  for (const key of ["mcpServers", "mcp_servers", "$schema"]) reader.takeExact(key)
  const unsupportedSafety: Array<UnsupportedSafety> = []
  for (const [key, at] of duplicatesOf(root))
    issues.push({ field: key, at, text: "this key is written twice; keep one of them" })
  for (const property of root.properties) {
    const twice = /^mcp_?servers$/i.test(property.key) ? undefined : deepDuplicate(property.value, property.key)
    if (twice !== undefined)
      issues.push({ field: twice.path, at: twice.at, text: "this key is written twice; keep one of them" })
  }
  const lists = joinLists(base.lists, decodeLists(reader, file))
  const [doubt] = issues.filter(({ field }) => concernsLists(field))
  if (doubt !== undefined) unsupportedSafety.push({ field: doubt.field, source: file, why: doubt.text, at: doubt.at })
  const company = decodeCompanyPolicy(reader, { file, managed: false })
  if (company !== undefined) remarks.push(...policyRemarks(company))
  for (const { at, field, text } of policyFaults(issues)) unsupportedSafety.push({ field, source: file, why: text, at })
  const mcpTable = reader.table("mcp")
  const switches = mcpTable === undefined ? {} : decodeSwitches(mcpTable)
  if (mcpTable !== undefined) remarks.push(...unsupportedSwitches(switches, mcpTable))
  for (const { at, field, text } of issues)
    if (field.startsWith("mcp.") && guards(field)) unsupportedSafety.push({ field, source: file, why: text, at })
  const toolSearch = decodeToolSearch(reader)
  const keepLoaded = reader.strings("tool_search_keep_loaded")
  for (const property of reader.unused()) {
    if (resemblesSafety(property))
      unsupportedSafety.push({
        field: property.key,
        source: file,
        at: property.at,
        why: "it looks like a safety setting and is not spelled as one",
        fix: `Say it with mcpPolicy, policyLimits, permissions or allowedTools, and remove '${escapeLine(property.key)}'.`
      })
    remarks.push({
      field: reader.pathOf(property),
      at: property.at,
      reason: "unknown_key",
      text: "settings.json has no key of this name; it is ignored"
    })
  }
  return {
    settings: {
      ...base,
      lists,
      mcp: {
        ...base.mcp,
        ...switches,
        ...(toolSearch === undefined ? {} : { toolSearch }),
        ...(keepLoaded === undefined ? {} : { toolSearchKeepLoaded: keepLoaded })
      },
      company: company === undefined ? base.company : [...base.company, company]
    },
    faults: issues.map((issue) => toError(issue, { file })),
    remarks: remarks.map((issue) => toError(issue, { file })),
    unsupportedSafety
  }
}

/**
 * What to assume of a file of the user that is there and cannot be used: it may have held safety settings, whatever is
 * left of its text, so nothing may start until it can be read again.
 */
export const safetyOfUnusable = ({ fix, text, where }: ConfigError, file: string): UnsupportedSafety => ({
  field: "safety settings",
  source: file,
  why: text.replace(/\.$/, ""),
  ...(where?.line === undefined ? {} : { at: { line: where.line, column: where.column ?? 1 } }),
  ...(fix === undefined ? {} : { fix })
})

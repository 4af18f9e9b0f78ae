/**
 * The lists of settings.json and of the run (S section 6.3): deny before ask before allow.
 *
 * Order inside a list means nothing. `Tool(pattern)` is compared with the first of `file_path`, `command` and
 * `pattern` that is not empty in the arguments; inside one class such a rule is named before a bare one. An exact
 * name in `allowedTools` or `--allowed-tools` is an allow.
 */
import * as path from "node:path"
import { type JsonObject, own } from "../../base/Json.ts"
import type { ListRule, PermissionLists } from "../../config/PermissionLists.ts"
import { decisions } from "../../config/PermissionSettings.ts"
import type { Call } from "./Call.ts"
import { namesCommand } from "./CommandText.ts"
import { glob } from "./Glob.ts"
import type { Ground, Verdict } from "./Ground.ts"
import type { Policy } from "./Policy.ts"
import { namesTool } from "./ToolPattern.ts"

const fields = ["file_path", "command", "pattern"] as const

interface Compared {
  readonly field: (typeof fields)[number]
  readonly text: string
}

const comparedOf = (input: JsonObject): Compared | undefined => {
  for (const field of fields) {
    const text = own(input, field)
    if (typeof text === "string" && text !== "") return { field, text }
  }
  return undefined
}

const namesInput = (pattern: string, compared: Compared | undefined, widens: boolean): boolean => {
  if (compared === undefined) return false
  const { field, text } = compared
  if (field === "command") return namesCommand(pattern, text, widens)
  if (field === "pattern") return glob(pattern, text)
  // `src/../../etc` must not pass for something below `src/`, in neither direction.
  const forms = [text, path.posix.normalize(text.replaceAll("\\", "/"))]
  return widens ? forms.every((form) => glob(pattern, form)) : forms.some((form) => glob(pattern, form))
}

const matches = (rule: ListRule, verdict: Verdict, call: Call, compared: Compared | undefined): boolean => {
  const widens = verdict === "allow"
  if (!namesTool(rule.tool, { widens, fold: true }, call.names)) return false
  return rule.pattern === undefined || namesInput(rule.pattern, compared, widens)
}

const strictestFirst = decisions.toReversed()

const exactly = (name: string, call: Call): boolean =>
  name.toLowerCase() === call.names.visibleName.toLowerCase() &&
  namesTool(name, { widens: true, fold: true }, call.names)

/** The verdict of the lists; `undefined` when none names the call. */
export const listVerdict = ({ allowedTools, lists }: Policy, call: Call): Ground | undefined => {
  const compared = comparedOf(call.input)
  for (const group of strictestFirst) {
    const found = lists[group].filter((rule) => matches(rule, group, call, compared))
    const rule = found.find(({ pattern }) => pattern !== undefined) ?? found[0]
    if (rule !== undefined)
      return {
        verdict: group,
        kind: "list",
        by: `'${rule.text}' in permissions.${group} of settings.json`,
        where: rule.where
      }
  }
  const named = lists.allowedTools.find(({ tool }) => exactly(tool, call))
  if (named !== undefined)
    return {
      verdict: "allow",
      kind: "allowed_tools",
      by: `'${named.text}' in allowedTools of settings.json`,
      where: named.where
    }
  const given = allowedTools.find((name) => exactly(name, call))
  return given === undefined
    ? undefined
    : { verdict: "allow", kind: "allowed_tools", by: `'${given}' in --allowed-tools of this run` }
}

/** Whether the arguments of a call can change a verdict. */
export const readsInput = (lists: PermissionLists): boolean =>
  decisions.some((group) => lists[group].some(({ pattern }) => pattern !== undefined))

/**
 * `[[permission.rules]]` and `[permission.tools]` of sigil.toml (R section 1.8).
 *
 * The last rule that matches wins, and rules beat `tools`. A call may have several subjects: each finds its own last
 * rule, and the strictest counts. A rule with `subject_glob` has no meaning for a call without a subject; meeting one
 * is an error and not a match, because guessing either way could widen.
 */
import type { PermissionRule } from "../../config/PermissionSettings.ts"
import type { Call } from "./Call.ts"
import { glob } from "./Glob.ts"
import { type Ground, strictestOf } from "./Ground.ts"
import type { Policy } from "./Policy.ts"
import { namesTool } from "./ToolPattern.ts"

/** The verdict of sigil.toml, that it has none, or why it cannot be told. */
export type TomlVerdict =
  | { readonly _tag: "Verdict"; readonly ground: Ground | undefined }
  | { readonly _tag: "SubjectMissing"; readonly ground: Ground }

const namesSubject = (pattern: string, rule: PermissionRule, subject: string, call: Call): boolean =>
  subject === call.names.visibleName
    ? namesTool(pattern, { widens: rule.mode === "allow", fold: false }, call.names)
    : glob(pattern, subject)

/** Without a subject: `undefined` stands for none. */
const matches = (rule: PermissionRule, subject: string | undefined, call: Call): boolean | "subject_missing" => {
  const reading = { widens: rule.mode === "allow", fold: false }
  if (rule.toolName !== undefined && !namesTool(rule.toolName, reading, call.names)) return false
  if (rule.subjectGlob === undefined) return true
  return subject === undefined ? "subject_missing" : namesSubject(rule.subjectGlob, rule, subject, call)
}

const ruleGround = (policy: Policy, index: number, verdict: Ground["verdict"]): Ground => {
  const { file, rules } = policy.permission
  const rule = rules[index]
  const about = rule?.toolName ?? rule?.subjectGlob ?? "every tool"
  const line = rule?.line ?? 0
  return {
    verdict,
    kind: "rule",
    by: `the rule for '${about}' in line ${line} of sigil.toml`,
    where: { ...(file === undefined ? {} : { file }), line, field: `permission.rules[${index}]` }
  }
}

/** Judges by rules, then by name. */
export const tomlVerdict = (policy: Policy, call: Call): TomlVerdict => {
  const { places, rules, tools } = policy.permission
  const subjects: ReadonlyArray<string | undefined> = call.subjects.length === 0 ? [undefined] : call.subjects
  const found: Array<Ground> = []
  for (const subject of subjects) {
    for (let index = rules.length - 1; index >= 0; index--) {
      const rule = rules[index]
      const match = rule === undefined ? false : matches(rule, subject, call)
      if (rule === undefined || match === false) continue
      if (match === "subject_missing") return { _tag: "SubjectMissing", ground: ruleGround(policy, index, "deny") }
      found.push(ruleGround(policy, index, rule.mode))
      break
    }
  }
  const ruled = strictestOf(found)
  if (ruled !== undefined) return { _tag: "Verdict", ground: ruled }
  const { visibleName } = call.names
  const named = Object.hasOwn(tools, visibleName) ? tools[visibleName] : undefined
  if (named === undefined) return { _tag: "Verdict", ground: undefined }
  // An exact name is a pattern without wild cards, and as such must not be another server's by chance.
  if (!namesTool(visibleName, { widens: named === "allow", fold: false }, call.names))
    return { _tag: "Verdict", ground: undefined }
  const where = places[`tools.${visibleName}`]
  return {
    _tag: "Verdict",
    ground: {
      verdict: named,
      kind: "tools",
      by: `permission.tools.${visibleName}`,
      ...(where === undefined ? {} : { where })
    }
  }
}

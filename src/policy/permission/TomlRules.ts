/**
 * `[[permission.rules]]` and `[permission.tools]` of sigil.toml (R section 1.8).
 *
 * The last rule that matches wins, and rules beat `tools`. A call may have several subjects: each finds its own last
 * rule, and the strictest counts. A rule with `subject_glob` has no meaning for a call without a subject; meeting one
 * is an error and not a match, because guessing either way could widen.
 *
 * What asks or denies is also read as leniently as the lists of settings.json: a deny in another spelling must not
 * silently do nothing. Such a match can only tighten: it is told apart, and never takes the place of a stricter
 * verdict that holds without it. What allows is read exactly.
 */
import { asVisible } from "../../config/PermissionLists.ts"
import type { PermissionRule } from "../../config/PermissionSettings.ts"
import type { Call } from "./Call.ts"
import { glob } from "./Glob.ts"
import { type Ground, strictestOf, type Verdict } from "./Ground.ts"
import type { Policy } from "./Policy.ts"
import { namesTool } from "./ToolPattern.ts"

/** The verdict of sigil.toml, that it has none, or why it cannot be told. */
export type TomlVerdict =
  | {
      readonly _tag: "Verdict"
      readonly ground: Ground | undefined
      /** Of what names the tool in another spelling: the verdict is at least this strict. */
      readonly atLeast: Ground | undefined
    }
  | { readonly _tag: "SubjectMissing"; readonly ground: Ground }

type Names = (pattern: string) => boolean

/** Without a subject: `undefined` stands for none. */
const fits = (
  rule: PermissionRule,
  subject: string | undefined,
  call: Call,
  names: Names
): boolean | "subject_missing" => {
  if (rule.toolName !== undefined && !names(rule.toolName)) return false
  if (rule.subjectGlob === undefined) return true
  if (subject === undefined) return "subject_missing"
  return subject === call.names.visibleName ? names(rule.subjectGlob) : glob(rule.subjectGlob, subject)
}

const exactly =
  (call: Call, verdict: Verdict): Names =>
  (pattern) =>
    namesTool(pattern, { widens: verdict === "allow", fold: false }, call.names)

const leniently =
  (call: Call): Names =>
  (pattern) =>
    namesTool(asVisible(pattern), { widens: false, fold: true }, call.names)

const matchOf = (
  rule: PermissionRule,
  subject: string | undefined,
  call: Call
): "exact" | "lenient" | "subject_missing" | undefined => {
  const exact = fits(rule, subject, call, exactly(call, rule.mode))
  if (exact !== false) return exact === true ? "exact" : exact
  const lenient = rule.mode !== "allow" && fits(rule, subject, call, leniently(call))
  if (lenient === false) return undefined
  return lenient === true ? "lenient" : lenient
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

const toolsGround = ({ permission: { places } }: Policy, name: string, verdict: Verdict): Ground => {
  const where = places[`tools.${name}`]
  return {
    verdict,
    kind: "tools",
    by: `permission.tools.${name}`,
    ...(where === undefined ? {} : { where })
  }
}

/** Judges by rules, then by name. */
export const tomlVerdict = (policy: Policy, call: Call): TomlVerdict => {
  const { rules, tools } = policy.permission
  const subjects: ReadonlyArray<string | undefined> = call.subjects.length === 0 ? [undefined] : call.subjects
  const found: Array<Ground> = []
  const tightening: Array<Ground> = []
  for (const subject of subjects) {
    for (let index = rules.length - 1; index >= 0; index--) {
      const rule = rules[index]
      const match = rule === undefined ? undefined : matchOf(rule, subject, call)
      if (rule === undefined || match === undefined) continue
      if (match === "subject_missing") return { _tag: "SubjectMissing", ground: ruleGround(policy, index, "deny") }
      const ground = ruleGround(policy, index, rule.mode)
      if (match === "exact") {
        found.push(ground)
        break
      }
      tightening.push(ground)
    }
  }
  const ruled = strictestOf(found)
  if (ruled !== undefined) return { _tag: "Verdict", ground: ruled, atLeast: strictestOf(tightening) }
  const { visibleName } = call.names
  for (const [name, verdict] of Object.entries(tools))
    if (verdict !== "allow" && name !== visibleName && leniently(call)(name))
      tightening.push(toolsGround(policy, name, verdict))
  const named = Object.hasOwn(tools, visibleName) ? tools[visibleName] : undefined
  return {
    _tag: "Verdict",
    // An exact name is a pattern without wild cards, and as such must not be another server's by chance.
    ground:
      named !== undefined && exactly(call, named)(visibleName) ? toolsGround(policy, visibleName, named) : undefined,
    atLeast: strictestOf(tightening)
  }
}

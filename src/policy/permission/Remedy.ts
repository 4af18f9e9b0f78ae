/**
 * What would make an asked call go without a question: the exact lines for sigil.toml, or what stands in their way.
 *
 * A rule is offered only when the decision itself says that it would allow the call, so nobody is sent to write one
 * that changes nothing.
 */
import { decide, type Decision } from "../Permission.ts"
import { ACTIVATION_TOOL, type Call, isShell } from "./Call.ts"
import { normaliseSpace } from "./CommandText.ts"
import type { Policy } from "./Policy.ts"

/** One `[[permission.rules]]` entry that allows. */
export interface AllowRule {
  readonly tool_name: string
  readonly subject_glob?: string
  readonly mode: "allow"
}

/** What to do about an ask. */
export interface Remedy {
  /** The entry that `always` may write; absent when no rule about the tool would allow the call. */
  readonly rule?: AllowRule
  /** Lines for sigil.toml, where there are any that would allow the call. */
  readonly toml?: string
  /** One or two complete sentences for people. */
  readonly text: string
}

const none: ReadonlySet<string> = new Set()

const allows = (policy: Policy, call: Call): boolean => decide(policy, call, none).decision === "allow"

const withRule = (policy: Policy, rule: AllowRule): Policy => ({
  ...policy,
  permission: {
    ...policy.permission,
    rules: [
      ...policy.permission.rules,
      {
        toolName: rule.tool_name,
        ...(rule.subject_glob === undefined ? {} : { subjectGlob: rule.subject_glob }),
        mode: rule.mode,
        line: 0
      }
    ]
  }
})

const ruleFor = (call: Call): AllowRule => {
  const [subject] = call.subjects
  return call.kind === "activation" && subject !== undefined
    ? { tool_name: ACTIVATION_TOOL, subject_glob: subject, mode: "allow" }
    : { tool_name: call.names.visibleName, mode: "allow" }
}

/** The entry as TOML; JSON strings are TOML strings. */
export const toToml = (rule: AllowRule): string =>
  ["[[permission.rules]]", ...Object.entries(rule).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)].join(
    "\n"
  )

const inTheWay = (call: Call, asked: Decision): string => {
  if (asked.facets.network === "ask")
    return 'The network policy asks, and no rule about tools answers it: set [web] network_mode = "allow" in sigil.toml.'
  const { by, kind, where } = asked.ground
  const place = where?.file === undefined ? "" : ` (${where.file}${where.line === undefined ? "" : `:${where.line}`})`
  if (kind === "list") return `No rule in sigil.toml is stronger than ${by}${place}: remove it there.`
  if (kind === "external_directory") return `Add a rule for the path to [permission.external_directory] in sigil.toml.`
  const { mcp, rivals } = call.names
  if (mcp !== undefined && rivals.length > 0)
    return `No rule can name this tool alone, because another declared server has a name that reads like '${mcp.server}': rename one of the two.`
  return `It is asked by ${by}${place}, and no rule about the tool answers that.`
}

/** What to do about a call that is asked for. */
export const remedyOf = (policy: Policy, call: Call, asked: Decision): Remedy => {
  if (isShell(call)) {
    const pattern = normaliseSpace(call.command ?? "")
    const { commands } = policy.permission
    const more = { ...policy.permission, commands: { ...commands, allow: [...commands.allow, pattern] } }
    if (pattern !== "" && !pattern.includes("*") && allows({ ...policy, permission: more }, call)) {
      const toml = `[permission.commands]\nallow = [${JSON.stringify(pattern)}]`
      return { toml, text: `Add this command to sigil.toml:\n${toml}` }
    }
    return { text: inTheWay(call, asked) }
  }
  const rule = ruleFor(call)
  if (!allows(withRule(policy, rule), call)) return { text: inTheWay(call, asked) }
  const toml = toToml(rule)
  return { rule, toml, text: `Add this rule to sigil.toml:\n${toml}` }
}

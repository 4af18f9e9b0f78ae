/**
 * May this MCP call be made: a pure decision over three facets (spec section 8, R sections 1.8 and 6).
 *
 * local, network and source each give a verdict; the strictest counts. A rule of the user replaces the source
 * facet only, so it never widens the network policy. Annotations come from the server and may only tighten.
 */
import type { Decision as Mode, PermissionMode, PermissionRule } from "../config/PermissionSettings.ts"

/** What is decided about. */
export interface Input {
  readonly mode: PermissionMode
  /** `[permission.tools]`, by exact visible name. */
  readonly tools: { readonly [visibleName: string]: Mode }
  /** `[[permission.rules]]` in file order; the last match wins. */
  readonly rules: ReadonlyArray<PermissionRule>
  /** The server's own default. */
  readonly approvalDefault: Mode
  readonly trustClass: string
  /** Exact names. */
  readonly server: string
  readonly tool: string
  /** The parts of the visible name before any suffix. */
  readonly serverPart: string
  readonly toolPart: string
  readonly visibleName: string
  /** The server says that the tool destroys; absent counts as false. */
  readonly destructiveHint: boolean
  readonly networkMode: Mode
  /** Keys of `grantKey` that the user allowed for this session. */
  readonly sessionGrants: ReadonlySet<string>
  /** Tool calls have an unknown network effect; resources and prompts read. */
  readonly operation: "tool" | "resource" | "prompt"
}

/** The decision with what led to it. */
export interface Decision {
  readonly decision: Mode
  readonly facets: { readonly local: Mode; readonly network: Mode; readonly source: Mode }
  /** The rule or default that decided, for people. */
  readonly decidedBy: string
}

/** Key of one exact tool in the session grants. */
export const grantKey = (server: string, tool: string): string => `${server}\0${tool}`

const order: { readonly [mode in Mode]: number } = { allow: 0, ask: 1, deny: 2 }
const strictest = (modes: ReadonlyArray<Mode>): Mode =>
  modes.reduce((worst, mode) => (order[mode] > order[worst] ? mode : worst), "allow" as Mode)

/** `*` is any run of characters, `?` one; everything else is itself. Linear: two pointers, no backtracking blow-up. */
export const glob = (pattern: string, text: string): boolean => {
  let p = 0
  let t = 0
  let star = -1
  let resume = 0
  while (t < text.length) {
    if (p < pattern.length && pattern[p] === "*") {
      star = p++
      resume = t
    } else if (p < pattern.length && (pattern[p] === "?" || pattern[p] === text[t])) {
      p += 1
      t += 1
    } else if (star >= 0) {
      p = star + 1
      t = ++resume
    } else return false
  }
  while (pattern[p] === "*") p += 1
  return p === pattern.length
}

const PREFIX = "mcp__"

/**
 * Whether a tool pattern names this tool. `mcp__S__T` matches in two parts and `*` never crosses from one to the
 * other; `mcp__S` is the whole server. The parts of a name may themselves hold `__`: a pattern that may forbid
 * is read in every way, one that allows only with the shortest server part, so that no tool of one server can
 * borrow a permission of another by its name.
 */
const namesTool = (pattern: string, mode: Mode, input: Input): boolean => {
  if (pattern === input.visibleName) return true
  const allows = mode === "allow"
  if (!pattern.startsWith(PREFIX)) return glob(pattern, input.visibleName) && !(allows && pattern.includes("__"))
  const body = pattern.slice(PREFIX.length)
  const whole = body.includes("__") ? !allows && body === input.serverPart : glob(body, input.serverPart)
  if (whole) return true
  for (let at = body.indexOf("__"); at >= 0; at = body.indexOf("__", at + 1)) {
    if (glob(body.slice(0, at), input.serverPart) && glob(body.slice(at + 2), input.toolPart)) return true
    if (allows) return false
  }
  return false
}

const namesSubject = (pattern: string, mode: Mode, input: Input): boolean =>
  glob(pattern, `mcp_trust_class:${input.trustClass}`) || namesTool(pattern, mode, input)

const matches = (rule: PermissionRule, input: Input): boolean =>
  (rule.toolName === undefined || namesTool(rule.toolName, rule.mode, input)) &&
  (rule.subjectGlob === undefined || namesSubject(rule.subjectGlob, rule.mode, input))

interface Source {
  readonly mode: Mode
  readonly by: string
}

/** What the user or the server's entry says: rules, then tools, then the default. */
const sourceOf = (input: Input): Source => {
  const rule = input.rules.findLast((candidate) => matches(candidate, input))
  if (rule !== undefined) {
    const about = rule.toolName ?? rule.subjectGlob ?? "every tool"
    return { mode: rule.mode, by: `the rule for '${about}' in line ${rule.line} of sigil.toml` }
  }
  const named = Object.hasOwn(input.tools, input.visibleName) ? input.tools[input.visibleName] : undefined
  if (named !== undefined) return { mode: named, by: `permission.tools.${input.visibleName}` }
  if (input.destructiveHint && input.approvalDefault === "allow") {
    return { mode: "ask", by: "the server's destructiveHint" }
  }
  return {
    mode: input.approvalDefault,
    by: `approval_default = "${input.approvalDefault}" of server '${input.server}'`
  }
}

const networkOf = (input: Input): Source => {
  const reads = input.operation !== "tool"
  if (!reads && input.mode === "read-only")
    return { mode: "deny", by: 'permission.mode = "read-only" (the tool\'s network effect is unknown)' }
  return { mode: input.networkMode, by: `web.network_mode = "${input.networkMode}"` }
}

/** Decides. */
export const decide = (input: Input): Decision => {
  const wanted = sourceOf(input)
  const granted = wanted.mode === "ask" && input.sessionGrants.has(grantKey(input.server, input.tool))
  const source: Source = granted ? { mode: "allow", by: "a grant of this session" } : wanted
  const network = networkOf(input)
  // A call of an MCP surface reads locally, which every mode allows.
  const local: Mode = "allow"
  const decision = strictest([local, network.mode, source.mode])
  return {
    decision,
    facets: { local, network: network.mode, source: source.mode },
    decidedBy: source.mode === decision ? source.by : network.by
  }
}

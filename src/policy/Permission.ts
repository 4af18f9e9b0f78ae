/**
 * May this call be made: a pure decision over three facets (spec section 8, R sections 1.8 and 6).
 *
 * local, network and source each give a verdict; the strictest counts. sigil.toml and settings.json give one explicit
 * verdict each, and the stricter of the two stands in the place of the defaults: of the source's own, and of the
 * mode's ask about local access, which asks because nobody has said anything. It never reaches the network facet,
 * a cap, a command pattern or a path outside the workspace. What sigil.toml asks or denies in another spelling of the
 * name makes the source facet at least that strict, and does nothing else.
 *
 * Invariants: a deny anywhere denies; annotations, caps and command denies only tighten; a session grant and
 * `danger-full-access` turn asks into allow and nothing else, the grant never a network ask.
 */
import type { Access, Call, NetworkEffect } from "./permission/Call.ts"
import { isShell } from "./permission/Call.ts"
import { commandGround } from "./permission/Commands.ts"
import { externalGround } from "./permission/ExternalDirectory.ts"
import { type Ground, isStricter, strictest, type Verdict } from "./permission/Ground.ts"
import { localBaseline, modeGround, modeOf, networkFacet } from "./permission/Modes.ts"
import type { Policy } from "./permission/Policy.ts"
import { listVerdict } from "./permission/SettingsLists.ts"
import { tomlVerdict } from "./permission/TomlRules.ts"

export { type Call, grantKey, mcpActivation, mcpCall } from "./permission/Call.ts"
export type { Ground, Verdict } from "./permission/Ground.ts"
export { type Caps, defaultPolicy, type Policy } from "./permission/Policy.ts"

/** The names of the facets. */
export const facetNames = ["local", "network", "source"] as const
/** One of them. */
export type Facet = (typeof facetNames)[number]

/** The decision with what led to it. */
export interface Decision {
  /** What was decided about. */
  readonly effects: { readonly access: Access; readonly network: NetworkEffect }
  readonly decision: Verdict
  readonly facets: { readonly [facet in Facet]: Verdict }
  /** The same facets, each with what decided it. */
  readonly grounds: { readonly [facet in Facet]: Ground }
  /** What decided in the end. */
  readonly ground: Ground
  /** `ground.by`: the rule or default that decided, for people. */
  readonly decidedBy: string
  /** Whether a grant for the session would answer every ask of this decision. */
  readonly grantable: boolean
  /** A rule could not be evaluated, so the call is denied. */
  readonly error?: "subject_missing"
}

/** The explicit verdict: the stricter of both files; sigil.toml is named where they agree. */
const explicitOf = (toml: Ground | undefined, lists: Ground | undefined): Ground | undefined => {
  if (toml === undefined || lists === undefined) return toml ?? lists
  return isStricter(lists.verdict, toml.verdict) ? lists : toml
}

const sourceFacet = (call: Call, explicit: Ground | undefined): Ground => {
  if (explicit !== undefined) return explicit
  if (call.destructive && call.source.verdict === "allow")
    return { verdict: "ask", kind: "annotation", by: "the server's destructiveHint" }
  return { kind: "default", ...call.source }
}

/** Who has named the tool, or its command, has answered the mode's ask; the mode's deny is nobody's to answer. */
const localFacet = (baseline: Ground, explicit: Ground | undefined, command: Ground | undefined): Ground => {
  if (command !== undefined && command.verdict !== "allow") return strictest(command, baseline)
  if (baseline.verdict !== "ask") return baseline
  if (explicit?.verdict === "allow") return explicit
  return command ?? baseline
}

/** The facet that counts; where several do, the one that a rule reaches most easily is named. */
const inOrder = ({ local, network, source }: Decision["grounds"]): Ground => strictest(source, local, network)

const decisionOf = (
  { access, network }: Call,
  grounds: Decision["grounds"],
  grantable: boolean,
  error?: Decision["error"]
): Decision => {
  const ground = inOrder(grounds)
  return {
    effects: { access, network },
    decision: ground.verdict,
    facets: { local: grounds.local.verdict, network: grounds.network.verdict, source: grounds.source.verdict },
    grounds,
    ground,
    decidedBy: ground.by,
    grantable,
    ...(error === undefined ? {} : { error })
  }
}

/** `danger-full-access` asks nothing. */
const unasked = (policy: Policy, ground: Ground): Ground =>
  ground.verdict === "ask" && modeOf(policy) === "danger-full-access"
    ? modeGround(policy, "allow", `it answers the ask of ${ground.by}`)
    : ground

/** Decides; `grants` are keys of `grantKey`. */
export const decide = (policy: Policy, call: Call, grants: ReadonlySet<string>): Decision => {
  const toml = tomlVerdict(policy, call)
  const network = unasked(policy, networkFacet(policy, call))
  const baseline = localBaseline(policy, call)
  if (toml._tag === "SubjectMissing")
    return decisionOf(call, { local: baseline, network, source: toml.ground }, false, "subject_missing")
  const explicit = explicitOf(toml.ground, listVerdict(policy, call))
  const source = unasked(policy, strictest(sourceFacet(call, explicit), toml.atLeast))
  const local = unasked(policy, localFacet(baseline, explicit, commandGround(policy, call)))
  const outside = externalGround(policy, call)
  const external = outside === undefined ? undefined : unasked(policy, outside)

  // One yes for a shell would be a yes for every command, and one path outside says nothing of the next.
  const key = isShell(call) ? undefined : call.grantKey
  const answered = (ground: Ground): Ground =>
    ground.verdict === "ask" && key !== undefined && grants.has(key)
      ? { verdict: "allow", kind: "session_grant", by: "a grant of this session" }
      : ground
  const grounds = { local: strictest(answered(local), external), network, source: answered(source) }
  const outOfReach = network.verdict === "ask" || external?.verdict === "ask"
  return decisionOf(call, grounds, key !== undefined && inOrder(grounds).verdict === "ask" && !outOfReach)
}

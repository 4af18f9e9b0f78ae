/**
 * Why a facet of a decision is what it is: the verdict, what gave it, and where that is written.
 *
 * `--explain`, refusals and the audit log tell the same story from this one value.
 */
import type { Where } from "../../base/Failure.ts"
import type { Decision } from "../../config/PermissionSettings.ts"

/** A verdict of permission. */
export type Verdict = Decision

/** What kind of thing decided; stable words for records. */
export type GroundKind =
  | "mode"
  | "plan"
  | "effect"
  | "network_mode"
  | "default"
  | "annotation"
  | "tools"
  | "rule"
  | "list"
  | "allowed_tools"
  | "commands"
  | "external_directory"
  | "session_grant"

/** One verdict with its reason. */
export interface Ground {
  readonly verdict: Verdict
  readonly kind: GroundKind
  /** For people: which rule, default or mode. */
  readonly by: string
  readonly where?: Where
}

const order: { readonly [verdict in Verdict]: number } = { allow: 0, ask: 1, deny: 2 }

/** Whether `a` is stricter than `b`. */
export const isStricter = (a: Verdict, b: Verdict): boolean => order[a] > order[b]

/** The strictest; of equals the first. */
export const strictest = (first: Ground, ...others: ReadonlyArray<Ground | undefined>): Ground => {
  let worst = first
  for (const ground of others) if (ground !== undefined && isStricter(ground.verdict, worst.verdict)) worst = ground
  return worst
}

/** The strictest of what is there; `undefined` when nothing is. */
export const strictestOf = (grounds: ReadonlyArray<Ground | undefined>): Ground | undefined => {
  const [first, ...others] = grounds.filter((ground) => ground !== undefined)
  return first === undefined ? undefined : strictest(first, ...others)
}

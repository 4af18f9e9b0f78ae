/** Whoever makes a call: identity, who answers for it, where its progress goes. */
import * as Effect from "effect/Effect"
import type { Caps } from "../policy/Permission.ts"
import type { Elicitor } from "../server/Elicitor.ts"
import type { Progress } from "../server/Progress.ts"
import type { Approver } from "./Approver.ts"

/** One caller. */
export interface Caller {
  /** Who it is, for records: `cli`, `agent`, `gateway:<session>`. */
  readonly identity: string
  readonly approver: Approver
  /**
   * `yes` answers the local and source asks of this one call; never a deny and never a network ask
   * (spec section 1).
   */
  readonly yes: boolean
  /** Exact tool names that are allowed for this caller's run, as `--allowed-tools` gives them. */
  readonly allowedTools?: ReadonlyArray<string>
  /** Bounds of this caller's run that no rule widens, such as read-only planning. */
  readonly caps?: Caps
  readonly onProgress?: (progress: Progress) => void
  /** Answers forms of servers; absent: nobody can. */
  readonly elicitor?: Elicitor
}

/** Nobody can be asked. */
export const nobody: Approver = { ask: () => Effect.succeed("unavailable") }

/** A caller without a person behind it. */
export const headless = (identity: string): Caller => ({ identity, approver: nobody, yes: false })

/**
 * The network policy of the run at the spawn boundary (R section 6.6): pure.
 *
 * A process can always reach the network, so its effect is unknown. `ask` needs somebody's yes for this very
 * start, and `deny` needs a sandbox that proves isolation; this build has none, so it refuses.
 */

/** May the process start? */
export type SpawnVerdict =
  | { readonly _tag: "Spawn" }
  | {
      readonly _tag: "Refuse"
      readonly reason: "network_approval_required" | "network_isolation_unavailable"
      readonly why: string
    }

/** Decides for one start. */
export const atSpawn = (mode: "allow" | "ask" | "deny", approved: boolean): SpawnVerdict => {
  if (mode === "allow" || (mode === "ask" && approved)) return { _tag: "Spawn" }
  return mode === "ask"
    ? {
        _tag: "Refuse",
        reason: "network_approval_required",
        why: "a process may reach the network, and nobody approved that for this start."
      }
    : {
        _tag: "Refuse",
        reason: "network_isolation_unavailable",
        why: "a process may reach the network, and no sandbox that proves otherwise is available."
      }
}

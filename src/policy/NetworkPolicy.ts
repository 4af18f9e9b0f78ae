/**
 * The network policy of the run where a process is spawned or a remote server dialled (R sections 6.6, 8.10): pure.
 *
 * A process can always reach the network, so its effect is unknown, unless it runs in a sandbox that proved before the
 * spawn that there is none. `ask` needs somebody's yes for this very start, with a sandbox too: what is asked for is
 * the start, not a request. `deny` needs the proof for the network and for the process tree, because a process that
 * leaves the tree leaves its network as well.
 */

/** What confines the process, as far as is known before it exists. */
export type Confinement =
  /** Nothing: it runs as any process of the user. */
  | { readonly _tag: "Local" }
  /** A sandbox is asked for and cannot be had. */
  | { readonly _tag: "Unavailable"; readonly why: string; readonly fix: string | undefined }
  | {
      readonly _tag: "Sandbox"
      /** What the planned launch gives. */
      readonly network: "denied" | "shared"
      /** Proved by running the sandbox before. */
      readonly networkProven: boolean
      readonly processTreeProven: boolean
    }

/** What a process can do to the network. */
export type NetworkEffect = "unknown" | "none"

/** May the process start? */
export type SpawnVerdict =
  | { readonly _tag: "Spawn"; readonly effect: NetworkEffect }
  | {
      readonly _tag: "Refuse"
      readonly reason:
        | "network_approval_required"
        | "network_isolation_unavailable"
        | "process_isolation_unavailable"
        | "backend_receipt_invalid"
      readonly why: string
      readonly fix: string
    }

/** May a remote server be dialled? */
export type DialVerdict =
  | { readonly _tag: "Dial" }
  | {
      readonly _tag: "Refuse"
      readonly reason: "network_denied" | "network_approval_required"
      readonly why: string
      readonly fix: string
    }

const wayOut = 'Or set [web] network_mode = "allow".'
const useSandbox = `Install bubblewrap and set strategy = "sandbox" in [execution] of sigil.toml (Linux). ${wayOut}`

/** What a process in this confinement can do to the network. */
export const effectOf = (confinement: Confinement): NetworkEffect =>
  confinement._tag === "Sandbox" &&
  confinement.network === "denied" &&
  confinement.networkProven &&
  confinement.processTreeProven
    ? "none"
    : "unknown"

/** What keeps a process away from `deny`, first thing first. */
const lackOf = (confinement: Confinement): Extract<SpawnVerdict, { readonly _tag: "Refuse" }> => {
  const refuse = (
    reason: "network_isolation_unavailable" | "process_isolation_unavailable" | "backend_receipt_invalid",
    why: string,
    fix: string
  ) => ({ _tag: "Refuse", reason, why, fix }) as const
  if (confinement._tag === "Local")
    return refuse(
      "network_isolation_unavailable",
      "a process may reach the network, and it would run outside of any sandbox.",
      useSandbox
    )
  if (confinement._tag === "Unavailable")
    return refuse(
      "network_isolation_unavailable",
      `a process may reach the network, and the sandbox that would prove otherwise is not to be had: ${confinement.why}`,
      confinement.fix === undefined ? useSandbox : `${confinement.fix} ${wayOut}`
    )
  if (confinement.network === "shared")
    return refuse(
      "backend_receipt_invalid",
      "the sandbox is configured to share the network.",
      `Remove network = "shared" from [execution] in sigil.toml. ${wayOut}`
    )
  return confinement.networkProven
    ? refuse(
        "process_isolation_unavailable",
        "the sandbox did not prove that no process leaves it or outlives it.",
        `Update bubblewrap. ${wayOut}`
      )
    : refuse(
        "network_isolation_unavailable",
        "the sandbox did not prove that it has no network.",
        `Update bubblewrap. ${wayOut}`
      )
}

/**
 * Decides for one dial to a remote server (R section 8.10): the network is all that it is, so `deny` has no exception
 * and `ask` needs somebody's yes.
 */
export const atDial = (mode: "allow" | "ask" | "deny", approved: boolean): DialVerdict => {
  if (mode === "deny")
    return {
      _tag: "Refuse",
      reason: "network_denied",
      why: "it can be reached over the network only.",
      fix: 'Set [web] network_mode = "allow" in sigil.toml.'
    }
  if (mode === "ask" && !approved)
    return {
      _tag: "Refuse",
      reason: "network_approval_required",
      why: "it is reached over the network, and nobody approved that for this start.",
      fix: 'Set [web] network_mode = "allow" in sigil.toml.'
    }
  return { _tag: "Dial" }
}

/** Decides for one start. */
export const atSpawn = (mode: "allow" | "ask" | "deny", approved: boolean, confinement: Confinement): SpawnVerdict => {
  const effect = effectOf(confinement)
  if (mode === "ask" && !approved)
    return {
      _tag: "Refuse",
      reason: "network_approval_required",
      why: "a process may reach the network, and nobody approved that for this start.",
      fix: 'Set [web] network_mode = "allow" in sigil.toml, or "deny" together with a sandbox.'
    }
  return mode === "deny" && effect !== "none" ? lackOf(confinement) : { _tag: "Spawn", effect }
}

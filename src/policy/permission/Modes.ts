/**
 * What the mode of the run says about local access and the network (R section 1.8).
 *
 * `read-only` denies writing and executing, and that deny is a cap. The asks of the other modes are defaults:
 * whoever names a tool in a rule has answered them. `danger-full-access` asks nothing, and denies what is denied.
 */
import type { PermissionMode } from "../../config/PermissionSettings.ts"
import { type Call, isShell } from "./Call.ts"
import type { Ground } from "./Ground.ts"
import type { Policy } from "./Policy.ts"

const widths: { readonly [mode in PermissionMode]: number } = {
  "read-only": 0,
  manual: 1,
  "auto-edit": 2,
  "danger-full-access": 3
}

/** The mode that holds: the settings', at most the cap's. */
export const modeOf = ({ caps, permission }: Policy): PermissionMode =>
  caps.mode !== undefined && widths[caps.mode] < widths[permission.mode] ? caps.mode : permission.mode

/** The mode as the reason of a verdict. */
export const modeGround = (policy: Policy, verdict: Ground["verdict"], about: string): Ground => {
  const mode = modeOf(policy)
  if (mode !== policy.permission.mode) return { verdict, kind: "mode", by: `the cap "${mode}" of this run (${about})` }
  const where = policy.permission.places["mode"]
  return {
    verdict,
    kind: "mode",
    by: `permission.mode = "${mode}" (${about})`,
    ...(where === undefined ? {} : { where })
  }
}

/** A plan that was approved covers edits of the workspace: no shell, no network, no MCP, no sub-agent. */
const coveredByPlan = (call: Call): boolean =>
  call.kind === "builtin" &&
  call.access === "write" &&
  call.network === "none" &&
  call.workspaceEdit === true &&
  !isShell(call)

/** The mode's own verdict on local access. */
export const localBaseline = (policy: Policy, call: Call): Ground => {
  const mode = modeOf(policy)
  const about = `local ${call.access}`
  if (call.access === "read" || mode === "danger-full-access") return modeGround(policy, "allow", about)
  if (mode === "read-only") return modeGround(policy, "deny", about)
  if (mode === "auto-edit" && call.access === "write" && call.workspaceEdit === true)
    return modeGround(policy, "allow", "an edit inside the workspace")
  if (policy.caps.planApproved === true && coveredByPlan(call))
    return { verdict: "allow", kind: "plan", by: "the approved plan" }
  return modeGround(policy, "ask", about)
}

/** The network facet; no rule about tools reaches it. */
export const networkFacet = (policy: Policy, call: Call): Ground => {
  if (call.network === "none") return { verdict: "allow", kind: "effect", by: "it has no effect on the network" }
  if (call.network !== "read" && modeOf(policy) === "read-only")
    return modeGround(policy, "deny", `its network effect is ${call.network}`)
  if (call.isolated === true) {
    return { verdict: "allow", kind: "effect", by: "the sandbox of the server, which has no network" }
  }
  return {
    verdict: policy.networkMode,
    kind: "network_mode",
    by: `web.network_mode = "${policy.networkMode}"`,
    ...(policy.networkWhere === undefined ? {} : { where: policy.networkWhere })
  }
}

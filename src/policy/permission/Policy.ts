/** What decides about calls: the user's settings, the lists of this run, and the caps it runs under. */
import type { Where } from "../../base/Failure.ts"
import { type PermissionLists, noLists } from "../../config/PermissionLists.ts"
import { defaultPermission, type PermissionMode, type PermissionSettings } from "../../config/PermissionSettings.ts"
import type { Verdict } from "./Ground.ts"

/** Bounds that no rule widens (R sections 1.8 and 6.7). */
export interface Caps {
  /** At most this mode, whatever the settings say: a plan run is `read-only`. */
  readonly mode?: PermissionMode
  /** The plan was approved: edits inside the workspace need no further yes, everything else does. */
  readonly planApproved?: boolean
}

/** The policy of a run. */
export interface Policy {
  readonly permission: PermissionSettings
  readonly networkMode: Verdict
  readonly networkWhere?: Where
  /** `permissions` and `allowedTools` of settings.json. */
  readonly lists: PermissionLists
  /** `--allowed-tools` of this run: exact names. */
  readonly allowedTools: ReadonlyArray<string>
  readonly caps: Caps
}

/** What holds without any settings. */
export const defaultPolicy: Policy = {
  permission: defaultPermission,
  networkMode: "allow",
  lists: noLists,
  allowedTools: [],
  caps: {}
}

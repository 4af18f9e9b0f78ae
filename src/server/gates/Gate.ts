/**
 * What every gate of admission shares: the state that the gates fill one after the other, and how one refuses.
 *
 * A gate answers with one line that says why it let the server pass, or fails with a typed refusal. It starts nothing
 * and leaves nothing behind. The order is in `Admission.ts`.
 */
import * as Effect from "effect/Effect"
import * as path from "node:path"
import type { Where } from "../../base/Failure.ts"
import type { ConfigError } from "../../config/ConfigError.ts"
import type { ConfigSnapshot } from "../../config/Configuration.ts"
import type { ExpandedEndpoint } from "../../config/Expansion.ts"
import type { Entry, ServerDeclaration, StdioEndpoint } from "../../config/ServerDeclaration.ts"
import type { Receipt } from "../../platform/Sandbox.ts"
import type { Plan, RemotePlan } from "../../transport/Transport.ts"
import type { ChildEnvironment } from "../ChildEnvironment.ts"
import type { ProcessCoverage } from "../ProcessCoverage.ts"
import type { AdmissionError } from "../ServerError.ts"

/** The gates in order. */
export const gateNames = [
  "declaration",
  "company_limit",
  "scope_rules",
  "expansion",
  "mcp_policy",
  "approval",
  "enabled",
  "network",
  "grants",
  "executable",
  "pin_and_lock",
  "credential"
] as const
/** One gate. */
export type GateName = (typeof gateNames)[number]

/** Why admission refused. */
export type Refusal = AdmissionError | ConfigError

/** What the caller of admission knows about this run. */
export interface RunFacts {
  readonly snapshot: ConfigSnapshot
  /** Whether somebody said yes to a network ask for this very start. */
  readonly networkApproved: boolean
  /** The start is to find out what to pin, so pins are not compared (`sigil mcp pin`). */
  readonly observePin?: boolean
}

/** What the gates have found out so far. */
export interface State {
  readonly entry: Entry
  readonly facts: RunFacts
  declaration?: ServerDeclaration
  expanded?: ExpandedEndpoint
  /** What the server gets of the host's environment; for a remote one its `variables` are empty. */
  environment?: ChildEnvironment
  /** Headers of a remote server. */
  headers?: RemotePlan["headers"]
  cwd?: string
  /** What the system says to the sandbox; absent where the settings ask for none. */
  sandbox?: Receipt
  plan?: Plan
  /** Made where a pin needs it (R section 3.4). */
  launchFingerprint?: string
  coverage?: ProcessCoverage
}

/** One gate: the line that says why it passed, or a refusal. */
export type Gate = (state: State) => Effect.Effect<string, Refusal>

/** Where a refusal belongs: the entry, and the field if there is one. */
export const located = (declaration: ServerDeclaration, operation: GateName, field?: string): Where => ({
  ...declaration.source,
  server: declaration.name,
  operation,
  ...(field === undefined ? {} : { field })
})

/** Later gates run only after the earlier ones filled the state. */
export const known = <A>(value: A | undefined, gate: GateName): Effect.Effect<A> =>
  value === undefined
    ? Effect.dieMessage(`admission gate ${gate} ran before the gates it builds on`)
    : Effect.succeed(value)

/**
 * A written `cwd` counts from the declaring file; otherwise a server runs in the workspace (R section 3.8). A project
 * entry always runs beside its own file: an approval is shared by all directories of a repository, so where sigil was
 * started must not decide which script a relative command names. For the same reason an imported one runs in the
 * project that it was imported for, and a plugin's runs in the plugin's own directory (R section 1.10).
 */
export const workingDirectory = (
  declaration: ServerDeclaration,
  endpoint: StdioEndpoint,
  snapshot: ConfigSnapshot
): string => {
  const { plugin, scope, source } = declaration
  if (plugin !== undefined) return path.resolve(plugin.root, endpoint.cwd ?? ".")
  if (endpoint.cwd === undefined && scope === "imported") return snapshot.projectIdentity
  if (endpoint.cwd === undefined && scope !== "project") return snapshot.workspace
  return path.resolve(
    path.isAbsolute(source.file) ? path.dirname(source.file) : snapshot.workspace,
    endpoint.cwd ?? "."
  )
}

/**
 * The gates between a declaration and a process or a socket, in the order of spec section 3.
 *
 * Each gate is one function with a typed refusal. `admit` runs them until one refuses; `explain` runs the same
 * list and reports each verdict. Nothing here starts a server (asking whether the system has PID namespaces or a
 * sandbox runs `unshare` or `bwrap` once, where one is wanted), and a refusal leaves nothing behind. They run again
 * for every generation. No other code may build a plan.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import type { Where } from "../base/Failure.ts"
import { environmentFingerprint } from "../config/Fingerprint.ts"
import type { Entry, ServerDeclaration } from "../config/ServerDeclaration.ts"
import { type ConfigSnapshot } from "../config/Configuration.ts"
import { Locations } from "../config/Locations.ts"
import { HostEnvironment } from "../platform/HostEnvironment.ts"
import { PidNamespace } from "../platform/PidNamespace.ts"
import { type Receipt, Sandboxes } from "../platform/Sandbox.ts"
import { ApprovalStore } from "../policy/ApprovalStore.ts"
import * as ProjectApproval from "../policy/ProjectApproval.ts"
import { Secrets } from "../policy/Secrets.ts"
import { Toggles } from "../policy/Toggles.ts"
import type { Plan } from "../transport/Transport.ts"
import { secretsOf } from "./ChildEnvironment.ts"
import { ClientFeatures, type Features } from "./ClientFeatures.ts"
import { hideInRefusal } from "./gates/HideInRefusal.ts"
import { approval, decisionOf, stored } from "./gates/Approval.ts"
import { type Confine, makeConfine } from "./gates/Confine.ts"
import { credential } from "./gates/Credential.ts"
import { companyLimit } from "./gates/CompanyLimit.ts"
import { declaration } from "./gates/Declaration.ts"
import { enabled } from "./gates/Enabled.ts"
import { executable } from "./gates/Executable.ts"
import { expansion } from "./gates/Expansion.ts"
import { type Gate, type GateName, known, type Refusal, type RunFacts, type State } from "./gates/Gate.ts"
import { grants } from "./gates/Grants.ts"
import { mcpPolicy } from "./gates/McpPolicy.ts"
import { network } from "./gates/Network.ts"
import { pinAndLock } from "./gates/PinAndLock.ts"
import { scopeRules } from "./gates/ScopeRules.ts"
import { type LiveEnvironment, makeBinder } from "./LiveEnvironment.ts"
import type { ProcessCoverage } from "./ProcessCoverage.ts"

export { type GateName, gateNames, type Refusal, type RunFacts } from "./gates/Gate.ts"

/** A server that passed every gate: what to launch or dial, and what must never be shown. */
export interface Admitted {
  readonly declaration: ServerDeclaration
  readonly plan: Plan
  /** Root that the server works in and is told of. */
  readonly workspace: string
  /** Whether addresses may be shown for opening (`[mcp] elicitation_url`). */
  readonly urlMode: boolean
  /** Values that go into the redactor before there is a process or a socket. */
  readonly secrets: ReadonlyArray<string>
  readonly grants: ReadonlyArray<string>
  /** Fingerprint of the launch, where a pin needs it. */
  readonly launchFingerprint?: string
  /** Whether the identity has to be the pinned one. */
  readonly comparePin: boolean
  /** The variables that were passed on, in headers too, as they are now; asked before every message (spec section 7). */
  readonly environment: LiveEnvironment
  /** What confines the process; absent where none is started. */
  readonly coverage?: ProcessCoverage
  /**
   * Asks again, in the moment before the process exists, whether it is still approved: the start may have waited for
   * its turn meanwhile (R section 3.6).
   */
  readonly confirm: Effect.Effect<void, Refusal>
}

/** The verdict of one gate. */
export interface Verdict {
  readonly gate: GateName
  readonly verdict: "pass" | "refuse" | "not_reached"
  readonly why: string
  readonly where?: Where
  /** The refusal itself, on `refuse`. */
  readonly refusal?: Refusal
}

/** Decides who may start. */
export class Admission extends Context.Tag("sigil/server/Admission")<
  Admission,
  {
    /** Runs the gates; fails with the first refusal. */
    readonly admit: (entry: Entry, facts: RunFacts) => Effect.Effect<Admitted, Refusal>
    /** Runs the same gates and reports each verdict; starts nothing. */
    readonly explain: (entry: Entry, facts: RunFacts) => Effect.Effect<ReadonlyArray<Verdict>>
    /**
     * Makes the secrets that the entries name known, whether or not their servers start: no server may get what is
     * another one's. What nobody approved yet names nothing.
     */
    readonly know: (snapshot: ConfigSnapshot) => Effect.Effect<void>
    /** What the system says to the sandbox of the settings, in the workspace; `undefined` where none is asked for. */
    readonly sandbox: (snapshot: ConfigSnapshot) => Effect.Effect<Receipt | undefined>
  }
>() {}

/** The gates in their order. */
const makeGates = (
  host: Context.Tag.Service<typeof HostEnvironment>,
  secrets: Context.Tag.Service<typeof Secrets>,
  approvals: Context.Tag.Service<typeof ApprovalStore>,
  toggles: Context.Tag.Service<typeof Toggles>,
  pidNamespace: Context.Tag.Service<typeof PidNamespace>,
  confine: Confine,
  features: Features
): ReadonlyArray<readonly [GateName, Gate]> => [
  ["declaration", declaration],
  ["company_limit", companyLimit],
  ["scope_rules", scopeRules],
  ["expansion", expansion(host, secrets)],
  ["mcp_policy", mcpPolicy],
  ["approval", approval(approvals)],
  ["enabled", enabled(toggles)],
  ["network", network(confine)],
  ["grants", grants(host)],
  ["executable", executable(host, pidNamespace)],
  ["pin_and_lock", pinAndLock],
  ["credential", credential(features)]
]

/** What the gates ask. */
type Needs = HostEnvironment | Secrets | Locations | ApprovalStore | Toggles | PidNamespace | Sandboxes

/** Admission over the host's environment and the stored decisions. */
export const layer: Layer.Layer<Admission, never, Needs> = Layer.effect(
  Admission,
  Effect.gen(function* () {
    const host = yield* HostEnvironment
    const secrets = yield* Secrets
    const approvals = yield* ApprovalStore
    const bind = makeBinder(host)
    const confirm = approval(approvals)
    const confine = makeConfine(host, yield* Locations, yield* Sandboxes)
    const features = yield* ClientFeatures
    const gates = makeGates(host, secrets, approvals, yield* Toggles, yield* PidNamespace, confine, features)
    return {
      know: (snapshot) =>
        Effect.gen(function* () {
          let answers: ProjectApproval.Approvals | undefined
          for (const entry of snapshot.servers) {
            if (entry._tag === "Broken") continue
            const values = secretsOf(entry.declaration, host)
            if (values.length === 0) continue
            if (ProjectApproval.needsApproval(entry.declaration)) {
              answers ??= yield* stored(approvals)
              if (decisionOf(answers, entry.declaration, snapshot.projectIdentity)._tag !== "Approved") continue
            }
            yield* secrets.register(values)
          }
        }),
      sandbox: (snapshot) => confine(snapshot, snapshot.workspace),
      admit: (entry, facts) =>
        Effect.gen(function* () {
          const state: State = { entry, facts }
          for (const [, gate] of gates) yield* gate(state)
          const declaration = yield* known(state.declaration, "credential")
          const environment = yield* known(state.environment, "credential")
          const plan = yield* known(state.plan, "credential")
          const { workspace } = facts.snapshot
          const { grants } = environment
          const passed = [...grants, ...(state.expanded?.variableValues ?? []).map(({ name }) => name)]
          return {
            declaration,
            plan,
            workspace,
            urlMode: facts.snapshot.settings.mcp.elicitationUrl === true,
            secrets: environment.secrets,
            grants,
            comparePin: facts.observePin !== true,
            ...(state.launchFingerprint === undefined ? {} : { launchFingerprint: state.launchFingerprint }),
            environment: bind(passed, environmentFingerprint(grants)),
            ...(state.coverage === undefined ? {} : { coverage: state.coverage }),
            confirm: Effect.asVoid(confirm({ ...state }))
          }
        }).pipe(Effect.mapError((refusal) => hideInRefusal(secrets, refusal))),
      explain: (entry, facts) =>
        Effect.gen(function* () {
          const state: State = { entry, facts }
          const verdicts: Array<Verdict> = []
          let refused = false
          for (const [name, gate] of gates) {
            if (refused) {
              verdicts.push({ gate: name, verdict: "not_reached", why: "an earlier gate refused" })
              continue
            }
            const outcome = yield* Effect.either(gate(state))
            if (Either.isRight(outcome))
              verdicts.push({ gate: name, verdict: "pass", why: secrets.redactText(outcome.right) })
            else {
              refused = true
              const refusal = hideInRefusal(secrets, outcome.left)
              const where = refusal.where === undefined ? {} : { where: refusal.where }
              verdicts.push({ gate: name, verdict: "refuse", why: refusal.text, refusal, ...where })
            }
          }
          return verdicts
        })
    }
  })
)

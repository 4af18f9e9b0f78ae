/**
 * The gates between a declaration and a process, in the order of spec section 3.
 *
 * Each gate is one function with a typed refusal. `admit` runs them until one refuses; `explain` runs the same
 * list and reports each verdict. Nothing here starts a server (asking whether the system has PID namespaces runs
 * `unshare` once, for a server that wants one), and a refusal leaves nothing behind. They run again for every
 * generation. No other code may build a launch plan.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as path from "node:path"
import type { Where } from "../base/Failure.ts"
import type { ConfigError } from "../config/ConfigError.ts"
import type { ConfigSnapshot } from "../config/Configuration.ts"
import { expand, type ExpandedEndpoint } from "../config/Expansion.ts"
import { approvalFingerprint, environmentFingerprint } from "../config/Fingerprint.ts"
import { placeInProject } from "../config/ProjectIdentity.ts"
import {
  type Entry,
  inProcessCommand,
  type ServerDeclaration,
  type StdioEndpoint
} from "../config/ServerDeclaration.ts"
import { resolve } from "../platform/Executable.ts"
import { HostEnvironment } from "../platform/HostEnvironment.ts"
import { describe, type Launcher, PidNamespace } from "../platform/PidNamespace.ts"
import { ApprovalStore } from "../policy/ApprovalStore.ts"
import * as NetworkPolicy from "../policy/NetworkPolicy.ts"
import * as ProjectApproval from "../policy/ProjectApproval.ts"
import { emptyToggles, stateOf, Toggles } from "../policy/Toggles.ts"
import type { StdioPlan } from "../transport/Transport.ts"
import { build, type ChildEnvironment } from "./ChildEnvironment.ts"
import { type LiveEnvironment, makeBinder } from "./LiveEnvironment.ts"
import { AdmissionError } from "./ServerError.ts"

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

/** A server that passed every gate: what to launch, and what must never be shown. */
export interface Admitted {
  readonly declaration: ServerDeclaration
  readonly plan: StdioPlan
  /** Root that the server works in and is told of. */
  readonly workspace: string
  /** Values that go into the redactor before the process exists. */
  readonly secrets: ReadonlyArray<string>
  readonly grants: ReadonlyArray<string>
  /** The variables that were passed on, as they are now; asked before every message (spec section 7). */
  readonly environment: LiveEnvironment
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

/** Why admission refused. */
export type Refusal = AdmissionError | ConfigError

/** What the caller of admission knows about this run. */
export interface RunFacts {
  readonly snapshot: ConfigSnapshot
  /** Whether somebody said yes to a network ask for this very start. */
  readonly networkApproved: boolean
}

/** Decides who may start. */
export class Admission extends Context.Tag("sigil/server/Admission")<
  Admission,
  {
    /** Runs the gates; fails with the first refusal. */
    readonly admit: (entry: Entry, facts: RunFacts) => Effect.Effect<Admitted, Refusal>
    /** Runs the same gates and reports each verdict; starts nothing. */
    readonly explain: (entry: Entry, facts: RunFacts) => Effect.Effect<ReadonlyArray<Verdict>>
  }
>() {}

/** What the gates have found out so far. */
interface State {
  readonly entry: Entry
  readonly facts: RunFacts
  declaration?: ServerDeclaration
  expanded?: ExpandedEndpoint
  environment?: ChildEnvironment
  cwd?: string
  plan?: StdioPlan
}

type Gate = (state: State) => Effect.Effect<string, Refusal>

const located = (declaration: ServerDeclaration, operation: GateName, field?: string): Where => ({
  ...declaration.source,
  server: declaration.name,
  operation,
  ...(field === undefined ? {} : { field })
})

/** Later gates run only after the earlier ones filled the state. */
const known = <A>(value: A | undefined, gate: GateName): Effect.Effect<A> =>
  value === undefined
    ? Effect.dieMessage(`admission gate ${gate} ran before the gates it builds on`)
    : Effect.succeed(value)

const declarationGate: Gate = (state) =>
  Effect.gen(function* () {
    if (state.entry._tag === "Broken") return yield* state.entry.broken.error
    const { declaration } = state.entry
    state.declaration = declaration
    const lacking = declaration.unsupported[0]
    if (lacking === undefined) return `declared in scope ${declaration.scope}`
    return yield* new AdmissionError({
      code: "SIGIL_NOT_SUPPORTED",
      reason: "not_supported_yet",
      text: `The server '${declaration.name}' uses '${lacking.field}', which is not supported yet.`,
      where: located(declaration, "declaration", lacking.field)
    })
  })

const companyLimit: Gate = (state) =>
  Effect.gen(function* () {
    const declaration = yield* known(state.declaration, "company_limit")
    const safety = state.facts.snapshot.unsupportedSafety[0]
    if (safety === undefined) return "no company limit is set"
    return yield* new AdmissionError({
      code: "SIGIL_SAFETY_UNSUPPORTED",
      reason: "safety_setting_not_supported_yet",
      text:
        safety.why === undefined
          ? `'${safety.field}' in ${safety.source} is a safety setting that this version cannot enforce yet, so no server is started.`
          : `'${safety.field}' in ${safety.source} cannot be used (${safety.why}), so what it is to guard is unknown and no server is started.`,
      fix: safety.why === undefined ? undefined : "Correct the file; 'sigil doctor' names each place.",
      where: { file: safety.source, field: safety.field, server: declaration.name, operation: "company_limit" }
    })
  })

const scopeRules: Gate = (state) =>
  Effect.map(known(state.declaration, "scope_rules"), (declaration) =>
    declaration.warnings.length === 0
      ? `nothing that scope ${declaration.scope} may not ask for`
      : declaration.warnings.join("; ")
  )

/** Makes the gates over one environment and one set of stores. */
const makeGates = (
  host: Context.Tag.Service<typeof HostEnvironment>,
  approvals: Context.Tag.Service<typeof ApprovalStore>,
  toggles: Context.Tag.Service<typeof Toggles>,
  pidNamespace: Context.Tag.Service<typeof PidNamespace>
): ReadonlyArray<readonly [GateName, Gate]> => {
  const expansion: Gate = (state) =>
    Effect.gen(function* () {
      const declaration = yield* known(state.declaration, "expansion")
      const expanded = expand(declaration, host.get)
      if (Either.isLeft(expanded)) return yield* expanded.left
      state.expanded = expanded.right
      const count = expanded.right.variableValues.length
      return count === 0 ? "no variables are used" : `${count} variable(s) expanded`
    })

  const mcpPolicy: Gate = () => Effect.succeed("no mcpPolicy is set")

  const approval: Gate = (state) =>
    Effect.gen(function* () {
      const declaration = yield* known(state.declaration, "approval")
      if (!ProjectApproval.needsApproval(declaration.scope)) return `scope ${declaration.scope} needs no approval`
      const identity = state.facts.snapshot.projectIdentity
      const stored = yield* approvals.read.pipe(Effect.orElseSucceed(() => ProjectApproval.emptyApprovals))
      const decision = ProjectApproval.decide(stored, {
        identity,
        name: declaration.name,
        fingerprint: approvalFingerprint(declaration.raw),
        place: placeInProject(declaration.source.file),
        coverable: ProjectApproval.leftOutOfAll(declaration) === undefined
      })
      switch (decision._tag) {
        case "Approved":
          return decision.why
        case "Rejected":
          return yield* new AdmissionError({
            code: "SIGIL_REJECTED",
            reason: "rejected",
            text: `The server '${declaration.name}' was rejected for this project.`,
            fix: `Run 'sigil mcp approve ${declaration.name}' to change the decision.`,
            where: located(declaration, "approval")
          })
        case "Pending":
          return yield* new AdmissionError({
            code: "SIGIL_PENDING_APPROVAL",
            reason: decision.changed ? "changed_since_approval" : "never_decided",
            text: decision.changed
              ? `The server '${declaration.name}' changed since it was approved, so it is pending again.`
              : `The server '${declaration.name}' is declared by the project and has not been approved.`,
            fix: `Review it with 'sigil mcp pending ${declaration.name}', then run 'sigil mcp approve ${declaration.name}'.`,
            where: located(declaration, "approval")
          })
      }
    })

  const enabled: Gate = (state) =>
    Effect.gen(function* () {
      const declaration = yield* known(state.declaration, "enabled")
      const stored = yield* toggles
        .read(state.facts.snapshot.projectIdentity)
        .pipe(Effect.orElseSucceed(() => emptyToggles))
      const switched = stateOf(stored, declaration.name)
      const on = switched ?? declaration.enabled
      if (on) return "enabled"
      return yield* new AdmissionError({
        code: "SIGIL_DISABLED",
        reason: "disabled",
        text: `The server '${declaration.name}' is disabled${switched === false ? " for this project" : " in its entry"}.`,
        fix: `Run 'sigil mcp enable ${declaration.name}'.`,
        where: located(declaration, "enabled", "enabled")
      })
    })

  const network: Gate = (state) =>
    Effect.gen(function* () {
      const declaration = yield* known(state.declaration, "network")
      // The spawn boundary has nothing to say where nothing is spawned; its calls still meet the network facet.
      if (declaration.inProcess === true) return "it lives in this process, so nothing is started"
      const mode = state.facts.snapshot.settings.networkMode
      const verdict = NetworkPolicy.atSpawn(mode, state.facts.networkApproved)
      if (verdict._tag === "Spawn") return `network_mode is ${mode}`
      return yield* new AdmissionError({
        code: "SIGIL_NETWORK_REFUSED",
        reason: verdict.reason,
        text: `The network policy of this run is '${mode}', and the server '${declaration.name}' cannot be started under it: ${verdict.why}`,
        where: { ...located(declaration, "network"), field: "web.network_mode" }
      })
    })

  const grants: Gate = (state) =>
    Effect.gen(function* () {
      const declaration = yield* known(state.declaration, "grants")
      const expanded = yield* known(state.expanded, "grants")
      const endpoint = yield* stdioOnly(declaration, expanded)
      const built = build({ server: declaration.name, endpoint, variableValues: expanded.variableValues }, host)
      if (Either.isLeft(built)) {
        const error = built.left
        return yield* new AdmissionError({ ...error, where: { ...declaration.source, ...error.where } })
      }
      state.environment = built.right
      return built.right.grants.length === 0 ? "nothing is granted" : `granted: ${built.right.grants.join(", ")}`
    })

  const executable: Gate = (state) =>
    Effect.gen(function* () {
      const declaration = yield* known(state.declaration, "executable")
      const expanded = yield* known(state.expanded, "executable")
      const environment = yield* known(state.environment, "executable")
      const endpoint = yield* stdioOnly(declaration, expanded)
      const cwd = workingDirectory(declaration, endpoint, state.facts.snapshot)
      if (declaration.inProcess === true) {
        if (declaration.isolation === "pidns") {
          return yield* isolationUnavailable(declaration, "in_process", "It lives in this process.")
        }
        const label = inProcessCommand(declaration.name)
        state.plan = { _tag: "stdio", file: label, command: label, args: [], cwd, env: {}, graceMs: 0 }
        return "it lives in this process"
      }
      const file = yield* resolve({
        command: endpoint.command,
        cwd,
        searchPath: environment.variables["PATH"] ?? "",
        platform: host.platform,
        ...(environment.variables["PATHEXT"] === undefined ? {} : { pathExtensions: environment.variables["PATHEXT"] })
      }).pipe(
        Effect.mapError(
          (error) =>
            new AdmissionError({
              code: error.code,
              reason: error.reason,
              text: `The server '${declaration.name}' cannot be started: ${error.text}`,
              fix:
                error.fix ?? `Install '${endpoint.command}', or declare '${declaration.name}' with an absolute path.`,
              where: located(declaration, "executable", "command")
            })
        )
      )
      const launcher = declaration.isolation === "pidns" ? yield* launcherFor(declaration, pidNamespace) : undefined
      state.plan = {
        _tag: "stdio",
        file,
        command: endpoint.command,
        args: endpoint.args,
        cwd,
        env: environment.variables,
        graceMs: declaration.shutdownGraceMs,
        ...(launcher === undefined ? {} : { launcher })
      }
      return launcher === undefined ? file : `${file}, ${describe(launcher)}`
    })

  return [
    ["declaration", declarationGate],
    ["company_limit", companyLimit],
    ["scope_rules", scopeRules],
    ["expansion", expansion],
    ["mcp_policy", mcpPolicy],
    ["approval", approval],
    ["enabled", enabled],
    ["network", network],
    ["grants", grants],
    ["executable", executable],
    ["pin_and_lock", () => Effect.succeed("no pin and no lock file")],
    ["credential", () => Effect.succeed("no credential is needed")]
  ]
}

const isolationUnavailable = (declaration: ServerDeclaration, reason: string, why: string, fix?: string) =>
  new AdmissionError({
    code: "SIGIL_ISOLATION_UNAVAILABLE",
    reason,
    text: `The server '${declaration.name}' asks for isolation = "pidns", which it cannot have: ${why}`,
    fix: `${fix === undefined ? "Set" : `${fix} Or set`} isolation = "none" for '${declaration.name}'.`,
    where: located(declaration, "executable", "isolation")
  })

/** How a server that wants a PID namespace is started; never without one. */
const launcherFor = (
  declaration: ServerDeclaration,
  pidNamespace: Context.Tag.Service<typeof PidNamespace>
): Effect.Effect<Launcher, AdmissionError> =>
  Effect.flatMap(pidNamespace.receipt, (receipt) =>
    receipt._tag === "Available"
      ? Effect.succeed(receipt.launcher)
      : isolationUnavailable(declaration, receipt.reason, receipt.text, receipt.fix)
  )

const stdioOnly = (
  declaration: ServerDeclaration,
  expanded: ExpandedEndpoint
): Effect.Effect<StdioEndpoint, AdmissionError> =>
  expanded.endpoint._tag === "stdio"
    ? Effect.succeed(expanded.endpoint)
    : new AdmissionError({
        code: "SIGIL_NOT_SUPPORTED",
        reason: "not_supported_yet",
        text: `The server '${declaration.name}' is remote, which is not supported yet.`,
        where: located(declaration, "grants", "url")
      })

/**
 * A written `cwd` counts from the declaring file; otherwise a server runs in the workspace (R section 3.8). A project
 * entry always runs beside its own file: an approval is shared by all directories of a repository, so where sigil was
 * started must not decide which script a relative command names.
 */
const workingDirectory = (declaration: ServerDeclaration, endpoint: StdioEndpoint, snapshot: ConfigSnapshot): string =>
  endpoint.cwd === undefined && declaration.scope !== "project"
    ? snapshot.workspace
    : path.resolve(
        path.isAbsolute(declaration.source.file) ? path.dirname(declaration.source.file) : snapshot.workspace,
        endpoint.cwd ?? "."
      )

/** What the gates ask. */
type Needs = HostEnvironment | ApprovalStore | Toggles | PidNamespace

/** Admission over the host's environment and the stored decisions. */
export const layer: Layer.Layer<Admission, never, Needs> = Layer.effect(
  Admission,
  Effect.gen(function* () {
    const bind = makeBinder(yield* HostEnvironment)
    const gates = makeGates(yield* HostEnvironment, yield* ApprovalStore, yield* Toggles, yield* PidNamespace)
    return {
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
            secrets: environment.secrets,
            grants,
            environment: bind(passed, environmentFingerprint(grants))
          }
        }),
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
            if (Either.isRight(outcome)) verdicts.push({ gate: name, verdict: "pass", why: outcome.right })
            else {
              refused = true
              const refusal = outcome.left
              const where = refusal.where === undefined ? {} : { where: refusal.where }
              verdicts.push({ gate: name, verdict: "refuse", why: refusal.text, refusal, ...where })
            }
          }
          return verdicts
        })
    }
  })
)

/**
 * All servers of one runtime: at most one live generation each, every start through admission.
 *
 * Each server has a supervisor of its own (`Supervisor.ts`), made when the server is first asked for. A generation is
 * registered only when it is complete, and a failed start leaves nothing. Closing the registry's scope ends every
 * server; `closeAll` does it early and returns the evidence, which a command needs for its exit code. The configuration
 * may change meanwhile (`reload`, `declare`, `withdraw`): it is swapped as one step, and every start takes its entry
 * from the one that holds then.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Runtime from "effect/Runtime"
import * as Scope from "effect/Scope"
import { admissionRefused } from "../audit/AuditEntries.ts"
import { AuditLog } from "../audit/AuditLog.ts"
import { near } from "../base/Near.ts"
import type { ConfigError } from "../config/ConfigError.ts"
import { Configuration, type ConfigSnapshot } from "../config/Configuration.ts"
import { type Entry, nameOf } from "../config/ServerDeclaration.ts"
import { Random } from "../platform/Random.ts"
import * as CompanyLimit from "../policy/CompanyLimit.ts"
import * as Spans from "../telemetry/Spans.ts"
import * as MemoryTransport from "../transport/MemoryTransport.ts"
import type { MemoryServer } from "../transport/MemoryTransport.ts"
import { Transport } from "../transport/Transport.ts"
import { Admission, type GateName, type Verdict } from "./Admission.ts"
import { type DynamicServer, entryOf as entryOfValue, isInProcess } from "./DynamicServers.ts"
import { ElicitationTurn } from "./ElicitationTurn.ts"
import { type Era, EraStore } from "./EraStore.ts"
import * as EagerStart from "./EagerStart.ts"
import * as Generation from "./Generation.ts"
import { changesBetween, type ReloadReport } from "./Reload.ts"
import { RunGate } from "./RunGate.ts"
import { AdmissionError, type RequiredServersError } from "./ServerError.ts"
import type { ServerStatus } from "./ServerStatus.ts"
import type { ActivationError } from "./StartFailure.ts"
import * as Supervisor from "./Supervisor.ts"

export type { ReloadReport } from "./Reload.ts"
export type { ActivationError } from "./StartFailure.ts"
export type { AskOptions, ServerCleanup } from "./Supervisor.ts"
export type { ServerStatus } from "./ServerStatus.ts"

/** Starts at a time: at least this many stdio servers, and exactly this many remote ones (spec section 7). */
const MIN_STARTS = 4
const REMOTE_STARTS = 20
/** Gates that are somebody's decision: a running server that one of them refuses now is ended by a reload. */
const decisions: ReadonlySet<GateName> = new Set(["company_limit", "mcp_policy", "approval", "enabled", "network"])

/** How many stdio servers may start at a time on a machine with so many processors. */
export const startsAtATime = (cores: number): number => Math.max(MIN_STARTS, 2 * cores)

/** All servers of one runtime. */
export class Registry extends Context.Tag("sigil/server/Registry")<
  Registry,
  {
    /** The configuration this runtime works with now; another one after a reload, `declare` or `withdraw`. */
    readonly snapshot: ConfigSnapshot
    /**
     * Reads the configuration again. Servers whose entry means the same go on; those whose entry is gone or another
     * one are retired once their calls in flight are done, and so is what a policy that was tightened forbids. Starts
     * nothing by itself. Fails, and changes nothing, when a file of the user's own cannot be used. Succeeds when what
     * was retired is gone.
     */
    readonly reload: Effect.Effect<ReloadReport, ConfigError>
    /**
     * Declares a server in scope `dynamic`, in place of an earlier one of that name there; starts nothing. An entry of
     * the same name in `--mcp-config` still goes before it. Fails with the entry's fault, and changes nothing.
     */
    readonly declare: (
      name: string,
      entry: DynamicServer,
      options?: { readonly origin?: "ide" }
    ) => Effect.Effect<ReloadReport, ConfigError>
    /** Takes back a server of scope `dynamic`; what it hid counts again. `SIGIL_UNKNOWN_SERVER` for any other name. */
    readonly withdraw: (name: string) => Effect.Effect<ReloadReport, ConfigError>
    /** Calls the listener with the names whose entry was replaced or taken away, after each such change. */
    readonly onReplaced: (listener: (names: ReadonlyArray<string>) => void) => () => void
    /** The entry of an exact name; `SIGIL_UNKNOWN_SERVER` with near names otherwise. */
    readonly find: (name: string) => Effect.Effect<Entry, AdmissionError>
    /** The live generation of a server, started through admission when there is none. Strict, whatever happened before. */
    readonly activate: (
      name: string,
      options?: Supervisor.AskOptions
    ) => Effect.Effect<Generation.Generation, ActivationError>
    /**
     * The generation for a call: starts a server that was not asked for yet, hurries a restart that is due, and fails
     * at once with the first cause for a server that is down for good.
     */
    readonly acquire: (
      name: string,
      options?: Supervisor.AskOptions
    ) => Effect.Effect<Generation.Generation, ActivationError>
    /** Replaces the live generation of a server and succeeds when the old one is gone (spec section 7). */
    readonly refresh: (
      name: string,
      options?: Supervisor.AskOptions
    ) => Effect.Effect<Generation.Generation, ActivationError>
    /**
     * Starts every enabled eager server, the required ones as one transaction. For a face that must not wait, fork it:
     * `status` tells how far each is.
     */
    readonly startEager: Effect.Effect<EagerStart.EagerReport, RequiredServersError>
    /** What a server is doing; `deferred` for one that nobody asked for, known or not. */
    readonly status: (name: string) => ServerStatus
    /** Calls the listener with a server's name after each change of its state; returns what stops it. */
    readonly onChange: (listener: (name: string) => void) => () => void
    /** Reads changed lists again now. A run calls it between two of its steps. */
    readonly settleLists: Effect.Effect<void>
    /** The verdict of each gate for a server; starts nothing. */
    readonly explain: (name: string) => Effect.Effect<ReadonlyArray<Verdict>, AdmissionError>
    /** Ends one server; its cleanups since they were last asked for. */
    readonly close: (name: string) => Effect.Effect<ReadonlyArray<Supervisor.ServerCleanup>>
    /** Ends every server; all cleanups since they were last asked for, restarts and refreshes included. */
    readonly closeAll: Effect.Effect<ReadonlyArray<Supervisor.ServerCleanup>>
  }
>() {}

const make = (places: number) =>
  Effect.gen(function* () {
    const configuration = yield* Configuration
    const admission = yield* Admission
    const audit = yield* AuditLog
    const random = yield* Random
    const gate = yield* RunGate
    const eras = yield* EraStore
    const spoken = new Map<string, Era>()
    /** What the store is known to hold. */
    const kept = new Map<string, Era>()
    const context = Spans.withoutSpan(yield* Effect.context<Generation.Needs>()).pipe(
      Context.add(ElicitationTurn, { semaphore: yield* Effect.makeSemaphore(1) }),
      // What a server spoke in this run holds for its next start, whether or not it is kept for the next run.
      Context.add(EraStore, {
        recall: (key) =>
          Effect.suspend(() => {
            const era = spoken.get(key)
            if (era !== undefined) return Effect.succeed(era)
            return Effect.tap(eras.recall(key), (known) =>
              Effect.sync(() => {
                if (known !== undefined) kept.set(key, known)
              })
            )
          }),
        // One that held in this run already is not what a failed start is about.
        forget: (key) =>
          Effect.suspend(() => {
            if (spoken.has(key)) return Effect.void
            kept.delete(key)
            return eras.forget(key)
          }),
        remember: (key, era) =>
          Effect.suspend(() => {
            spoken.set(key, era)
            if (kept.get(key) === era) return Effect.void
            kept.set(key, era)
            return eras.remember(key, era)
          })
      })
    )
    let snapshot = yield* configuration.load
    yield* admission.know(snapshot)
    /** Changes of the configuration come one after the other; what they retire ends beside them. */
    const changing = yield* Effect.makeSemaphore(1)
    /** The code of servers in this process that were declared meanwhile. */
    const inProcess = new Map<string, MemoryServer>()
    const replacedListeners = new Set<(names: ReadonlyArray<string>) => void>()
    /** Cleanups of servers that nothing declares any more. */
    let departed: ReadonlyArray<Supervisor.ServerCleanup> = []
    const supervisors = new Map<string, Supervisor.Supervisor>()
    const listeners = new Set<(name: string) => void>()
    const localTurns = yield* Effect.makeSemaphore(places)
    const remoteTurns = yield* Effect.makeSemaphore(REMOTE_STARTS)

    const entryOf = (name: string): Entry | undefined =>
      snapshot.servers.find((candidate) => nameOf(candidate) === name)
    const find = (name: string): Effect.Effect<Entry, AdmissionError> => {
      const entry = entryOf(name)
      if (entry !== undefined) return Effect.succeed(entry)
      const names = snapshot.servers.map(nameOf)
      return new AdmissionError({
        code: "SIGIL_UNKNOWN_SERVER",
        reason: "unknown_server",
        text: `No declared server is named '${name}'.`,
        fix: names.length === 0 ? "Declare one with 'sigil mcp add NAME COMMAND…'." : undefined,
        where: { server: name },
        candidates: near(name, names)
      })
    }

    const startEntry = (
      entry: Entry,
      { kind, networkApproved, observePin, onOpen, onTurn }: Parameters<Supervisor.Surroundings["start"]>[1]
    ): ReturnType<Supervisor.Surroundings["start"]> => {
      const server = nameOf(entry)
      const turns = entry._tag === "Valid" && entry.declaration.endpoint._tag === "remote" ? remoteTurns : localTurns
      return Spans.admission(server, admission.admit(entry, { snapshot, networkApproved, observePin })).pipe(
        Effect.tapError((refusal) =>
          // The refusal stands whether or not it can be put on record.
          Effect.ignore(
            audit.append(
              admissionRefused({
                server,
                gate: refusal.where?.operation ?? "declaration",
                code: refusal.code,
                reason: refusal.reason,
                message: refusal.text
              })
            )
          )
        ),
        // The budget of a start begins when its turn comes: it is counted inside `Generation.open`.
        Effect.flatMap((admitted) =>
          turns.withPermits(1)(
            Effect.suspend(() => {
              onTurn()
              const opened = Generation.open(admitted, {
                ...(onOpen === undefined ? {} : { onOpen }),
                ...(kind === undefined ? {} : { kind })
              })
              const own = admitted.declaration.inProcess === true ? inProcess.get(server) : undefined
              return own === undefined
                ? opened
                : Effect.provideService(opened, Transport, MemoryTransport.make({ [server]: own }))
            })
          )
        ),
        // The registry's own scope is in its context, too; what is started belongs to the scope of its supervisor.
        (whole) => Effect.flatMap(Effect.scope, (scope) => Effect.provide(Scope.extend(whole, scope), context)),
        (whole) => Spans.start(server, kind ?? "asked", whole)
      )
    }

    // The entry is the one of this moment: an earlier one may have been replaced since the server was asked for.
    const start: Supervisor.Surroundings["start"] = (name, options) =>
      Effect.flatMap(find(name), (entry) => startEntry(entry, options))

    const runtime = yield* Effect.runtime<never>()
    const around: Supervisor.Surroundings = {
      runtime: Runtime.make({ ...runtime, context: Spans.withoutSpan(runtime.context) }),
      start,
      entryOf,
      jitter: random.fraction,
      isIdle: () => gate.openRuns() === 0,
      onChange: (name) => {
        for (const listener of listeners) listener(name)
      }
    }
    const supervisorOf = (name: string): Effect.Effect<Supervisor.Supervisor, AdmissionError> => {
      const known = supervisors.get(name)
      if (known !== undefined && entryOf(name) !== undefined) return Effect.succeed(known)
      return Effect.flatMap(find(name), () =>
        Effect.map(Supervisor.make(name, around), (made) => {
          const first = supervisors.get(name) ?? made
          supervisors.set(name, first)
          return first
        })
      )
    }
    /** The common case of every call but the first. */
    const liveOf = (name: string): Generation.Generation | undefined => supervisors.get(name)?.live()
    const close = (supervisor: Supervisor.Supervisor) => Effect.map(supervisor.stop, () => supervisor.takeCleanups())

    /** Unchanged servers that run and would not be admitted now. Who is asked about the network has said yes to these. */
    const refusedNow = (unchanged: ReadonlyArray<string>, facts: ConfigSnapshot) =>
      Effect.map(
        Effect.forEach(unchanged, (name) => {
          const entry = facts.servers.find((candidate) => nameOf(candidate) === name)
          if (entry === undefined || liveOf(name) === undefined) return Effect.succeed([])
          return Effect.map(admission.explain(entry, { snapshot: facts, networkApproved: true }), (verdicts) => {
            const failure = verdicts.find(({ gate: at, verdict }) => verdict === "refuse" && decisions.has(at))?.refusal
            return failure === undefined ? [] : [{ name, failure }]
          })
        }),
        (found) => found.flat()
      )
    /** Ends a server whose entry is another one or gone; what could not be confirmed gone of it. */
    const retire = (
      name: string,
      again: boolean
    ): Effect.Effect<Effect.Effect<ReadonlyArray<Supervisor.ServerCleanup>>> => {
      const supervisor = supervisors.get(name)
      if (supervisor === undefined) return Effect.succeed(Effect.succeed([]))
      return Effect.map(supervisor.retire(again), (ended) =>
        Effect.map(ended, () => {
          const cleanups = supervisor.peekCleanups()
          if (entryOf(name) === undefined && supervisors.get(name) === supervisor) {
            supervisors.delete(name)
            departed = [...departed, ...supervisor.takeCleanups()]
          }
          return cleanups.filter(({ report }) => !report.complete)
        })
      )
    }
    /** Takes a new configuration over as one step, then ends what it leaves no place for. */
    const change = (
      next: Effect.Effect<ConfigSnapshot, ConfigError>,
      replaced?: { readonly name: string; readonly server: MemoryServer | undefined }
    ): Effect.Effect<ReloadReport, ConfigError> =>
      Effect.flatMap(
        Effect.uninterruptible(
          changing.withPermits(1)(
            Effect.gen(function* () {
              const after = yield* next
              yield* admission.know(after)
              const same = replaced?.server === undefined ? new Set<string>() : new Set([replaced.name])
              const changes = changesBetween(snapshot, after, same)
              const refused = yield* refusedNow(changes.unchanged, after)
              snapshot = after
              if (replaced?.server !== undefined) inProcess.set(replaced.name, replaced.server)
              else if (replaced !== undefined) inProcess.delete(replaced.name)
              const gone = [...changes.changed, ...changes.removed]
              for (const listener of replacedListeners) listener(gone)
              // Each retirement begins before anybody can ask for the new entry; their ends are waited for outside.
              const ends = yield* Effect.all([
                ...changes.changed.map((name) => retire(name, true)),
                ...changes.removed.map((name) => retire(name, false)),
                ...refused.map(({ name }) => retire(name, true))
              ])
              return { changes, refused, ends, problems: after.problems }
            })
          )
        ),
        ({ changes, ends, problems, refused }) =>
          Effect.map(Effect.all(ends, { concurrency: "unbounded" }), (cleanups): ReloadReport => ({
            ...changes,
            refused,
            problems,
            incomplete: cleanups.flat()
          }))
      )

    const forget = gate.onIdle(() => {
      for (const supervisor of supervisors.values()) supervisor.onIdle()
    })
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        forget()
        return Effect.forEach([...supervisors.values()], (supervisor) => supervisor.dispose, {
          concurrency: "unbounded",
          discard: true
        })
      })
    )

    const startEager = Effect.suspend(() =>
      EagerStart.startAll(
        snapshot.servers.flatMap((entry): ReadonlyArray<EagerStart.Member> => {
          if (entry._tag === "Broken" || entry.declaration.startup !== "eager" || !entry.declaration.enabled) return []
          // Where MCP is switched off there are no servers (S section 5.3): a run that wants none goes on without.
          if (CompanyLimit.decide(snapshot.settings.company, entry.declaration) !== undefined) return []
          const { name, required } = entry.declaration
          return [
            {
              name,
              required,
              activate: Effect.flatMap(supervisorOf(name), (supervisor) => supervisor.activate()),
              stop: Effect.flatMap(Effect.orDie(supervisorOf(name)), close)
            }
          ]
        })
      )
    )

    return Registry.of({
      get snapshot() {
        return snapshot
      },
      reload: change(configuration.reload),
      declare: (name, entry, { origin } = {}) =>
        change(configuration.declare(name, { ...entryOfValue(entry), ...(origin === undefined ? {} : { origin }) }), {
          name,
          server: isInProcess(entry) ? entry.inProcess : undefined
        }),
      withdraw: (name) => change(configuration.withdraw(name), { name, server: undefined }),
      onReplaced: (listener) => {
        replacedListeners.add(listener)
        return () => replacedListeners.delete(listener)
      },
      find,
      // Looked up when it runs, not when it is built: an effect that is run again finds what is there then.
      activate: (name, options) =>
        Effect.suspend(() => {
          const live = liveOf(name)
          if (live !== undefined) return Effect.succeed(live)
          return Effect.flatMap(supervisorOf(name), (supervisor) => supervisor.activate(options))
        }),
      acquire: (name, options) =>
        Effect.suspend(() => {
          const live = liveOf(name)
          if (live !== undefined) return Effect.succeed(live)
          return Effect.flatMap(supervisorOf(name), (supervisor) => supervisor.acquire(options))
        }),
      refresh: (name, options) =>
        Effect.flatMap(
          Effect.suspend(() => supervisorOf(name)),
          (supervisor) => supervisor.refresh(options)
        ),
      startEager,
      status: (name) => supervisors.get(name)?.status() ?? { state: "deferred" },
      onChange: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
      settleLists: Effect.suspend(() =>
        Effect.forEach([...supervisors.values()], (supervisor) => supervisor.settleLists, {
          concurrency: "unbounded",
          discard: true
        })
      ),
      explain: (name) =>
        Effect.flatMap(
          Effect.suspend(() => find(name)),
          (entry) => admission.explain(entry, { snapshot, networkApproved: false })
        ),
      close: (name) => {
        const supervisor = supervisors.get(name)
        return supervisor === undefined ? Effect.succeed([]) : Effect.uninterruptible(close(supervisor))
      },
      closeAll: Effect.suspend(() =>
        Effect.forEach([...supervisors.values()], close, { concurrency: "unbounded" })
      ).pipe(
        Effect.map((reports) => {
          const all = [...departed, ...reports.flat()]
          departed = []
          return all
        }),
        Effect.uninterruptible
      )
    })
  })

/** The registry of one runtime. Fails when the configuration itself cannot be read. */
export const layer = (
  cores: number
): Layer.Layer<Registry, ConfigError, Configuration | Admission | RunGate | Generation.Needs> =>
  Layer.scoped(Registry, make(startsAtATime(cores)))

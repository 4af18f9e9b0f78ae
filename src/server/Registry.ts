/**
 * All servers of one runtime: at most one live generation each, every start through admission.
 *
 * Each server has a supervisor of its own (`Supervisor.ts`), made when the server is first asked for. A generation is
 * registered only when it is complete, and a failed start leaves nothing. Closing the registry's scope ends every
 * server; `closeAll` does it early and returns the evidence, which a command needs for its exit code.
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
import { Admission, type Verdict } from "./Admission.ts"
import * as EagerStart from "./EagerStart.ts"
import * as Generation from "./Generation.ts"
import { RunGate } from "./RunGate.ts"
import { AdmissionError, type RequiredServersError } from "./ServerError.ts"
import type { ActivationError } from "./StartFailure.ts"
import * as Supervisor from "./Supervisor.ts"

export type { ActivationError } from "./StartFailure.ts"
export type { AskOptions, ServerCleanup, ServerStatus } from "./Supervisor.ts"

/** Starts at a time: at least this many stdio servers, and exactly this many remote ones (spec section 7). */
const MIN_STARTS = 4
const REMOTE_STARTS = 20

/** How many stdio servers may start at a time on a machine with so many processors. */
export const startsAtATime = (cores: number): number => Math.max(MIN_STARTS, 2 * cores)

/** All servers of one runtime. */
export class Registry extends Context.Tag("sigil/server/Registry")<
  Registry,
  {
    /** The configuration this runtime works with. */
    readonly snapshot: ConfigSnapshot
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
    readonly status: (name: string) => Supervisor.ServerStatus
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
    const context = Spans.withoutSpan(yield* Effect.context<Generation.Needs>())
    const snapshot = yield* configuration.load
    const supervisors = new Map<string, Supervisor.Supervisor>()
    const listeners = new Set<(name: string) => void>()
    const localTurns = yield* Effect.makeSemaphore(places)
    const remoteTurns = yield* Effect.makeSemaphore(REMOTE_STARTS)

    const find = (name: string): Effect.Effect<Entry, AdmissionError> => {
      const entry = snapshot.servers.find((candidate) => nameOf(candidate) === name)
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

    const start: Supervisor.Surroundings["start"] = (entry, { kind, networkApproved, observePin, onOpen, onTurn }) => {
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
              return Generation.open(admitted, {
                ...(onOpen === undefined ? {} : { onOpen }),
                ...(kind === undefined ? {} : { kind })
              })
            })
          )
        ),
        // The registry's own scope is in its context, too; what is started belongs to the scope of its supervisor.
        (whole) => Effect.flatMap(Effect.scope, (scope) => Effect.provide(Scope.extend(whole, scope), context)),
        (whole) => Spans.start(server, kind ?? "asked", whole)
      )
    }

    const runtime = yield* Effect.runtime<never>()
    const around: Supervisor.Surroundings = {
      runtime: Runtime.make({ ...runtime, context: Spans.withoutSpan(runtime.context) }),
      start,
      jitter: random.fraction,
      isIdle: () => gate.openRuns() === 0,
      onChange: (name) => {
        for (const listener of listeners) listener(name)
      }
    }
    const supervisorOf = (name: string): Effect.Effect<Supervisor.Supervisor, AdmissionError> => {
      const known = supervisors.get(name)
      if (known !== undefined) return Effect.succeed(known)
      return Effect.flatMap(find(name), (entry) =>
        Effect.map(Supervisor.make(entry, around), (made) => {
          const first = supervisors.get(name) ?? made
          supervisors.set(name, first)
          return first
        })
      )
    }
    /** The common case of every call but the first. */
    const liveOf = (name: string): Generation.Generation | undefined => supervisors.get(name)?.live()
    const close = (supervisor: Supervisor.Supervisor) => Effect.map(supervisor.stop, () => supervisor.takeCleanups())

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
      snapshot,
      find,
      activate: (name, options) => {
        const live = liveOf(name)
        if (live !== undefined) return Effect.succeed(live)
        return Effect.flatMap(supervisorOf(name), (supervisor) => supervisor.activate(options))
      },
      acquire: (name, options) => {
        const live = liveOf(name)
        if (live !== undefined) return Effect.succeed(live)
        return Effect.flatMap(supervisorOf(name), (supervisor) => supervisor.acquire(options))
      },
      refresh: (name, options) => Effect.flatMap(supervisorOf(name), (supervisor) => supervisor.refresh(options)),
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
        Effect.flatMap(find(name), (entry) => admission.explain(entry, { snapshot, networkApproved: false })),
      close: (name) => {
        const supervisor = supervisors.get(name)
        return supervisor === undefined ? Effect.succeed([]) : Effect.uninterruptible(close(supervisor))
      },
      closeAll: Effect.suspend(() =>
        Effect.forEach([...supervisors.values()], close, { concurrency: "unbounded" })
      ).pipe(
        Effect.map((reports) => reports.flat()),
        Effect.uninterruptible
      )
    })
  })

/** The registry of one runtime. Fails when the configuration itself cannot be read. */
export const layer = (
  cores: number
): Layer.Layer<Registry, ConfigError, Configuration | Admission | RunGate | Generation.Needs> =>
  Layer.scoped(Registry, make(startsAtATime(cores)))

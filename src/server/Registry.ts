/**
 * All servers of one runtime: at most one live generation each, every start through admission.
 *
 * Starting is transactional: a generation is registered only when it is complete; a failure leaves nothing.
 * Concurrent requests for one server share one start. Closing the registry's scope closes every generation;
 * `closeAll` does it early and returns the evidence, which a command needs for its exit code.
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as ExecutionStrategy from "effect/ExecutionStrategy"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { ConfigError } from "../config/ConfigError.ts"
import { Configuration, type ConfigSnapshot } from "../config/Configuration.ts"
import { type Entry, nameOf } from "../config/ServerDeclaration.ts"
import type { CleanupReport } from "../platform/CleanupReport.ts"
import { admissionRefused } from "../audit/AuditEntries.ts"
import { AuditLog } from "../audit/AuditLog.ts"
import { near } from "../base/Near.ts"
import * as Spans from "../telemetry/Spans.ts"
import { Admission, type Refusal, type Verdict } from "./Admission.ts"
import * as Generation from "./Generation.ts"
import { AdmissionError, type StartError } from "./ServerError.ts"

/** Starts at a time: at least this many stdio servers (spec section 7). */
const MIN_STARTS = 4

/** How a server's last generation ended. */
export interface ServerCleanup {
  readonly server: string
  readonly report: CleanupReport
}

/** Why a server could not be made ready. */
export type ActivationError = Refusal | StartError

/** All servers of one runtime. */
export class Registry extends Context.Tag("sigil/server/Registry")<
  Registry,
  {
    /** The configuration this runtime works with. */
    readonly snapshot: ConfigSnapshot
    /** The entry of an exact name; `SIGIL_UNKNOWN_SERVER` with near names otherwise. */
    readonly find: (name: string) => Effect.Effect<Entry, AdmissionError>
    /** The live generation of a server, started through admission when there is none. */
    readonly activate: (
      name: string,
      options?: { readonly onOpen?: Generation.OnOpen; readonly networkApproved?: boolean }
    ) => Effect.Effect<Generation.Generation, ActivationError>
    /** Whether a server's start waits for its turn behind others (`activating (queued)`, spec section 7). */
    readonly isQueued: (name: string) => boolean
    /** The verdict of each gate for a server; starts nothing. */
    readonly explain: (name: string) => Effect.Effect<ReadonlyArray<Verdict>, AdmissionError>
    /** Closes every generation; the reports in the order of starts. */
    readonly closeAll: Effect.Effect<ReadonlyArray<ServerCleanup>>
  }
>() {}

/** A start under way or done, with the scope that owns it. */
interface Slot {
  /** Whether its turn to start has come; the budget of the start counts from then. */
  turn: boolean
  /** Set when the start is done. */
  generation?: Generation.Generation
  readonly scope: Scope.CloseableScope
  readonly started: Deferred.Deferred<Generation.Generation, ActivationError>
}

const make = (startsAtATime: number) =>
  Effect.gen(function* () {
    const configuration = yield* Configuration
    const admission = yield* Admission
    const audit = yield* AuditLog
    const outer = yield* Effect.scope
    const context = Spans.withoutSpan(yield* Effect.context<Generation.Needs>())
    const snapshot = yield* configuration.load
    const slots = new Map<string, Slot>()
    const incomplete: Array<ServerCleanup> = []
    const turns = yield* Effect.makeSemaphore(startsAtATime)

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

    const start = (entry: Entry, slot: Slot, onOpen: Generation.OnOpen | undefined, networkApproved: boolean) =>
      Spans.admission(nameOf(entry), admission.admit(entry, { snapshot, networkApproved })).pipe(
        Effect.tapError((refusal) =>
          // The refusal stands whether or not it can be put on record.
          Effect.ignore(
            audit.append(
              admissionRefused({
                server: nameOf(entry),
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
              slot.turn = true
              return Generation.open(admitted, onOpen)
            })
          )
        ),
        Scope.extend(slot.scope),
        Effect.provide(context),
        (whole) => Spans.start(nameOf(entry), whole)
      )

    const activate = (
      name: string,
      options?: { readonly onOpen?: Generation.OnOpen; readonly networkApproved?: boolean }
    ): Effect.Effect<Generation.Generation, ActivationError> => {
      const ready = slots.get(name)?.generation
      // The common case of every call but the first.
      if (ready !== undefined && ready.connection.terminal() === undefined) return Effect.succeed(ready)
      return ensure(name, options)
    }
    const ensure = (
      name: string,
      options?: { readonly onOpen?: Generation.OnOpen; readonly networkApproved?: boolean }
    ): Effect.Effect<Generation.Generation, ActivationError> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const entry = yield* find(name)
          const open = slots.get(name)
          if (open !== undefined) {
            const generation = yield* restore(Deferred.await(open.started))
            if (generation.connection.terminal() === undefined) return generation
            // A closed generation is never reused (spec section 7).
            yield* retire(name, open)
          }
          const slot: Slot = {
            turn: false,
            scope: yield* Scope.fork(outer, ExecutionStrategy.sequential),
            started: yield* Deferred.make<Generation.Generation, ActivationError>()
          }
          slots.set(name, slot)
          const exit = yield* Effect.exit(
            restore(start(entry, slot, options?.onOpen, options?.networkApproved ?? false))
          )
          if (Exit.isSuccess(exit)) slot.generation = exit.value
          yield* Deferred.done(slot.started, exit)
          if (Exit.isFailure(exit)) {
            slots.delete(name)
            yield* Scope.close(slot.scope, exit)
          }
          return yield* exit
        })
      )

    const retire = (name: string, slot: Slot): Effect.Effect<ServerCleanup | undefined> =>
      Effect.gen(function* () {
        if (slots.get(name) === slot) slots.delete(name)
        yield* Scope.close(slot.scope, Exit.void)
        const exit = yield* Effect.exit(Deferred.await(slot.started))
        if (Exit.isFailure(exit)) return undefined
        const cleanup = { server: name, report: yield* Deferred.await(exit.value.cleanup) }
        if (!cleanup.report.complete) incomplete.push(cleanup)
        return cleanup
      })

    return Registry.of({
      snapshot,
      find,
      activate,
      isQueued: (name) => slots.get(name)?.turn === false,
      explain: (name) =>
        Effect.flatMap(find(name), (entry) => admission.explain(entry, { snapshot, networkApproved: false })),
      closeAll: Effect.gen(function* () {
        const earlier = incomplete.splice(0)
        const open = [...slots]
        const reports = yield* Effect.forEach(open, ([name, slot]) => retire(name, slot), { concurrency: "unbounded" })
        return [...earlier, ...reports.filter((report) => report !== undefined)]
      }).pipe(Effect.uninterruptible)
    })
  })

/** The registry of one runtime. Fails when the configuration itself cannot be read. */
export const layer = (
  cores: number
): Layer.Layer<Registry, ConfigError, Configuration | Admission | Generation.Needs> =>
  Layer.scoped(Registry, make(Math.max(MIN_STARTS, 2 * cores)))

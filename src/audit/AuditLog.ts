/**
 * The audit log of a workspace: what was decided, sent and done, chained so that nothing can be taken out unseen
 * (spec section 13).
 *
 * A record is with the kernel before `append` returns, so a killed sigil loses none; durable ones are on the
 * disk. What cannot be recorded must not be done: `append` fails, and nothing half written stays. Nothing is
 * touched before the first append, so that commands which only read work where nothing can be written. How
 * records get into the file is in `AuditWriter.ts`.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as path from "node:path"
import { ensurePrivateDirectory } from "../platform/AtomicFile.ts"
import { type AuditError, auditFault } from "./AuditError.ts"
import { type AuditEntry, type AuditRecord, emptyChain, type Link, make as makeRecord } from "./AuditRecord.ts"
import { type AuditLogOptions, makeWriter } from "./AuditWriter.ts"
import type { LogPaths } from "./LogFiles.ts"

export type { AuditLogOptions } from "./AuditWriter.ts"

/** The audit log. */
export class AuditLog extends Context.Tag("sigil/audit/AuditLog")<
  AuditLog,
  {
    /**
     * Adds a record. Returns when the kernel has it, or the disk: `sync: "always"`, `durable`, transport
     * authorisations, decisions about projects, pins. Fails with `SIGIL_AUDIT_UNWRITABLE`; then it is not in the log.
     */
    readonly append: (entry: AuditEntry) => Effect.Effect<void, AuditError>
    /**
     * Adds several records, in this order and without another one's between them, for the price of about one.
     * When it fails the first ones may be in the log.
     */
    readonly appendAll: (entries: ReadonlyArray<AuditEntry>) => Effect.Effect<void, AuditError>
    /**
     * Adds a record that nobody waits for: it leaves with the next one, after 5 ms at the latest, and in any case
     * before the log is closed. Should the log not take it, the next `append` fails.
     */
    readonly note: (entry: AuditEntry) => void
  }
>() {}

const make = (
  paths: LogPaths,
  options: AuditLogOptions
): Effect.Effect<Context.Tag.Service<AuditLog>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Effect.clock
    let prepared = false
    const writer = yield* Effect.acquireRelease(
      Effect.sync(() =>
        makeWriter(
          paths,
          options,
          () => clock.unsafeCurrentTimeMillis(),
          () => {
            prepared = false
          }
        )
      ),
      ({ close }) => close
    )
    const prepare = ensurePrivateDirectory(path.dirname(paths.log)).pipe(
      Effect.mapError((error) => auditFault(paths.log, error)),
      Effect.tap(() =>
        Effect.sync(() => {
          prepared = true
        })
      )
    )
    const appendAll = (entries: ReadonlyArray<AuditEntry>): Effect.Effect<void, AuditError> => {
      if (entries.length === 0) return Effect.void
      if (prepared) return writer.append(entries)
      return Effect.zipRight(
        Effect.suspend(() => prepare),
        writer.append(entries)
      )
    }
    const note = (entry: AuditEntry): void => {
      if (prepared) writer.note(entry)
      else Effect.runFork(Effect.ignore(appendAll([entry])))
    }
    return { append: (entry) => appendAll([entry]), appendAll, note }
  })

/** The log of a workspace, closed with the scope. */
export const layer = (paths: LogPaths, options: AuditLogOptions): Layer.Layer<AuditLog> =>
  Layer.scoped(AuditLog, make(paths, options))

/** A log in memory; its records go into `records`, which a test reads. */
export const layerMemory = (records: Array<AuditRecord> = [], run = "test"): Layer.Layer<AuditLog> =>
  Layer.effect(
    AuditLog,
    Effect.map(Effect.clock, (clock) => {
      let chain: Link = emptyChain
      const appendAll = (entries: ReadonlyArray<AuditEntry>): Effect.Effect<void, AuditError> =>
        Effect.sync(() => {
          for (const { kind, call, server, payload: given, payloadText } of entries) {
            const payload = payloadText === undefined ? given : JSON.parse(payloadText)
            const time = new Date(clock.unsafeCurrentTimeMillis()).toISOString()
            const record = makeRecord({ time, kind, run, call, server, payload }, chain)
            chain = { count: record.seq, hash: record.hash }
            records.push(record)
          }
        })
      return { append: (entry) => appendAll([entry]), appendAll, note: (entry) => Effect.runSync(appendAll([entry])) }
    })
  )

/** No log, for tests and embeddings that keep none. */
export const layerNone: Layer.Layer<AuditLog> = Layer.succeed(AuditLog, {
  append: () => Effect.void,
  appendAll: () => Effect.void,
  note: () => undefined
})

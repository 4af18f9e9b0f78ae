/**
 * The writer of one log in one process: group commit, the lock over a burst, the way to the disk.
 *
 * Appends of one turn of the event loop become one batch: one look at the lock, one write, one move of the head.
 * The lock is kept while there is work and a few milliseconds longer, because taking it costs more than a record;
 * a holder that is busy hands over when another process waits. Plain code with timers of its own, not fibers:
 * this is on the path of every call, and its times are about the disk and other processes.
 */
import * as Effect from "effect/Effect"
import { SECOND_MS } from "../base/Units.ts"
import { type AuditError, auditFault, auditRefused } from "./AuditError.ts"
import { type AuditEntry, type Kind, type Parts, payloadText } from "./AuditRecord.ts"
import * as LogFile from "./LogFile.ts"
import type { LogPaths } from "./LogFiles.ts"
import * as LogLock from "./LogLock.ts"

/** How long a record waits for its turn before the append fails. */
export const LOCK_WAIT_MS = 5 * SECOND_MS
/** Pauses between attempts are spread over this range. */
const RETRY_MIN_MS = 1
const RETRY_MAX_MS = 3
/** How long the lock is kept without work. */
const HOLD_IDLE_MS = 3
/** How long a busy holder works before it looks whether others wait. */
const HOLD_BUSY_MS = 10
/** How long it then leaves the lock to them. */
const HANDOVER_MS = 4
/** Within 50 ms everything is on the disk (spec section 13); the disk gets the rest of the time. */
const SYNC_AFTER_MS = 25
/** A record nobody waits for leaves with the next one, at the latest after this. */
const NOTE_WAIT_MS = 5
/** Pause between attempts to get the lock when the log is closed. */
const DRAIN_STEP = "5 millis"
/** Longest wait for the lock and for the disk when the log is closed. */
const CLOSE_WAIT = "5 seconds"

/** Kinds that are on the disk before anything follows from them (spec section 13). */
const durableKinds: ReadonlySet<Kind> = new Set<Kind>([
  "mcp_transport_authorization",
  "project_decision",
  "pin_recorded"
])

/** How a log is written. */
export interface AuditLogOptions {
  /** `[audit] sync` (spec section 13). */
  readonly sync: "write" | "always"
  /** Id of this run, in every record. */
  readonly run: string
  /** Size at which the file is rotated, bytes. */
  readonly rotateBytes?: number
  /** How long a record waits for other processes, ms. */
  readonly lockWaitMs?: number
}

/** The only ways in. */
export interface AuditWriter {
  /** As `AuditLog.appendAll`. */
  readonly append: (entries: ReadonlyArray<AuditEntry>) => Effect.Effect<void, AuditError>
  /** Adds a record that nobody waits for; see `AuditLog.note`. */
  readonly note: (entry: AuditEntry) => void
  /** Brings everything to the disk and lets go. Bounded; never fails. */
  readonly close: Effect.Effect<void>
}

const ignored = (): void => undefined

type Resume = (result: Effect.Effect<void, AuditError>) => void

/** Records that wait for their turn together. */
interface Waiting {
  readonly records: ReadonlyArray<Parts>
  readonly durable: boolean
  readonly resume: Resume
}

/** Who waits for the disk, and for which write. */
interface DiskWaiting {
  readonly write: number
  readonly resume: Resume
}

/**
 * The writer of one log. Plain code; `append` and `close` are the only ways in. `onFault` is called with every
 * failure, because the directory may be what is missing.
 */
export const makeWriter = (
  paths: LogPaths,
  options: AuditLogOptions,
  now: () => number,
  onFault: () => void
): AuditWriter => {
  const lockWaitMs = options.lockWaitMs ?? LOCK_WAIT_MS
  const lock = LogLock.make(paths.log)
  const file = LogFile.make(paths, options.rotateBytes)
  let queue: Array<Waiting> = []
  let flushIsDue = false
  let closed = false
  let heldSince = 0
  let lastWork = 0
  let waitingSince: number | undefined
  let retryTimer: NodeJS.Timeout | undefined
  let idleTimer: NodeJS.Timeout | undefined
  /** Writes are counted; `synced` is the newest one that is on the disk. */
  let written = 0
  let synced = 0
  let syncing = false
  let syncTimer: NodeJS.Timeout | undefined
  let noteTimer: NodeJS.Timeout | undefined
  let diskQueue: Array<DiskWaiting> = []
  /** The disk refused what had been acknowledged: the next append says so. */
  let diskFault: AuditError | undefined

  const release = (): void => {
    clearTimeout(idleTimer)
    idleTimer = undefined
    lock.release()
  }

  const failAll = (error: AuditError): void => {
    onFault()
    const failed = queue
    queue = []
    waitingSince = undefined
    file.forget()
    release()
    for (const { resume } of failed) resume(error)
  }

  // The clock of this machine, not the one of the Effect runtime: it is about the disk and other processes.
  const monotonic = (): number => performance.now()

  const runSync = (): void => {
    if (syncing) return
    syncing = true
    clearTimeout(syncTimer)
    syncTimer = undefined
    const target = written
    const settle = (result: Effect.Effect<void, AuditError>): void => {
      syncing = false
      synced = Math.max(synced, target)
      const done = diskQueue.filter(({ write }) => write <= target)
      diskQueue = diskQueue.filter(({ write }) => write > target)
      for (const { resume } of done) resume(result)
      if (diskQueue.length > 0) runSync()
      else if (written > synced) syncLater()
    }
    file.sync().then(
      () => settle(Effect.void),
      (error: unknown) => {
        diskFault = auditFault(paths.log, error)
        settle(diskFault)
      }
    )
  }

  const syncLater = (): void => {
    if (syncing || syncTimer !== undefined) return
    syncTimer = setTimeout(runSync, SYNC_AFTER_MS)
    syncTimer.unref()
  }

  const releaseWhenIdle = (): void => {
    if (idleTimer !== undefined) return
    const look = (): void => {
      idleTimer = undefined
      const idle = monotonic() - lastWork
      if (idle >= HOLD_IDLE_MS) release()
      else idleTimer = setTimeout(look, HOLD_IDLE_MS - idle)
    }
    idleTimer = setTimeout(look, HOLD_IDLE_MS)
  }

  const retryIn = (ms: number): void => {
    if (retryTimer !== undefined) return
    retryTimer = setTimeout(() => {
      retryTimer = undefined
      flush()
    }, ms)
  }

  /** Whether this process may write now; arranges another attempt if not. */
  const getTurn = (): boolean => {
    const at = monotonic()
    if (lock.isHeld()) {
      if (at - heldSince < HOLD_BUSY_MS) return true
      heldSince = at
      if (!lock.isWanted()) return true
      release()
      retryIn(HANDOVER_MS)
      return false
    }
    if (!lock.attempt()) {
      waitingSince ??= at
      if (at - waitingSince > lockWaitMs) {
        failAll(
          auditRefused(
            paths.log,
            "locked",
            `${lock.holder()}, and it did not become free within ${lockWaitMs / SECOND_MS} seconds`,
            "Continue or end that process."
          )
        )
        return false
      }
      lock.want()
      // Fractions of the clock are spread well enough that two who wait do not keep step.
      retryIn(RETRY_MIN_MS + (at % (RETRY_MAX_MS - RETRY_MIN_MS)))
      return false
    }
    heldSince = at
    waitingSince = undefined
    const repairs = file.refresh()
    if (repairs.length === 0) return true
    const time = new Date(now()).toISOString()
    const noted = file.write(
      repairs.map((repair) => ({
        time,
        kind: "audit_log_repaired" satisfies Kind,
        run: options.run,
        payload: payloadText({ ...repair })
      }))
    )
    if (noted.error !== undefined) throw noted.error
    written += 1
    return true
  }

  const writeQueue = (): void => {
    const batch = queue
    queue = []
    const result = file.write(batch.flatMap(({ records }) => records))
    if (result.count > 0) {
      written += 1
      lastWork = monotonic()
    }
    let end = 0
    let toDisk = false
    const refused = result.error === undefined ? undefined : auditFault(paths.log, result.error)
    for (const { records, durable, resume } of batch) {
      end += records.length
      if (refused !== undefined && end > result.count) resume(refused)
      else if (durable) {
        toDisk = true
        diskQueue.push({ write: written, resume })
      } else resume(Effect.void)
    }
    if (toDisk) runSync()
    else syncLater()
    if (refused === undefined) releaseWhenIdle()
    else release()
  }

  const flush = (): void => {
    flushIsDue = false
    if (retryTimer !== undefined) return
    if (queue.length === 0) {
      waitingSince = undefined
      return
    }
    try {
      if (diskFault !== undefined) {
        const fault = diskFault
        diskFault = undefined
        failAll(fault)
      } else if (getTurn()) writeQueue()
    } catch (error) {
      failAll(auditFault(paths.log, error))
    }
  }

  const partsOf = (entry: AuditEntry, time: string): Parts => ({
    time,
    kind: entry.kind,
    run: options.run,
    call: entry.call,
    server: entry.server,
    payload: entry.payloadText ?? payloadText(entry.payload)
  })

  const append = (entries: ReadonlyArray<AuditEntry>): Effect.Effect<void, AuditError> =>
    Effect.async<void, AuditError>((resume) => {
      if (closed) return resume(auditRefused(paths.log, "closed", "it was closed"))
      const time = new Date(now()).toISOString()
      let waiting: Waiting
      try {
        waiting = {
          resume,
          records: entries.map((entry) => partsOf(entry, time)),
          durable:
            options.sync === "always" || entries.some(({ kind, durable }) => durable === true || durableKinds.has(kind))
        }
      } catch (error) {
        const detail = error instanceof Error ? error.message : "unknown fault"
        return resume(auditRefused(paths.log, "payload_invalid", `a payload is not JSON: ${detail}`))
      }
      queue.push(waiting)
      if (!flushIsDue) {
        flushIsDue = true
        queueMicrotask(flush)
      }
      // An append that is interrupted while it waits for its turn leaves no record.
      return Effect.sync(() => {
        queue = queue.filter((other) => other !== waiting)
      })
    })

  const note = (entry: AuditEntry): void => {
    if (closed) return
    try {
      queue.push({
        resume: ignored,
        records: [partsOf(entry, new Date(now()).toISOString())],
        durable: options.sync === "always"
      })
    } catch {
      // A payload that is no JSON is a fault of its builder; nobody waits who could be told.
      return
    }
    // The next append takes it along; without one it leaves by itself.
    noteTimer ??= setTimeout(() => {
      noteTimer = undefined
      if (queue.length > 0) flush()
    }, NOTE_WAIT_MS)
  }

  /** Writes what waits, as far as the lock can be had in time. */
  const drain: Effect.Effect<void> = Effect.suspend(() => {
    if (queue.length > 0) flush()
    return queue.length === 0 ? Effect.void : Effect.flatMap(Effect.sleep(DRAIN_STEP), () => drain)
  })

  const close: Effect.Effect<void> = Effect.flatMap(
    drain.pipe(Effect.interruptible, Effect.timeout(CLOSE_WAIT), Effect.ignore),
    () => {
      closed = true
      clearTimeout(retryTimer)
      clearTimeout(noteTimer)
      clearTimeout(syncTimer)
      failAll(auditRefused(paths.log, "closed", "it was closed"))
      const lastSync =
        written > synced
          ? Effect.async<void, AuditError>((resume) => {
              diskQueue.push({ write: written, resume })
              runSync()
            })
          : Effect.void
      return lastSync.pipe(
        Effect.interruptible,
        Effect.timeout(CLOSE_WAIT),
        Effect.catchAll((error) =>
          Effect.logWarning(`The audit log '${paths.log}' could not be synced: ${error.message}`)
        ),
        Effect.ensuring(Effect.sync(file.close))
      )
    }
  )

  return { append, note, close }
}

/**
 * One writer at a time for a file, across processes.
 *
 * The lock of `dir/name` is the file `dir/.name.lock`, created with O_EXCL, holding who holds it: pid, start
 * time (pids are reused), a nonce and the machine's identity. A live owner's lock is never touched.
 *
 * The lock of a dead owner is removed only by whoever holds the lock on that lock (`.name.lock.break`, the same
 * kind of lock) and has looked again under it; so of two that find it stale only one removes it, and never a
 * fresh lock of somebody else. An owner on another machine or in another PID namespace cannot be judged from
 * here; its lock is stale after ten minutes.
 *
 * Waiting uses the Effect Clock; holders in this process wake their waiters directly.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import * as Random from "effect/Random"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { SECOND_MS } from "../base/Units.ts"
import { FileError } from "./FileError.ts"
import { fileFault, systemCodeOf } from "./FileFault.ts"
import { hostIdentity } from "./HostIdentity.ts"
import * as Proc from "./Proc.ts"

/** How long a writer waits for its turn. */
export const LOCK_WAIT_MS = 5 * SECOND_MS
/** Pauses between attempts are spread over this range. */
const RETRY_MIN_MS = 5
const RETRY_MAX_MS = 30
/** A lock file without readable content is one whose writer died at once, or is about to write it. */
const GARBLED_STALE_MS = 2 * SECOND_MS
/** Age after which a lock of another machine counts as left behind. */
const FOREIGN_STALE_MS = 600 * SECOND_MS
/** Locks on locks on locks: each level means one more crash in the same instant. */
const MAX_DEPTH = 4

interface Holder {
  readonly pid: number
  readonly startTime: number
  readonly nonce: string
  readonly host: string
}

/** Makes the missing parents of a file, readable by the user only. Existing ones stay as they are. */
export const makeParents = (file: string): Effect.Effect<void, FileError> =>
  Effect.suspend(() => {
    const folder = path.dirname(file)
    try {
      fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
      return Effect.void
    } catch (error) {
      // An existing file in the place of a directory is reported as EEXIST.
      return fileFault("created", folder, systemCodeOf(error) === "EEXIST" ? notDirectory : error)
    }
  })

const notDirectory = Object.assign(new Error("not a directory"), { code: "ENOTDIR" })

let ownStart: number | undefined

const ownHolder = (): Holder => ({
  pid: process.pid,
  startTime: (ownStart ??= Proc.readStat(process.pid)?.startTime ?? 0),
  nonce: randomUUID(),
  host: hostIdentity()
})

const decode = (text: string): Holder | undefined => {
  const [pid, startTime, nonce, host, end] = text.split("\n")
  if (pid === undefined || startTime === undefined || nonce === undefined || host === undefined) return undefined
  return end === "" && /^\d+$/.test(pid) && /^\d+$/.test(startTime)
    ? { pid: Number(pid), startTime: Number(startTime), nonce, host }
    : undefined
}

const encode = (holder: Holder): string => `${holder.pid}\n${holder.startTime}\n${holder.nonce}\n${holder.host}\n`

/** What is at the lock's place. */
type Seen = { readonly text: string; readonly holder: Holder | undefined; readonly ageMs: number }

const see = (lock: string): Seen | undefined => {
  try {
    const text = fs.readFileSync(lock, "utf8")
    return { text, holder: decode(text), ageMs: Date.now() - fs.statSync(lock).mtimeMs }
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return undefined
    throw error
  }
}

const isStale = ({ holder, ageMs }: Seen): boolean => {
  if (holder === undefined) return ageMs > GARBLED_STALE_MS
  const here = ownHolder().host
  if (holder.host !== here) {
    const [name, boot] = holder.host.split("|")
    const [ownName, ownBoot] = here.split("|")
    // The same machine after a restart: nothing of before lives.
    return (name === ownName && boot !== ownBoot) || ageMs > FOREIGN_STALE_MS
  }
  if (Proc.available) return !Proc.isSameAlive(holder.pid, holder.startTime)
  try {
    process.kill(holder.pid, 0)
    return false
  } catch (error) {
    return systemCodeOf(error) === "ESRCH"
  }
}

/** Creates the lock file; false when there is one. */
const create = (lock: string, holder: Holder): boolean => {
  let handle: number
  try {
    handle = fs.openSync(lock, "wx", 0o600)
  } catch (error) {
    if (systemCodeOf(error) === "EEXIST") return false
    throw error
  }
  try {
    fs.writeSync(handle, encode(holder))
  } catch (error) {
    fs.rmSync(lock, { force: true })
    throw error
  } finally {
    fs.closeSync(handle)
  }
  // If this process slept so long in between that somebody took the empty file for a dead one, it is not ours.
  return see(lock)?.text === encode(holder)
}

/** Removes the lock if it is still this holder's. */
const release = (lock: string, holder: Holder): void => {
  try {
    if (see(lock)?.text === encode(holder)) fs.unlinkSync(lock)
  } catch {
    // It stays and is stale as soon as this process ends.
  }
}

/** One attempt; what is in the way when it failed. Throws what the system says. */
const attempt = (lock: string, holder: Holder, depth: number): Seen | "mine" | "gone" => {
  if (create(lock, holder)) return "mine"
  const seen = see(lock)
  if (seen === undefined) return "gone"
  if (!isStale(seen) || depth >= MAX_DEPTH) return seen
  const breaker = `${lock}.break`
  if (attempt(breaker, holder, depth + 1) !== "mine") return seen
  try {
    const again = see(lock)
    if (again !== undefined && again.text === seen.text && isStale(again)) fs.rmSync(lock, { force: true })
  } finally {
    release(breaker, holder)
  }
  return create(lock, holder) ? "mine" : seen
}

const waiters = new Map<string, Set<Deferred.Deferred<void>>>()

/** Is done when a holder in this process lets the lock go; made in the same step as the attempt that failed. */
const enqueue = (lock: string): Deferred.Deferred<void> => {
  const turn = Deferred.unsafeMake<void>(FiberId.none)
  waiters.set(lock, (waiters.get(lock) ?? new Set()).add(turn))
  return turn
}

const leave = (lock: string, turn: Deferred.Deferred<void>): void => {
  const all = waiters.get(lock)
  if (all?.delete(turn) === true && all.size === 0) waiters.delete(lock)
}

const wake = (lock: string): void => {
  const all = waiters.get(lock)
  waiters.delete(lock)
  for (const turn of all ?? []) Deferred.unsafeDone(turn, Effect.void)
}

const busy = (file: string, lock: string, seen: Seen | "gone"): FileError => {
  const holder = seen === "gone" ? undefined : seen.holder
  const name = holder === undefined ? "" : (Proc.readStat(holder.pid)?.command ?? "")
  const who = holder === undefined ? "another process" : `process ${holder.pid}${name === "" ? "" : ` (${name})`}`
  return new FileError({
    code: "SIGIL_FILE",
    reason: "locked",
    text: `'${file}' is being changed by ${who}, and did not become free within ${LOCK_WAIT_MS / SECOND_MS} seconds.`,
    fix: `Retry when it is done. If no such process is yours, remove '${lock}'.`,
    where: { file },
    ...(holder === undefined ? {} : { details: { holder_pid: holder.pid } })
  })
}

/** The lock file of a file. */
export const lockPathOf = (file: string): string => path.join(path.dirname(file), `.${path.basename(file)}.lock`)

/**
 * Runs an effect while no other process (or fiber) runs one under the same path; the path itself need not exist.
 * Waits up to `LOCK_WAIT_MS`, then fails with `SIGIL_FILE`, reason `locked`, naming the holder. Not reentrant.
 */
export const withLock = <A, E, R>(file: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | FileError, R> => {
  const lock = lockPathOf(file)
  return Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      yield* makeParents(file)
      const holder = ownHolder()
      const end = (yield* Clock.currentTimeMillis) + LOCK_WAIT_MS
      while (true) {
        const [outcome, turn] = yield* Effect.try({
          try: () => {
            const result = attempt(lock, holder, 0)
            return [result, result === "mine" ? undefined : enqueue(lock)] as const
          },
          catch: (error) => fileFault("locked", file, error)
        })
        if (outcome === "mine" || turn === undefined) break
        const left = end - (yield* Clock.currentTimeMillis)
        const pause = Math.min(left, yield* Random.nextIntBetween(RETRY_MIN_MS, RETRY_MAX_MS))
        // Only the waiting can be interrupted: a lock that was got is always released.
        yield* Effect.ensuring(
          left <= 0 ? busy(file, lock, outcome) : restore(Effect.raceFirst(Effect.sleep(pause), Deferred.await(turn))),
          Effect.sync(() => leave(lock, turn))
        )
      }
      return yield* Effect.ensuring(
        restore(effect),
        Effect.sync(() => {
          release(lock, holder)
          wake(lock)
        })
      )
    })
  )
}

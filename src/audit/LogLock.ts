/**
 * One writer of a log at a time, across processes, cheap enough to be kept over a burst of records.
 *
 * The lock is a symbolic link that is made in one step and whose target says who holds it: pid, start time (pids
 * are reused), machine and a nonce. Nobody has to read or write a file for it, and a killed holder never blocks
 * others: whoever sees that the holder is gone removes the link, under a lock on that lock, having looked again.
 * A live holder's lock is never touched. `FileLock.ts` does the same for edits of files, for three times the
 * price per turn, as an Effect around an Effect; here the holder decides per batch how long to keep it.
 *
 * Who waits says so by a mark beside the lock; a holder that is busy looks for it and hands over.
 */
import { createHash, randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { SECOND_MS } from "../base/Units.ts"
import { systemCodeOf } from "../platform/FileFault.ts"
import { hostIdentity } from "../platform/HostIdentity.ts"
import * as Proc from "../platform/Proc.ts"

/** Age after which the lock of another machine counts as left behind. */
const FOREIGN_STALE_MS = 600 * SECOND_MS
/** Locks on locks: each level means one more crash in the same instant. */
const MAX_DEPTH = 4
/** Hex digits that tell machines apart. */
const HOST_DIGITS = 12

/** The lock of one log, in one process. Everything is synchronous; `attempt` throws what the system says. */
export interface LogLock {
  /** Tries once. True when the lock is held now. */
  readonly attempt: () => boolean
  /** Lets go. Harmless when it is not held. */
  readonly release: () => void
  readonly isHeld: () => boolean
  /** Says that this process waits. */
  readonly want: () => void
  /** Whether somebody waits; takes the mark away, so whoever still waits has to say so again. */
  readonly isWanted: () => boolean
  /** Who is in the way, in words for an error text. */
  readonly holder: () => string
}

/** The host's identity in the few digits that fit a link's target. */
const hostKey = (): string => createHash("sha256").update(hostIdentity()).digest("hex").slice(0, HOST_DIGITS)

let ownPrefix: string | undefined
/** `PID-START-HOST-`: this process. */
const own = (): string => (ownPrefix ??= `${process.pid}-${Proc.readStat(process.pid)?.startTime ?? 0}-${hostKey()}-`)

interface Holder {
  readonly pid: number
  readonly startTime: number
  readonly host: string
}

const decode = (target: string): Holder | undefined => {
  const match = /^(\d+)-(\d+)-([0-9a-f]+)-[0-9a-f]+$/.exec(path.basename(target))
  return match === null ? undefined : { pid: Number(match[1]), startTime: Number(match[2]), host: match[3] ?? "" }
}

const targetOf = (link: string): string | undefined => {
  try {
    return fs.readlinkSync(link)
  } catch (error) {
    const code = systemCodeOf(error)
    if (code === "ENOENT") return undefined
    // Something else than a link is in the lock's place; it is nobody's lock, and not ours to remove.
    if (code === "EINVAL") return ""
    throw error
  }
}

const isStale = (link: string, target: string): boolean => {
  const holder = decode(target)
  if (holder === undefined) return false
  if (!own().includes(`-${holder.host}-`)) {
    const stat = fs.lstatSync(link, { throwIfNoEntry: false })
    return stat !== undefined && Date.now() - stat.mtimeMs > FOREIGN_STALE_MS
  }
  if (Proc.available) return !Proc.isSameAlive(holder.pid, holder.startTime)
  try {
    process.kill(holder.pid, 0)
    return false
  } catch (error) {
    return systemCodeOf(error) === "ESRCH"
  }
}

/** Makes the link; false when there is one. */
const create = (link: string, target: string): boolean => {
  try {
    // The type matters on Windows only, where a junction needs no privilege.
    fs.symlinkSync(target, link, "junction")
    return true
  } catch (error) {
    if (systemCodeOf(error) === "EEXIST") return false
    throw error
  }
}

const remove = (file: string): void => {
  try {
    fs.unlinkSync(file)
  } catch (error) {
    if (systemCodeOf(error) !== "ENOENT") throw error
  }
}

const acquire = (link: string, target: string, depth: number): boolean => {
  if (create(link, target)) return true
  const seen = targetOf(link)
  if (seen === undefined) return create(link, target)
  if (depth >= MAX_DEPTH || !isStale(link, seen)) return false
  const breaker = `${link}.break`
  if (!acquire(breaker, target, depth + 1)) return false
  try {
    if (targetOf(link) === seen && isStale(link, seen)) remove(link)
  } finally {
    remove(breaker)
  }
  return create(link, target)
}

/** The lock `NAME.lock` of the log `NAME.jsonl`. Nothing is touched before the first attempt. */
export const make = (log: string): LogLock => {
  const { dir, name } = path.parse(log)
  const link = path.join(dir, `${name}.lock`)
  const mark = path.join(dir, `${name}.waiting`)
  let held: string | undefined
  return {
    isHeld: () => held !== undefined,
    attempt: () => {
      if (held !== undefined) return true
      // A nonce for each turn: a link seen twice is the same turn of the same holder.
      const target = own() + randomBytes(4).toString("hex")
      if (!acquire(link, target, 0)) return false
      held = target
      return true
    },
    release: () => {
      if (held === undefined) return
      const mine = held
      held = undefined
      try {
        // After a long sleep of this machine another one may have taken it.
        if (targetOf(link) === mine) remove(link)
      } catch {
        // It stays, and is stale as soon as this process ends.
      }
    },
    want: () => {
      try {
        fs.closeSync(fs.openSync(mark, "w", 0o600))
      } catch {
        // Without the mark the turn comes when the holder pauses.
      }
    },
    isWanted: () => {
      if (!fs.existsSync(mark)) return false
      try {
        remove(mark)
      } catch {
        // Seen all the same.
      }
      return true
    },
    holder: () => {
      try {
        const seen = targetOf(link)
        if (seen === undefined) return "another process kept it"
        const holder = decode(seen)
        if (holder === undefined) return `'${link}' is in the way and is not a lock of sigil`
        const command = Proc.readStat(holder.pid)?.command
        return `process ${holder.pid}${command === undefined ? "" : ` (${command})`} keeps it`
      } catch {
        return "another process kept it"
      }
    }
  }
}

/**
 * The log on the disk, as its one writer of the moment sees it: where the chain stands, appending, rotating,
 * repairing what a killed process left. Everything but `sync` and `close` must run under the log's lock.
 *
 * Invariants: a batch is one write, and what does not get in whole is cut off again; the head is written after
 * the records it counts, so it may lag behind them (and is then moved on from the log's end) but is ahead only
 * when records are gone. In that case the chain goes on from the head, so that the gap stays visible for ever.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { MIB } from "../base/Units.ts"
import { auditRefused } from "./AuditError.ts"
import { emptyChain, type Link, makeLine, type Parts, parseLine } from "./AuditRecord.ts"
import { backwardLines } from "./Lines.ts"
import { decodeHead, encodeHead, type Head, type LogPaths, rotatedName, rotatedNumbers } from "./LogFiles.ts"

/** Size at which a log is rotated (spec section 13). */
export const ROTATE_BYTES = 64 * MIB
/** Bytes of one write at most; one record may be larger. */
const BATCH_BYTES = MIB
const PRIVATE_MODE = 0o600
const HEAD_BYTES = 256
const { O_APPEND, O_CREAT, O_RDWR } = fs.constants
/** Zero where the system has no such flag. */
const O_NOFOLLOW: number = fs.constants.O_NOFOLLOW ?? 0

/** What had to be repaired, to be noted by a record. */
export interface Repair {
  readonly what: "torn_line" | "head_missing"
  /** Where the torn bytes are now. */
  readonly file?: string
  readonly bytes?: number
}

/** How far a batch got. */
export interface Written {
  /** Records that are in the log, from the first on. */
  readonly count: number
  /** Why the others are not. */
  readonly error?: unknown
}

/** The writer's view of a log. Throws what the system says, or an `AuditError`. */
export interface LogFile {
  /** Learns what others wrote since; repairs. To be called each time the lock was got. */
  readonly refresh: () => ReadonlyArray<Repair>
  /** Appends records to the chain, rotating where needed. Never throws. */
  readonly write: (records: ReadonlyArray<Parts>) => Written
  /** Puts on the disk what was written so far. Needs no lock. */
  readonly sync: () => Promise<void>
  /** Trusts nothing that is remembered. */
  readonly forget: () => void
  readonly close: () => void
}

/** An open file that stays open while the disk works on it. */
interface Open {
  readonly fd: number
  readonly stat: fs.Stats
  users: number
  retired: boolean
}

const openFile = (file: string, flags: number): Open => {
  let fd: number
  try {
    fd = fs.openSync(file, flags | O_NOFOLLOW, PRIVATE_MODE)
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ELOOP") {
      throw auditRefused(file, "symlink", "it is a symbolic link", "Replace the link by a file, or remove it.")
    }
    throw error
  }
  try {
    const stat = fs.fstatSync(fd)
    if (!stat.isFile()) throw auditRefused(file, "not_a_file", "it is not a regular file", "Move it away.")
    if ((stat.mode & 0o077) !== 0) fs.fchmodSync(fd, PRIVATE_MODE)
    return { fd, stat, users: 0, retired: false }
  } catch (error) {
    fs.closeSync(fd)
    throw error
  }
}

const closeFile = (open: Open | undefined): void => {
  if (open === undefined || open.retired) return
  open.retired = true
  if (open.users === 0) fs.closeSync(open.fd)
}

const isSame = (open: Open | undefined, stat: fs.Stats | undefined): boolean =>
  open !== undefined && stat !== undefined && open.stat.ino === stat.ino && open.stat.dev === stat.dev

const statOf = (file: string): fs.Stats | undefined => fs.lstatSync(file, { throwIfNoEntry: false })

/** Makes new names durable; not every file system can. */
const syncDirectory = (folder: string): void => {
  try {
    const fd = fs.openSync(folder, "r")
    try {
      fs.fsyncSync(fd)
    } finally {
      fs.closeSync(fd)
    }
  } catch {
    // The content is safe; only the moment of the name is not.
  }
}

const writeWhole = (fd: number, bytes: Uint8Array, position: number | null): void => {
  let done = 0
  while (done < bytes.length) {
    done += fs.writeSync(fd, bytes, done, bytes.length - done, position === null ? null : position + done)
  }
}

/** The last line of a file that is a record. */
const lastLink = (fd: number, size: number): Link | undefined => {
  for (const line of backwardLines(fd, size)) {
    const record = line.complete ? parseLine(line.bytes) : undefined
    if (record !== undefined) return { count: record.seq, hash: record.hash }
  }
  return undefined
}

const lastLinkOf = (file: string): Link | undefined => {
  const fd = fs.openSync(file, "r")
  try {
    return lastLink(fd, fs.fstatSync(fd).size)
  } finally {
    fs.closeSync(fd)
  }
}

/** Makes the writer's view of a log; nothing is touched before the first `refresh`. */
export const make = (paths: LogPaths, rotateBytes: number = ROTATE_BYTES): LogFile => {
  let log: Open | undefined
  let head: Open | undefined
  /** Bytes of the present file, as far as this process knows. */
  let size = -1
  let chain: Link = emptyChain

  const forget = (): void => {
    closeFile(log)
    closeFile(head)
    log = undefined
    head = undefined
    size = -1
  }

  const writeHead = (open: Open, link: Link, bytes: number): void =>
    writeWhole(open.fd, Buffer.from(encodeHead({ ...link, bytes })), 0)

  const readHead = (): Head | undefined => {
    if (head === undefined) return undefined
    const buffer = Buffer.alloc(HEAD_BYTES)
    return decodeHead(buffer.toString("utf8", 0, fs.readSync(head.fd, buffer, 0, HEAD_BYTES, 0)))
  }

  /** Writes the head whole, making the file where it is missing. */
  const putHead = (link: Link, bytes: number): void => {
    if (head !== undefined) {
      writeHead(head, link, bytes)
      fs.ftruncateSync(head.fd, encodeHead({ ...link, bytes }).length)
      return
    }
    const temporary = `${paths.head}.tmp`
    fs.rmSync(temporary, { force: true })
    const open = openFile(temporary, O_RDWR | O_CREAT)
    try {
      writeHead(open, link, bytes)
      fs.renameSync(temporary, paths.head)
    } catch (error) {
      closeFile(open)
      fs.rmSync(temporary, { force: true })
      throw error
    }
    head = open
  }

  /** Moves an incomplete last line out of the log. */
  const repairTorn = (open: Open, bytes: number): Repair | undefined => {
    const last = backwardLines(open.fd, bytes).next().value
    if (last === undefined || last.complete) return undefined
    const { dir, name } = path.parse(paths.log)
    const file = path.join(dir, `${name}.torn`)
    const aside = openFile(file, O_RDWR | O_CREAT | O_APPEND)
    try {
      writeWhole(aside.fd, Buffer.concat([last.bytes, Buffer.from("\n")]), null)
      fs.fdatasyncSync(aside.fd)
    } finally {
      closeFile(aside)
    }
    fs.ftruncateSync(open.fd, last.start)
    return { what: "torn_line", file, bytes: bytes - last.start }
  }

  /** The end of the log itself, in the present file or the newest rotated one that has a record. */
  const lastOfLog = (open: Open, bytes: number): Link | undefined => {
    const here = lastLink(open.fd, bytes)
    if (here !== undefined) return here
    for (const number of rotatedNumbers(paths.log).toReversed()) {
      const found = lastLinkOf(rotatedName(paths.log, number))
      if (found !== undefined) return found
    }
    return undefined
  }

  const refresh = (): ReadonlyArray<Repair> => {
    const now = statOf(paths.log)
    const headNow = statOf(paths.head)
    if (isSame(log, now) && isSame(head, headNow) && now?.size === size) return []
    if (!isSame(log, now) || !isSame(head, headNow)) forget()
    const open = (log ??= openFile(paths.log, O_RDWR | O_CREAT | O_APPEND))
    if (head === undefined && headNow !== undefined) head = openFile(paths.head, O_RDWR)
    if (now === undefined) syncDirectory(path.dirname(paths.log))

    let bytes = fs.fstatSync(open.fd).size
    const repairs: Array<Repair> = []
    const torn = repairTorn(open, bytes)
    if (torn !== undefined) {
      repairs.push(torn)
      bytes = fs.fstatSync(open.fd).size
    }
    const told = readHead()
    if (told !== undefined && told.bytes === bytes) chain = told
    else {
      const found = lastOfLog(open, bytes)
      if (told === undefined && found !== undefined) repairs.push({ what: "head_missing" })
      // Behind: a writer was killed before it moved the head. Ahead: records are gone, and the gap must show.
      chain = told === undefined || (found !== undefined && found.count > told.count) ? (found ?? emptyChain) : told
      putHead(chain, bytes)
    }
    size = bytes
    return repairs
  }

  const rotate = (): void => {
    if (log === undefined) return
    // All of the old file is on the disk before its name changes; nobody has to look for it later.
    fs.fdatasyncSync(log.fd)
    fs.renameSync(paths.log, rotatedName(paths.log, (rotatedNumbers(paths.log).at(-1) ?? 0) + 1))
    closeFile(log)
    log = undefined
    log = openFile(paths.log, O_RDWR | O_CREAT | O_APPEND)
    size = 0
    putHead(chain, 0)
    syncDirectory(path.dirname(paths.log))
  }

  /** Writes lines that are in the chain already, with one write, and the head after them. */
  const append = (text: string, after: Link): void => {
    if (log === undefined || head === undefined) throw auditRefused(paths.log, "closed", "it is not open")
    const bytes = Buffer.from(text)
    try {
      writeWhole(log.fd, bytes, null)
      writeHead(head, after, size + bytes.length)
    } catch (error) {
      try {
        fs.ftruncateSync(log.fd, size)
      } catch {
        // What stays is whole records or a torn line; the next turn repairs either.
      }
      throw error
    }
    size += bytes.length
    chain = after
  }

  const write = (records: ReadonlyArray<Parts>): Written => {
    let count = 0
    try {
      while (count < records.length) {
        let text = ""
        let bytes = 0
        let link = chain
        let next = count
        for (let parts = records[next]; parts !== undefined; parts = records[++next]) {
          const { line, after } = makeLine(parts, link)
          const lineBytes = Buffer.byteLength(line) + 1
          if (bytes > 0 && bytes + lineBytes > BATCH_BYTES) break
          if (size + bytes + lineBytes > rotateBytes && size + bytes > 0) break
          text += `${line}\n`
          bytes += lineBytes
          link = after
        }
        if (next === count) rotate()
        else {
          append(text, link)
          count = next
        }
      }
      return { count }
    } catch (error) {
      forget()
      return { count, error }
    }
  }

  const sync = async (): Promise<void> => {
    // A file that was let go (after a fault) is opened again; what was rotated away is on the disk already.
    const open = log ?? openFile(paths.log, O_RDWR)
    if (open !== log) open.retired = true
    open.users += 1
    await new Promise<void>((resolve, reject) => {
      fs.fdatasync(open.fd, (error) => {
        open.users -= 1
        if (open.retired && open.users === 0) fs.closeSync(open.fd)
        if (error === null) resolve()
        else reject(error)
      })
    })
  }

  return { refresh, write, sync, forget, close: forget }
}

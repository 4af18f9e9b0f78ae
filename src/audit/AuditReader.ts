/**
 * Reads a log without writing anything: pages for `audit show`, the end for `audit tail`.
 *
 * What is read is what was there when the reading began: the files are opened first, so a rotation meanwhile
 * changes nothing. Lines that are not records are counted and left out; `Verify.ts` judges them.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import type { FileError } from "../platform/FileError.ts"
import { fileFault, systemCodeOf } from "../platform/FileFault.ts"
import { type AuditRecord, parseLine } from "./AuditRecord.ts"
import { logFiles } from "./LogFiles.ts"
import { backwardLines, type FileLine, forwardLines } from "./Lines.ts"

/** Lines that are read before others may run. */
const LINES_AT_A_TIME = 512
/** A FIFO in the log's place must not make us wait. */
const OPEN_FLAGS = fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0)

/** One file, open for reading, with the size it had. */
export interface OpenFile {
  readonly file: string
  readonly fd: number
  readonly size: number
}

/** Opens every file of a log, oldest first, for as long as the scope lives; none is no failure. */
export const openAll = (log: string): Effect.Effect<ReadonlyArray<OpenFile>, FileError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        const opened: Array<OpenFile> = []
        try {
          for (const file of logFiles(log)) {
            const fd = fs.openSync(file, OPEN_FLAGS)
            opened.push({ file, fd, size: fs.fstatSync(fd).size })
          }
        } catch (error) {
          for (const { fd } of opened) fs.closeSync(fd)
          throw error
        }
        return opened
      },
      catch: (error) => fileFault("read", log, error)
    }),
    (opened) =>
      Effect.sync(() => {
        for (const { fd } of opened) fs.closeSync(fd)
      })
  )

/**
 * Hands lines to `take` until it returns false or there are no more; lets others run between blocks of lines.
 * Succeeds with whether there were no more.
 */
export const eachLine = (
  file: string,
  lines: Iterator<FileLine, void, void>,
  take: (line: FileLine) => boolean
): Effect.Effect<boolean, FileError> => {
  const block = Effect.try({
    try: (): "more" | "end" | "stopped" => {
      for (let count = 0; count < LINES_AT_A_TIME; count += 1) {
        const next = lines.next()
        if (next.done === true) return "end"
        if (!take(next.value)) return "stopped"
      }
      return "more"
    },
    catch: (error) => fileFault("read", file, error)
  })
  const step: Effect.Effect<boolean, FileError> = Effect.flatMap(block, (state) =>
    state === "more" ? Effect.zipRight(Effect.yieldNow(), step) : Effect.succeed(state === "end")
  )
  return step
}

/** What is looked for. */
export interface Query {
  /** Exact server name. */
  readonly server?: string | undefined
  readonly kind?: string | undefined
  /** Records from this number on, oldest first; without it the newest ones. */
  readonly since?: number | undefined
  /** Records at most. */
  readonly limit: number
}

/** What was found, in the order of the log. */
export interface Page {
  readonly records: ReadonlyArray<AuditRecord>
  /** `since` of the page after this one; absent when there is none. */
  readonly next?: number
  /** Lines that are not records. */
  readonly damaged: number
}

const matches = (query: Query, record: AuditRecord): boolean =>
  (query.server === undefined || record.server === query.server) &&
  (query.kind === undefined || record.kind === query.kind)

/** The newest records that match, and not older than `since` where that is given. */
const newest = (files: ReadonlyArray<OpenFile>, query: Query): Effect.Effect<Page, FileError> =>
  Effect.gen(function* () {
    const found: Array<AuditRecord> = []
    let damaged = 0
    const take = (line: FileLine): boolean => {
      if (found.length >= query.limit) return false
      const record = parseLine(line.bytes)
      if (record === undefined) damaged += 1
      else if (query.since !== undefined && record.seq < query.since) return false
      else if (matches(query, record)) found.push(record)
      return true
    }
    for (const { file, fd, size } of files.toReversed()) {
      if (!(yield* eachLine(file, backwardLines(fd, size), take))) break
    }
    return { records: found.toReversed(), damaged }
  })

/** Number of the first record of a file. */
const firstOf = (opened: OpenFile): Effect.Effect<number | undefined, FileError> =>
  Effect.try({
    try: () => {
      const line = forwardLines(opened.fd, opened.size).next().value
      return line === undefined ? undefined : parseLine(line.bytes)?.seq
    },
    catch: (error) => fileFault("read", opened.file, error)
  })

/** Files from the one that holds record `since` on. */
const filesSince = (files: ReadonlyArray<OpenFile>, since: number): Effect.Effect<ReadonlyArray<OpenFile>, FileError> =>
  Effect.map(Effect.forEach(files, firstOf), (firsts) => {
    const begin = firsts.findLastIndex((first) => first !== undefined && first <= since)
    return begin < 0 ? files : files.slice(begin)
  })

const pageSince = (files: ReadonlyArray<OpenFile>, query: Query, since: number): Effect.Effect<Page, FileError> =>
  Effect.gen(function* () {
    const records: Array<AuditRecord> = []
    let damaged = 0
    let next: number | undefined
    const take = (line: FileLine): boolean => {
      const record = parseLine(line.bytes)
      if (record === undefined) damaged += 1
      else if (record.seq >= since && matches(query, record)) {
        if (records.length < query.limit) records.push(record)
        else {
          next = record.seq
          return false
        }
      }
      return true
    }
    for (const { file, fd, size } of yield* filesSince(files, since)) {
      if (!(yield* eachLine(file, forwardLines(fd, size), take))) break
    }
    return { records, damaged, ...(next === undefined ? {} : { next }) }
  })

/** One page of the log at `log`; empty where there is no log. Fails with `SIGIL_FILE`. */
export const read = (log: string, query: Query): Effect.Effect<Page, FileError> =>
  Effect.scoped(
    Effect.flatMap(openAll(log), (files) =>
      query.since === undefined ? newest(files, query) : pageSince(files, query, query.since)
    )
  )

/** Everything that matches from record `since` on, for following a log that grows. Reads only the new end. */
export const readAfter = (log: string, query: Query & { readonly since: number }): Effect.Effect<Page, FileError> =>
  Effect.scoped(Effect.flatMap(openAll(log), (files) => newest(files, query)))

/** Whether there is a log. */
export const exists = (log: string): Effect.Effect<boolean, FileError> =>
  Effect.try({ try: () => logFiles(log).length > 0, catch: (error) => fileFault("read", log, error) })

/** What changes whenever the log grows. */
export const pulse = (log: string): Effect.Effect<string, FileError> =>
  Effect.try({
    try: () => {
      try {
        const { ino, size } = fs.statSync(log)
        return `${ino}:${size}`
      } catch (error) {
        if (systemCodeOf(error) === "ENOENT") return ""
        throw error
      }
    },
    catch: (error) => fileFault("read", log, error)
  })

/**
 * Verifies a log: every record still says what it said, follows the one before it, and the last one is the one
 * that the head names (spec section 13). Changes nothing.
 *
 * The log may be ahead of its head by what a killed process wrote; such records fit the chain, and the next
 * start moves the head on. A head that is ahead of the log means that records are gone.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import { SECOND_MS } from "../base/Units.ts"
import type { FileError } from "../platform/FileError.ts"
import { fileFault, systemCodeOf } from "../platform/FileFault.ts"
import { eachLine, openAll, type OpenFile } from "./AuditReader.ts"
import { emptyChain, type Link, verifyLine } from "./AuditRecord.ts"
import { forwardLines } from "./Lines.ts"
import { decodeHead, type Head, type LogPaths } from "./LogFiles.ts"
import * as LogLock from "./LogLock.ts"

/** Faults that are told one by one; a log that was rewritten has as many as lines. */
export const MAX_FAULTS = 100
/** How long the writers may keep the log before it is read beside them. */
const LOCK_WAIT_MS = 5 * SECOND_MS
const RETRY_MS = 2
/** More is no head. */
const MAX_HEAD_BYTES = 4_096

/** One thing that is wrong. */
export interface Fault {
  readonly file: string
  /** Line of the file, from 1. */
  readonly line: number
  readonly why: string
}

/** The verdict. */
export interface Verification {
  readonly ok: boolean
  /** Records that were read. */
  readonly records: number
  /** What the head says; absent when it is missing or unreadable. */
  readonly head: Link | undefined
  /** At most `MAX_FAULTS`, in the order of the log. */
  readonly faults: ReadonlyArray<Fault>
  /** Faults beyond those. */
  readonly moreFaults: number
  /** Records after the head: written by a process that was killed before it moved the head. */
  readonly unheaded: number
}

type HeadFile =
  | { readonly _tag: "Missing" }
  | { readonly _tag: "Damaged" }
  | { readonly _tag: "Head"; readonly head: Head }

const readHead = (file: string): Effect.Effect<HeadFile, FileError> =>
  Effect.try({
    try: (): HeadFile => {
      let text: string
      try {
        if (fs.statSync(file).size > MAX_HEAD_BYTES) return { _tag: "Damaged" }
        text = fs.readFileSync(file, "utf8")
      } catch (error) {
        if (systemCodeOf(error) === "ENOENT") return { _tag: "Missing" }
        throw error
      }
      const head = decodeHead(text)
      return head === undefined ? { _tag: "Damaged" } : { _tag: "Head", head }
    },
    catch: (error) => fileFault("read", file, error)
  })

/** Holds the log's lock where it can be had: a read-only log is verified all the same. */
const quietly = <A, E, R>(log: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.suspend(() => {
      const lock = LogLock.make(log)
      const attempt = Effect.sync(() => {
        try {
          return lock.attempt() ? "held" : "busy"
        } catch {
          return "impossible"
        }
      })
      const wait = (left: number): Effect.Effect<void> =>
        Effect.flatMap(attempt, (state) => {
          if (state !== "busy" || left <= 0) return Effect.void
          lock.want()
          return Effect.zipRight(Effect.sleep(RETRY_MS), wait(left - RETRY_MS))
        })
      return Effect.as(Effect.interruptible(wait(LOCK_WAIT_MS)), lock)
    }),
    () => effect,
    (lock) => Effect.sync(lock.release)
  )

/** The head and the files as they were at one moment. */
const snapshot = (
  paths: LogPaths
): Effect.Effect<{ readonly head: HeadFile; readonly files: ReadonlyArray<OpenFile> }, FileError, Scope.Scope> =>
  quietly(
    paths.log,
    Effect.gen(function* () {
      // The head first: without the lock the log can only be further than it.
      const head = yield* readHead(paths.head)
      return { head, files: yield* openAll(paths.log) }
    })
  )

/** Verifies every file of a log. Fails only when one cannot be read (`SIGIL_FILE`). */
export const verify = (paths: LogPaths): Effect.Effect<Verification, FileError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { head, files } = yield* snapshot(paths)
      const faults: Array<Fault> = []
      let moreFaults = 0
      let records = 0
      let before: Link = emptyChain
      /** Hash of the record that the head names. */
      let atHead: string | undefined
      let last: { readonly file: string; readonly line: number } = { file: paths.log, line: 1 }
      const fault = (at: { readonly file: string; readonly line: number }, why: string): void => {
        if (faults.length < MAX_FAULTS) faults.push({ ...at, why })
        else moreFaults += 1
      }

      for (const { file, fd, size } of files) {
        let line = 0
        yield* eachLine(file, forwardLines(fd, size), ({ bytes, complete }) => {
          line += 1
          const at = { file, line }
          if (!complete) {
            fault(at, "the last line is incomplete; the next start of sigil moves it aside")
            return true
          }
          const verified = verifyLine(bytes, before)
          for (const why of verified.faults) fault(at, why)
          if (verified.record !== undefined) {
            records += 1
            last = at
            if (verified.record.kind === "audit_log_repaired" && verified.record.payload["what"] === "head_missing") {
              fault(at, "the head was missing here: whether records before this one were removed cannot be told")
            }
            before = { count: verified.record.seq, hash: verified.record.hash }
            if (head._tag === "Head" && before.count === head.head.count) atHead = before.hash
          }
          return true
        })
      }

      const place = { file: paths.head, line: 1 }
      if (head._tag === "Damaged")
        fault(place, "the head is damaged: whether the last records are still there cannot be told")
      else if (head._tag === "Missing") {
        if (files.length > 0)
          fault(place, "the head is missing: whether the last records are still there cannot be told")
      } else if (before.count < head.head.count) {
        fault(last, `records ${before.count + 1} to ${head.head.count}, which the head counts, are missing at the end`)
      } else if (head.head.count > 0 && atHead !== head.head.hash) {
        fault(last, `record ${head.head.count} is not the one that the head names: it was changed or replaced`)
      }
      return {
        ok: faults.length === 0,
        records,
        head: head._tag === "Head" ? { count: head.head.count, hash: head.head.hash } : undefined,
        faults,
        moreFaults,
        unheaded: head._tag === "Head" ? Math.max(0, before.count - head.head.count) : 0
      }
    })
  )

/** Helpers for tests of the audit log. */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { AuditLog, type AuditLogOptions, layer } from "../../../src/audit/AuditLog.ts"
import type { AuditEntry, AuditRecord } from "../../../src/audit/AuditRecord.ts"
import { type LogPaths, logFiles } from "../../../src/audit/LogFiles.ts"

/** A folder that goes with the scope. */
export const folder = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "sigil-audit-"))),
  (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true }))
)

/** Where the log of a folder is. */
export const pathsIn = (at: string): LogPaths => ({
  log: path.join(at, "state", "audit.jsonl"),
  head: path.join(at, "state", "audit.head")
})

/** A small entry that names itself. */
export const entry = (name: string, more: Partial<AuditEntry> = {}): AuditEntry => ({
  kind: "tool_execution_started",
  payload: { name },
  ...more
})

/** Runs a program over a log of these paths, which is closed after it. */
export const withLog =
  (paths: LogPaths, options: Partial<AuditLogOptions> = {}) =>
  <A, E>(program: Effect.Effect<A, E, AuditLog>): Effect.Effect<A, E> =>
    Effect.provide(program, layer(paths, { sync: "write", run: "run", ...options }))

/** Appends entries of these names, one after the other. */
export const appendAll = (names: ReadonlyArray<string>) =>
  Effect.flatMap(AuditLog, (log) => Effect.forEach(names, (name) => log.append(entry(name)), { discard: true }))

/** Every record of a log, through all files. */
export const recordsOf = (paths: LogPaths): ReadonlyArray<AuditRecord> =>
  logFiles(paths.log).flatMap((file) =>
    fs
      .readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line): AuditRecord => JSON.parse(line))
  )

/** The names in the payloads of a log. */
export const namesOf = (paths: LogPaths): ReadonlyArray<unknown> =>
  recordsOf(paths).map(({ payload }) => payload["name"])

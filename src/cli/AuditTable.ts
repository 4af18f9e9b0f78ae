/** What the audit commands share: the place of the log, and records as a table. */
import * as Effect from "effect/Effect"
import type { AuditRecord } from "../audit/AuditRecord.ts"
import { summaryOf } from "../audit/Summary.ts"
import { Locations } from "../config/Locations.ts"
import { cyan, dim, type Line } from "./Markup.ts"
import { snapshot } from "./Session.ts"

/** The log of this run's workspace. */
export const auditPaths = Effect.gen(function* () {
  const { workspace } = yield* snapshot
  const locations = yield* Locations
  return { workspace, log: locations.auditLog(workspace), head: locations.auditHead(workspace) }
})

/** Names of the columns. */
export const columns = ["SEQ", "TIME", "KIND", "SERVER", "CALL", "WHAT"]

/** Cells of one record. Escaped by whoever prints them. */
export const cellsOf = (record: AuditRecord): ReadonlyArray<Line> => [
  String(record.seq),
  dim(record.time),
  cyan(record.kind),
  record.server ?? "",
  record.call ?? "",
  summaryOf(record)
]

/** What is said where nothing was recorded yet. */
export const nothingYet = (workspace: string): string =>
  `Nothing has been recorded for ${workspace} yet: the audit log begins with the first call or decision.`

/** What is said about lines that are not records. */
export const damagedNote = (damaged: number): string =>
  `${damaged} line${damaged === 1 ? " is" : "s are"} not readable as records; run 'sigil audit verify'.`

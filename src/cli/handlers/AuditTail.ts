/** `sigil audit tail`: the last records; with `--follow` new ones until it is interrupted. Writes nothing. */
import * as Effect from "effect/Effect"
import * as AuditReader from "../../audit/AuditReader.ts"
import type { AuditRecord } from "../../audit/AuditRecord.ts"
import { summaryOf } from "../../audit/Summary.ts"
import { escapeLine } from "../../base/Display.ts"
import * as Declarations from "../../runtime/Declarations.ts"
import { auditPaths, cellsOf, columns, damagedNote, nothingYet } from "../AuditTable.ts"
import type { Input } from "../commands/AuditTail.ts"
import type { Handler } from "../Handler.ts"
import { cyan, dim, type Line } from "../Markup.ts"
import { Output } from "../Output.ts"
import { runtimeOptions } from "../Session.ts"
import { usage } from "../UsageError.ts"

/** Between two looks at a log that is followed. */
const LOOK_EVERY = "200 millis"

/** A record that comes later: the columns of a table cannot be known beforehand. */
const lineOf = (record: AuditRecord): Line => [
  `${record.seq}  `,
  dim(record.time),
  "  ",
  cyan(escapeLine(record.kind)),
  `  ${[record.server ?? "", record.call ?? "", summaryOf(record)]
    .filter((text) => text !== "")
    .map(escapeLine)
    .join("  ")}`
]

/** Prints what comes after record `seen`, for ever. */
const follow = (log: string, seen: number) =>
  Effect.gen(function* () {
    const output = yield* Output
    let last = seen
    let pulse = ""
    return yield* Effect.gen(function* () {
      const now = yield* AuditReader.pulse(log)
      if (now !== pulse) {
        pulse = now
        const { records } = yield* AuditReader.readAfter(log, { since: last + 1, limit: Number.POSITIVE_INFINITY })
        yield* output.text(records.map(lineOf))
        last = records.at(-1)?.seq ?? last
      }
      yield* Effect.sleep(LOOK_EVERY)
    }).pipe(Effect.forever)
  })

/** The handler. */
export const handler: Handler<Input> = ({ options }) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    return yield* Effect.gen(function* () {
      const output = yield* Output
      if (options.follow && output.json) {
        return yield* usage(["audit", "tail"], "--follow never ends, so it cannot give one JSON document.", {
          fix: "Leave --follow or --json out; 'sigil audit show --since SEQ --json' reads on from a record."
        })
      }
      const { workspace, log } = yield* auditPaths
      const { records, damaged } = yield* AuditReader.read(log, { limit: Math.max(options.lines, 1) })
      const shown = options.lines === 0 ? [] : records
      yield* output.document("audit", { schema: "sigil.audit/1", workspace, file: log, records: shown })
      if (damaged > 0) yield* output.note(damagedNote(damaged))
      if (records.length === 0 && !(yield* AuditReader.exists(log))) yield* output.text([nothingYet(workspace)])
      if (shown.length > 0) yield* output.table(columns, shown.map(cellsOf))
      return options.follow ? yield* follow(log, records.at(-1)?.seq ?? 0) : 0
    }).pipe(Effect.provide(Declarations.layer(run)))
  })

/** `sigil audit show`: one page of the audit log. Starts nothing, writes nothing. */
import * as Effect from "effect/Effect"
import * as AuditReader from "../../audit/AuditReader.ts"
import { kinds } from "../../audit/AuditRecord.ts"
import { near } from "../../base/Near.ts"
import * as Declarations from "../../runtime/Declarations.ts"
import { auditPaths, cellsOf, columns, damagedNote, nothingYet } from "../AuditTable.ts"
import type { Input } from "../commands/AuditShow.ts"
import type { Handler } from "../Handler.ts"
import { Output } from "../Output.ts"
import { runtimeOptions } from "../Session.ts"

/** The handler. */
export const handler: Handler<Input> = ({ options }) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    return yield* Effect.gen(function* () {
      const output = yield* Output
      const { workspace, log } = yield* auditPaths
      const { records, next, damaged } = yield* AuditReader.read(log, options)
      yield* output.document("audit", {
        schema: "sigil.audit/1",
        workspace,
        file: log,
        records,
        ...(next === undefined ? {} : { next })
      })
      if (damaged > 0) yield* output.note(damagedNote(damaged))
      if (records.length > 0) {
        yield* output.table(columns, records.map(cellsOf))
        const oldest = records[0]?.seq ?? 1
        if (next !== undefined) yield* output.note(`More follow: --since ${next}`)
        else if (options.since === undefined && records.length === options.limit && oldest > 1) {
          yield* output.note("Older ones: --since 1, or a larger --limit.")
        }
        return 0
      }
      if (!(yield* AuditReader.exists(log))) yield* output.text([nothingYet(workspace)])
      else {
        yield* output.text(["No record matches."])
        // A kind of a newer version is no mistake, so the words only suggest.
        const kind = options.kind
        const known: ReadonlyArray<string> = kinds
        if (kind !== undefined && !known.includes(kind)) {
          const names = near(kind, known)
          yield* output.note(
            `'${kind}' is no kind that this version writes.${names.length === 0 ? "" : ` Near: ${names.join(", ")}`}`
          )
        }
      }
      return 0
    }).pipe(Effect.provide(Declarations.layer(run)))
  })

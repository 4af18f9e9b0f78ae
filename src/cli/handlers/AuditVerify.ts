/** `sigil audit verify`: follows the chain of the audit log. Exit code 1 when it does not hold. */
import * as Effect from "effect/Effect"
import * as path from "node:path"
import { verify } from "../../audit/Verify.ts"
import * as Declarations from "../../runtime/Declarations.ts"
import { auditPaths, nothingYet } from "../AuditTable.ts"
import type { Input } from "../commands/AuditVerify.ts"
import type { Handler } from "../Handler.ts"
import { green, red } from "../Markup.ts"
import { Output } from "../Output.ts"
import { runtimeOptions } from "../Session.ts"

const counted = (count: number, word: string): string => `${count} ${word}${count === 1 ? "" : "s"}`

/** The handler. */
export const handler: Handler<Input> = () =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    return yield* Effect.gen(function* () {
      const output = yield* Output
      const paths = yield* auditPaths
      yield* output.progress("verifying the audit log…")
      const { ok, records, head, faults, moreFaults, unheaded } = yield* verify(paths)
      yield* output.progress("")
      yield* output.document("audit_verify", {
        schema: "sigil.audit.verify/1",
        ok,
        records,
        ...(head === undefined ? {} : { head }),
        faults,
        ...(moreFaults === 0 ? {} : { more_faults: moreFaults })
      })
      if (ok && records === 0) {
        yield* output.text([nothingYet(paths.workspace)])
        return 0
      }
      if (ok) {
        yield* output.text([[green("ok"), ` ${counted(records, "record")}, nothing changed, removed or added`]])
        if (unheaded > 0) {
          yield* output.note(
            `${counted(unheaded, "record")} of a process that was killed stand after the head; the next start moves it on.`
          )
        }
        return 0
      }
      yield* output.text([
        [
          red("broken"),
          ` ${counted(faults.length + moreFaults, "fault")} in ${counted(records, "record")} of ${path.dirname(paths.log)}`
        ],
        ...faults.map(({ file, line, why }) => `  ${path.basename(file)}:${line}  ${why}`),
        ...(moreFaults === 0 ? [] : [`  and ${moreFaults} more`]),
        "fix: Keep the files as they are and compare them with a backup; somebody or something changed them."
      ])
      return 1
    }).pipe(Effect.provide(Declarations.layer(run)))
  })

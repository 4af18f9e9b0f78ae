/**
 * A process that fills the place where its log is, is refused, makes room and goes on. Prints one JSON line.
 * usage: FullDisk FOLDER; room is made by removing FOLDER/filler, or by raising the limit of file sizes.
 */
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { AuditLog } from "../../../src/audit/AuditLog.ts"
import { verify } from "../../../src/audit/Verify.ts"
import { entry, namesOf, pathsIn, withLog } from "./Logs.ts"

const at = process.argv[2] ?? ""
const paths = pathsIn(at)
const filler = path.join(at, "filler")
// With a handler the system answers EFBIG instead of ending the process.
process.on("SIGXFSZ", () => undefined)

const makeRoom = Effect.sync(() => {
  if (fs.existsSync(filler)) fs.rmSync(filler)
  else execFileSync("prlimit", ["--pid", String(process.pid), "--fsize=unlimited"])
})

/** Appends until it is refused; gives how many were not. */
const fill = (log: AuditLog["Type"], next = 0): Effect.Effect<{ count: number; code: string; reason: string }> =>
  log.append(entry(`a${next}`, { payload: { name: `a${next}`, weight: "x".repeat(1_500) } })).pipe(
    Effect.matchEffect({
      onFailure: ({ code, reason }) => Effect.succeed({ count: next, code, reason }),
      onSuccess: () => fill(log, next + 1)
    })
  )

const program = Effect.gen(function* () {
  const log = yield* AuditLog
  const filled = yield* fill(log)
  const again = yield* Effect.flip(log.append(entry("refused", { payload: { weight: "y".repeat(20_000) } })))
  const text = fs.readFileSync(paths.log, "utf8")
  const during = yield* verify(paths)
  yield* makeRoom
  yield* log.append(entry("after"))
  return {
    ...filled,
    again: again.code,
    wholeLines: text.endsWith("\n"),
    linesThen: text.split("\n").length - 1,
    okThen: during.ok
  }
})

void Effect.runPromise(
  program.pipe(
    withLog(paths),
    Effect.flatMap((seen) =>
      Effect.map(verify(paths), ({ ok, faults }) => ({ ...seen, ok, faults, names: namesOf(paths) }))
    )
  )
).then((seen) => fs.writeSync(1, `${JSON.stringify(seen)}\n`))

/**
 * A process that appends to a log and says each name once it is acknowledged. Ends by itself.
 * usage: Appender FOLDER NAME COUNT WIDTH SYNC ROTATE_BYTES
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { AuditLog } from "../../../src/audit/AuditLog.ts"
import { entry, pathsIn, withLog } from "./Logs.ts"

const [at = "", name = "", count = "0", width = "1", sync = "write", rotate = "67108864"] = process.argv.slice(2)

const program = Effect.flatMap(AuditLog, (log) =>
  Effect.forEach(
    Array.from({ length: Number(count) }, (_, index) => `${name}:${index}`),
    (one) => Effect.andThen(log.append(entry(one)), () => void fs.writeSync(1, `${one}\n`)),
    { concurrency: Number(width), discard: true }
  )
)

void Effect.runPromise(
  program.pipe(
    withLog(pathsIn(at), { sync: sync === "always" ? "always" : "write", rotateBytes: Number(rotate), run: name })
  )
)

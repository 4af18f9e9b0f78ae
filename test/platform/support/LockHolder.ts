/** A process that takes the lock of a file, says `held`, and holds it until it is killed. usage: LockHolder FILE */
import * as Effect from "effect/Effect"
import { withLock } from "../../../src/platform/FileLock.ts"

const keep = setInterval(() => {}, 1_000)
void Effect.runPromise(
  withLock(
    process.argv[2] ?? "",
    Effect.zipRight(
      Effect.sync(() => process.stdout.write("held\n")),
      Effect.never
    )
  )
).finally(() => clearInterval(keep))

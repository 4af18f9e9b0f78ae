/**
 * A host for tests: starts the command of its arguments as a process tree with a reaper, prints the pids of leader
 * and reaper as one line of JSON, and waits for input: a line `close` ends it well.
 */
import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import { GenerationId } from "../../../src/base/Ids.ts"
import { spawn } from "../../../src/platform/ProcessTree.ts"
import * as Reaper from "../../../src/platform/Reaper.ts"

const [file = "", ...args] = process.argv.slice(2)

const program = Effect.gen(function* () {
  const tree = yield* spawn({
    file,
    args,
    cwd: "/",
    env: { PATH: process.env["PATH"] ?? "" },
    generation: GenerationId(randomUUID()),
    graceMs: 500
  })
  const reaper = yield* Reaper.Reaper
  tree.stdout.on("data", (chunk: Buffer) => {
    process.stdout.write(`${JSON.stringify({ leader: tree.pid, reaper: reaper.pid(), said: chunk.toString() })}\n`)
  })
  yield* Effect.async<void>((resume) => {
    process.stdin.once("data", () => resume(Effect.void))
  })
  process.stdin.pause()
})

void Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(Reaper.layer)))

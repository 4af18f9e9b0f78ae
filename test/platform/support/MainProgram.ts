/** Programs under `runMain`, one per mode. usage: MainProgram MODE */
import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import { GenerationId } from "../../../src/base/Ids.ts"
import { runMain } from "../../../src/platform/Main.ts"
import { spawn } from "../../../src/platform/ProcessTree.ts"
import * as Reaper from "../../../src/platform/Reaper.ts"
import * as Terminal from "../../../src/platform/Terminal.ts"

const mode = process.argv[2] ?? ""
const note = (text: string): Effect.Effect<void> => Effect.sync(() => fs.writeSync(2, `${text}\n`))

/** Says `ready`, waits, and says `torn down` when it is interrupted. */
const waiting = Terminal.Terminal.pipe(
  Effect.flatMap((terminal) => terminal.write("ready\n")),
  Effect.zipRight(Effect.never),
  Effect.onInterrupt(() => note("torn down"))
)

const programs: { readonly [mode: string]: Effect.Effect<number, never, Terminal.Terminal> } = {
  number: Effect.succeed(7),
  big: Effect.flatMap(Terminal.Terminal, (terminal) => Effect.as(terminal.write(`${"x".repeat(8_000_000)}end`), 3)),
  // Not awaited: main itself must deliver it.
  bigUnawaited: Effect.sync(() => {
    process.stdout.write(`${"x".repeat(8_000_000)}end`)
    return 3
  }),
  stray: Effect.sync(() => {
    setInterval(() => {}, 1_000)
    return 4
  }),
  die: Effect.dieMessage("broken\nsecond line"),
  waiting,
  thrown: Effect.zipRight(
    Effect.sync(() => setTimeout(() => void Promise.reject(new Error("from outside")), 1)),
    waiting
  ),
  stubborn: Effect.zipRight(
    Effect.flatMap(
      spawn({
        file: "/bin/sh",
        args: ["-c", "trap '' TERM; echo $$; while :; do sleep 1; done"],
        cwd: "/",
        env: { PATH: process.env["PATH"] ?? "" },
        generation: GenerationId(randomUUID()),
        graceMs: 10_000
      }),
      (tree) => Effect.sync(() => tree.stdout.on("data", (chunk: Buffer) => fs.writeSync(1, chunk)))
    ),
    Effect.onInterrupt(Effect.never, () => note("ending"))
  ).pipe(Effect.scoped, Effect.orDie, Effect.provide(Reaper.layerNone)),
  endless: Effect.flatMap(Terminal.Terminal, (terminal) => Effect.forever(terminal.write("y".repeat(10_000)))).pipe(
    Effect.onInterrupt(() => note("torn down"))
  ),
  echo: Effect.flatMap(Terminal.Terminal, (terminal) =>
    terminal.readStdin.pipe(
      Effect.flatMap((text) => terminal.write(`${text.length}:${text.slice(0, 20)}`)),
      Effect.as(0),
      Effect.catchAll((error) => Effect.as(note(error.reason), 1))
    )
  ),
  ask: Effect.flatMap(Terminal.Terminal, (terminal) =>
    Effect.gen(function* () {
      const answers = [
        yield* terminal.readLine("one? "),
        yield* terminal.readLine("two? "),
        yield* terminal.readLine("3? ")
      ]
      yield* terminal.write(`answers ${JSON.stringify(answers.map((answer) => answer ?? null))}\n`)
      return 0
    })
  )
}

runMain(Effect.provide(programs[mode] ?? Effect.succeed(99), Terminal.layer))

/** A process that adds `count` lines of its name to a file, one `update` each. usage: Writer FILE NAME COUNT */
import * as Effect from "effect/Effect"
import { update } from "../../../src/platform/AtomicFile.ts"

const [file = "", name = "", count = "0"] = process.argv.slice(2)

const add = (index: number) =>
  update(file, (current) => Effect.succeed(`${current ?? ""}${name}:${index}\n`)).pipe(
    Effect.retry({ while: (error) => error.reason === "locked" })
  )

void Effect.runPromise(
  Effect.forEach(
    Array.from({ length: Number(count) }, (_, index) => index),
    add,
    { discard: true }
  )
)

/**
 * The command with another place for the company policy: what no variable or option of the real one can do.
 *
 * usage: node managed.mjs FILE OWNER WORDS…
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { program } from "../../src/cli/Main.ts"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import { runMain } from "../../src/platform/Main.ts"
import * as Terminal from "../../src/platform/Terminal.ts"

const [file = "", owner = "", ...words] = process.argv.slice(2)
const host = Layer.effect(
  HostEnvironment.HostEnvironment,
  Effect.map(HostEnvironment.HostEnvironment, (real) => ({ ...real, managed: { file, ownerId: Number(owner) } }))
).pipe(Layer.provide(HostEnvironment.layer))

runMain(program(words).pipe(Effect.provide(Layer.merge(Terminal.layer, host))))

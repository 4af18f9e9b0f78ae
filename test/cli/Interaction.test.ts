/** What a command declares to servers follows from who can answer. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { declaring, interactionOf } from "../../src/cli/Interaction.ts"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import { layerTest } from "../../src/platform/Terminal.ts"
import { ClientFeatures } from "../../src/server/ClientFeatures.ts"

/** What a layer of the runtime finds declared. */
class Declared extends Context.Tag("test/Declared")<Declared, { readonly forms: boolean; readonly urls: boolean }>() {}

const directory = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "sigil-test-"))),
  (made) => Effect.sync(() => fs.rmSync(made, { recursive: true }))
)

const declared = (tty: boolean, file?: string, cwd = "/") =>
  Effect.gen(function* () {
    const interaction = yield* interactionOf(file)
    const { forms, urls } = yield* Declared.pipe(
      Effect.provide(Layer.effect(Declared, ClientFeatures)),
      declaring(interaction)
    )
    return { forms, urls, answers: interaction.answers !== undefined }
  }).pipe(Effect.provide(Layer.merge(layerTest({ tty }), HostEnvironment.layerTest({ cwd }))))

describe("what is declared", () => {
  it.effect("is forms and addresses with a person, and nothing without", () =>
    Effect.gen(function* () {
      assert.deepEqual(yield* declared(true), { forms: true, urls: true, answers: false })
      assert.deepEqual(yield* declared(false), { forms: false, urls: false, answers: false })
    })
  )

  it.scoped("is forms alone with an answers file, relative to the working directory", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      fs.writeFileSync(path.join(cwd, "a.json"), '{"name": "Ann"}')
      for (const tty of [true, false])
        assert.deepEqual(yield* declared(tty, "a.json", cwd), { forms: true, urls: false, answers: true })
    })
  )

  it.scoped("is not reached with a bad file or none", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      fs.writeFileSync(path.join(cwd, "bad.json"), "{")
      for (const file of ["bad.json", "none.json", "-", "", "."]) {
        const fault = yield* Effect.flip(declared(false, file, cwd))
        assert.deepEqual([fault.code, fault.reason], ["SIGIL_USAGE", "answers_invalid"], file)
      }
    })
  )
})

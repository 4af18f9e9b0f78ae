/** The end of a command whose servers could not be confirmed gone. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { assert, describe, it } from "vitest"
import { finish } from "../../src/cli/Finish.ts"
import * as Output from "../../src/cli/Output.ts"
import { Terminal } from "../../src/platform/Terminal.ts"
import { nothingToClean } from "../../src/platform/CleanupReport.ts"
import type { ServerCleanup } from "../../src/server/Registry.ts"

const left: ReadonlyArray<ServerCleanup> = [
  { server: "fine", report: nothingToClean },
  {
    server: "sticky",
    report: {
      ...nothingToClean,
      complete: false,
      reason: "survivors",
      survivors: [{ pid: 4711, command: "node" }]
    }
  }
]

const ended = async (code: number, cleanups: ReadonlyArray<ServerCleanup>) => {
  let printed = ""
  const terminal = Layer.mock(Terminal, {
    colour: false,
    stdinIsTty: false,
    stdoutIsTty: false,
    stderrIsTty: false,
    columns: 80,
    write: (text: string) => Effect.sync(() => void (printed += text)),
    writeError: (text: string) => Effect.sync(() => void (printed += text))
  })
  const result = await Effect.runPromise(
    finish({ closeAll: Effect.succeed(cleanups) }, code).pipe(
      Effect.provide(Layer.provide(Output.layer(false), terminal))
    )
  )
  return { result, printed }
}

describe("the end of a command", () => {
  it("is 7 instead of 0 or 5 when processes are left, and names them", async () => {
    for (const code of [0, 5]) {
      const { printed, result } = await ended(code, left)
      assert.equal(result, 7)
      assert.include(printed, "4711 (node)")
      assert.include(printed, "sticky")
      assert.notInclude(printed, "fine")
    }
  })

  it("keeps the code of a failure, and names the processes all the same", async () => {
    const { printed, result } = await ended(3, left)
    assert.equal(result, 3)
    assert.include(printed, "4711 (node)")
  })

  it("says nothing when all is gone", async () => {
    assert.deepEqual(await ended(0, [{ server: "fine", report: nothingToClean }]), { result: 0, printed: "" })
  })
})

import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { layerTest, Terminal, TestTerminal, wantsColour } from "../../src/platform/Terminal.ts"

describe("wantsColour", () => {
  const wants = (variables: { readonly [name: string]: string }, tty: boolean): boolean =>
    wantsColour((name) => variables[name], tty)

  it("follows terminal, NO_COLOR, FORCE_COLOR and TERM", () => {
    assert.isTrue(wants({}, true))
    assert.isFalse(wants({}, false))
    assert.isFalse(wants({ TERM: "dumb" }, true))
    assert.isFalse(wants({ NO_COLOR: "1" }, true))
    assert.isTrue(wants({ NO_COLOR: "" }, true))
    assert.isTrue(wants({ FORCE_COLOR: "1" }, false))
    assert.isTrue(wants({ FORCE_COLOR: "1", TERM: "dumb" }, false))
    assert.isFalse(wants({ FORCE_COLOR: "0" }, true))
    assert.isFalse(wants({ FORCE_COLOR: "1", NO_COLOR: "1" }, true))
  })
})

describe("layerTest", () => {
  it.effect("collects what is written and answers with its lines", () =>
    Effect.gen(function* () {
      const terminal = yield* Terminal
      yield* terminal.write("out")
      yield* terminal.writeError("err ")
      assert.strictEqual(yield* terminal.readLine("name? "), "ann")
      assert.isUndefined(yield* terminal.readLine("again? "))
      assert.strictEqual(yield* terminal.readStdin, "input")
      const seen = yield* TestTerminal
      assert.deepStrictEqual([seen.stdout(), seen.stderr()], ["out", "err name? again? "])
    }).pipe(Effect.provide(layerTest({ tty: true, lines: ["ann"], stdin: "input" })))
  )

  it.effect("nobody answers where there is no terminal", () =>
    Effect.gen(function* () {
      const terminal = yield* Terminal
      assert.isUndefined(yield* terminal.readLine("name? "))
    }).pipe(Effect.provide(layerTest({ lines: ["ann"] })))
  )
})

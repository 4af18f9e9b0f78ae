import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TerminalApprover from "../../src/cli/TerminalApprover.ts"
import { layerTest, Terminal, TestTerminal } from "../../src/platform/Terminal.ts"
import type { AllowRule } from "../../src/policy/permission/Remedy.ts"
import type { Question } from "../../src/tools/Approver.ts"

const rule: AllowRule = { tool_name: "mcp__a__t", mode: "allow" }
const question: Question = {
  server: "a",
  tool: "t",
  visibleName: "mcp__a__t",
  trustClass: "third_party",
  description: "",
  destructive: false,
  args: {},
  facets: ["source"],
  why: "the default",
  grantable: true,
  rule
}

/** Asks with these lines typed; the answer, what was shown and which rules were written. */
const asked = (more: Partial<Question>, lines: ReadonlyArray<string>, without?: "rule") =>
  Effect.gen(function* () {
    const written: Array<AllowRule> = []
    const terminal = yield* Terminal
    const { rule: offered, ...bare } = { ...question, ...more }
    const answer = yield* TerminalApprover.make(terminal, (one) => Effect.sync(() => void written.push(one))).ask(
      without === undefined && offered !== undefined ? { ...bare, rule: offered } : bare
    )
    const shown = (yield* TestTerminal).stderr()
    return { answer, written, shown }
  }).pipe(Effect.provide(layerTest({ tty: true, lines })))

describe("the question on a terminal", () => {
  it.effect("offers once, session, always and deny, and writes the rule for always", () =>
    Effect.gen(function* () {
      const { answer, shown, written } = yield* asked({}, ["a"])
      assert.deepEqual([answer, written], ["always", [rule]])
      assert.include(shown, "[o]nce, [s]ession, [a]lways, [d]eny: ")
    })
  )

  it.effect("does not take what it does not offer", () =>
    Effect.gen(function* () {
      const network = yield* asked({ grantable: false }, ["a", "s", "o"], "rule")
      assert.deepEqual([network.answer, network.written], ["once", []])
      assert.include(network.shown, "[o]nce, [d]eny: ")
      const noRule = yield* asked({}, ["a", "s"], "rule")
      assert.deepEqual([noRule.answer, noRule.written], ["session", []])
      const noGrant = yield* asked({ grantable: false }, ["s", "always"])
      assert.deepEqual([noGrant.answer, noGrant.written], ["always", [rule]])
    })
  )

  it.effect("takes the end of input as a deny", () =>
    Effect.map(asked({}, ["?"]), ({ answer }) => assert.equal(answer, "deny"))
  )
})

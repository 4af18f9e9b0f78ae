import { assert, describe, it } from "@effect/vitest"
import { estimate } from "../../src/tools/Tokens.ts"

describe("Tokens", () => {
  it("counts 0.20 per ASCII character and 0.65 per other one, rounded up", () => {
    assert.equal(estimate(""), 0)
    assert.equal(estimate("abcde"), 1)
    assert.equal(estimate("abcdef"), 2)
    assert.equal(estimate("密".repeat(20)), 13)
    assert.equal(estimate(`${"a".repeat(50)}${"密".repeat(20)}`), 23)
  })

  it("samples long texts and stays close", () => {
    const mixed = "ascii 密码 ".repeat(50_000)
    const exact = [...mixed].reduce((sum, one) => sum + (one.charCodeAt(0) < 0x80 ? 0.2 : 0.65), 0)
    assert.closeTo(estimate(mixed), exact, exact * 0.02)
  })
})

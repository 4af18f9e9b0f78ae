/** How long a call may take, and which field the error will name. */
import { assert, describe, it } from "vitest"
import type { ServerDeclaration } from "../../src/config/ServerDeclaration.ts"
import * as CallDeadline from "../../src/server/CallDeadline.ts"
import { declared } from "../support/FakeRuntime.ts"

const declaration = (more: Partial<ServerDeclaration>): ServerDeclaration => {
  const entry = declared("a", { toolTimeoutMs: 5_000, toolTimeoutMaxMs: undefined, ...more })
  if (entry._tag === "Broken") assert.fail("a valid entry")
  return entry.declaration
}

describe("the deadline of a call", () => {
  it("is the caller's, else the tool's, else the entry's", () => {
    const entry = declaration({ toolTimeoutsMs: { slow: 9_000 } })
    assert.deepEqual(CallDeadline.of(entry, { tool: "slow", askedMs: 100 }), {
      deadlineMs: 100,
      deadlineField: "--timeout"
    })
    assert.deepEqual(CallDeadline.of(entry, { tool: "slow" }), {
      deadlineMs: 9_000,
      deadlineField: "tool_timeouts.slow"
    })
    assert.deepEqual(CallDeadline.of(entry, { tool: "constructor" }), {
      deadlineMs: 5_000,
      deadlineField: "tool_timeout_secs"
    })
  })

  it("that somebody asks for is 30 s for nothing and less, and a day at most", () => {
    assert.deepEqual([0, -5, 1, 1e12].map(CallDeadline.asked), [30_000, 30_000, 1, 86_400_000])
  })

  it("names the field that the entry of a JSON file really has, with its unit", () => {
    const json = (raw: { readonly [key: string]: number }) => CallDeadline.of(declaration({ format: "json", raw }), {})
    assert.deepInclude(json({ timeout: 1_000 }), {
      deadlineField: "timeout",
      deadlineHint: "timeout (in milliseconds)"
    })
    assert.deepInclude(json({ timeout: 30_000, toolTimeoutSecs: 1 }), { deadlineField: "toolTimeoutSecs" })
    assert.deepInclude(json({ tool_timeout_secs: 1 }), { deadlineField: "tool_timeout_secs" })
    assert.deepInclude(json({}), { deadlineField: "toolTimeoutSecs" })
  })

  it("in idle mode has the written maximum, or ten times the deadline of this very call", () => {
    const idle = declaration({ timeoutMode: "idle", toolTimeoutsMs: { quick: 1_000 } })
    assert.equal(CallDeadline.of(idle, {}).idleMaxMs, 50_000)
    assert.equal(CallDeadline.of(idle, { tool: "quick" }).idleMaxMs, 10_000)
    assert.equal(CallDeadline.of({ ...idle, toolTimeoutMaxMs: 2_000 }, { tool: "quick" }).idleMaxMs, 2_000)
    assert.isUndefined(CallDeadline.of(declaration({}), {}).idleMaxMs)
  })
})

import { assert, describe, it } from "@effect/vitest"
import { atSpawn } from "../../src/policy/NetworkPolicy.ts"

const verdict = (mode: "allow" | "ask" | "deny", approved: boolean): string => {
  const found = atSpawn(mode, approved)
  return found._tag === "Spawn" ? "spawn" : found.reason
}

describe("NetworkPolicy", () => {
  it("decides at the spawn boundary", () => {
    assert.equal(verdict("allow", false), "spawn")
    assert.equal(verdict("allow", true), "spawn")
    assert.equal(verdict("ask", false), "network_approval_required")
    assert.equal(verdict("ask", true), "spawn")
    assert.equal(verdict("deny", false), "network_isolation_unavailable")
    assert.equal(verdict("deny", true), "network_isolation_unavailable")
  })
})

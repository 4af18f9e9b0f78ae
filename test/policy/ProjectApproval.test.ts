import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  type Approvals,
  decide,
  emptyApprovals,
  keyOf,
  needsApproval,
  record
} from "../../src/policy/ProjectApproval.ts"

const subject = { identity: "/home/me/app", name: "db", fingerprint: "sha256:1", place: "", coverable: true }
const tag = (stored: Approvals, over: Partial<typeof subject> = {}): string => {
  const found = decide(stored, { ...subject, ...over })
  return found._tag === "Pending" ? `Pending ${found.changed ? "changed" : "new"}` : found._tag
}
const approved = record(emptyApprovals, subject, "approved", undefined)
const rejected = record(emptyApprovals, subject, "rejected", undefined)
const all: Approvals = { ...emptyApprovals, approveAllProjects: ["/home/me/app"] }

describe("ProjectApproval", () => {
  it("asks for what somebody else wrote", () => {
    assert.deepEqual(
      (["cli", "dynamic", "user", "local", "project", "imported", "plugin"] as const).filter((scope) =>
        needsApproval({ scope })
      ),
      ["project", "imported", "plugin"]
    )
    const plugin = { id: "p", root: "/p", manifest: "sha256:0" }
    assert.isTrue(needsApproval({ scope: "plugin", plugin: { ...plugin, from: "workspace" } }))
    assert.isFalse(needsApproval({ scope: "plugin", plugin: { ...plugin, from: "user" } }))
    assert.isTrue(needsApproval({ scope: "project", plugin: { ...plugin, from: "user" } }))
  })

  it("is pending until somebody decides, and again when the entry changes", () => {
    assert.equal(tag(emptyApprovals), "Pending new")
    assert.equal(tag(approved), "Approved")
    assert.equal(tag(approved, { fingerprint: "sha256:2" }), "Pending changed")
  })

  it("asks once more about approvals older than fingerprints", () => {
    assert.match(tag({ ...emptyApprovals, approved: [keyOf("/home/me/app", "db")] }), /^Pending/)
  })

  it("rejects by name, whatever the entry says", () => {
    assert.equal(tag(rejected), "Rejected")
    assert.equal(tag(rejected, { fingerprint: "sha256:2" }), "Rejected")
    assert.equal(tag({ ...rejected, approveAllProjects: ["/home/me/app"] }), "Rejected")
    assert.equal(tag({ ...approved, rejected: rejected.rejected }), "Rejected")
  })

  it("covers the whole project by its flag, but not what the flag may not cover", () => {
    assert.equal(tag(all), "Approved")
    assert.equal(tag(all, { name: "later", fingerprint: "sha256:9" }), "Approved")
    assert.equal(tag(all, { coverable: false }), "Pending new")
    assert.equal(tag({ ...approved, approveAllProjects: ["/home/me/app"] }, { fingerprint: "sha256:2" }), "Approved")
    assert.equal(tag({ ...approved, approveAllProjects: ["/home/me/app"] }, { coverable: false }), "Approved")
  })

  it("keeps projects and names apart", () => {
    assert.equal(tag(approved, { identity: "/srv/other" }), "Pending new")
    assert.equal(tag(approved, { name: "db2" }), "Pending new")
    assert.equal(tag(all, { identity: "/work" }), "Pending new")
    assert.equal(tag(emptyApprovals, { name: "__proto__", identity: "" }), "Pending new")
  })

  it("holds for the file that was approved, not for a copy elsewhere in the repository", () => {
    assert.equal(tag(approved, { place: "vendor/sub" }), "Pending changed")
  })

  it("holds one answer per server, the last one", () => {
    const step = fc.record({
      name: fc.constantFrom("a", "b", "__proto__"),
      fingerprint: fc.constantFrom("1", "2"),
      decision: fc.constantFrom("approved" as const, "rejected" as const)
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const stored = steps.reduce(
          (held, { decision, ...rest }) => record(held, { identity: "/p", place: "", ...rest }, decision, undefined),
          emptyApprovals
        )
        for (const name of ["a", "b", "__proto__"]) {
          const last = steps.findLast((each) => each.name === name)
          const key = keyOf("/p", name)
          assert.equal(
            [...stored.approved, ...stored.rejected].filter((each) => each === key).length,
            last === undefined ? 0 : 1
          )
          const wanted = last === undefined ? "Pending" : last.decision === "rejected" ? "Rejected" : "Approved"
          assert.equal(
            decide(stored, { identity: "/p", name, fingerprint: last?.fingerprint ?? "1", place: "", coverable: true })
              ._tag,
            wanted
          )
        }
      })
    )
  })
})

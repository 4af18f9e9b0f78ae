import { assert, describe, it } from "@effect/vitest"
import { difference, keepable } from "../../src/policy/EntryDifference.ts"

describe("EntryDifference", () => {
  it("keeps no value of variables and headers, but templates", () => {
    const kept = keepable({
      command: "x",
      enabled: true,
      env: { TOKEN: "s3cret", PATH: "${PATH}" },
      headers: { A: "s3cret" }
    })
    assert.notInclude(JSON.stringify(kept), "s3cret")
    assert.notProperty(kept, "enabled")
    assert.equal((kept["env"] as { readonly PATH: string }).PATH, "${PATH}")
  })

  it("tells what changed, also a hidden value", () => {
    const before = keepable({ command: "a", args: ["x"], env: { T: "one" } })
    const after = keepable({ command: "b", args: ["x"], env: { T: "two" }, cwd: "/" })
    const found = difference(before, after)
    assert.deepEqual(found.fields, ["command", "cwd", "env"])
    assert.include(found.diff, '- command: "a"\n+ command: "b"\n+ cwd: "/"')
    assert.deepEqual(difference(before, before), { fields: [], diff: "" })
  })
})

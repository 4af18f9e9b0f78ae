import { assert, describe, it } from "@effect/vitest"
import { difference, keepable } from "../../src/policy/EntryDifference.ts"

describe("EntryDifference", () => {
  it("keeps no credential of variables, headers and arguments, and everything that steers what runs", () => {
    const kept = keepable({
      command: "x",
      args: ["--api-key", "s3cret-value-of-some-length", "--verbose"],
      enabled: true,
      env: { TOKEN: "s3cret", PATH: "${PATH}", NODE_OPTIONS: "--require ./evil.js" },
      headers: { Authorization: "s3cret" }
    })
    assert.equal((kept["env"] as { readonly NODE_OPTIONS: string }).NODE_OPTIONS, "--require ./evil.js")
    assert.equal((kept["args"] as ReadonlyArray<string>)[2], "--verbose")
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

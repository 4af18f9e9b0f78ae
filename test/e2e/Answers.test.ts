/** `--answers FILE` on the command line: a slip in the file costs no started server. */
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { inline, makeProject, odd, type Project } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

const commands: ReadonlyArray<ReadonlyArray<string>> = [
  ["mcp", "call", "odd", "echo"],
  ["mcp", "read", "odd", "odd://x"],
  ["mcp", "prompt", "odd", "x"]
]

describe("an answers file", () => {
  it("that is none ends each command before anything starts, with its place", async () => {
    const started = path.join(project.root, "started")
    const server = project.write(
      "server.mjs",
      `import "node:fs"; (await import("node:fs")).writeFileSync(${JSON.stringify(started)}, "")`
    )
    const file = project.write("answers.json", '{\n  "name": {"first": "Ann"}\n}')
    for (const command of commands) {
      const { code, document } = await project.document("error", [
        ...inline("odd", [server]),
        ...command,
        "--answers",
        "answers.json"
      ])
      assert.deepEqual([code, document.error.code, document.error.reason], [2, "SIGIL_USAGE", "answers_invalid"])
      assert.deepInclude(document.error.where, { file, line: 2, column: 11, field: "name" })
    }
    assert.isFalse(fs.existsSync(started))
    // The mark is one that a started server would have left.
    await project.run([...inline("odd", [server]), ...(commands[0] ?? [])])
    assert.isTrue(fs.existsSync(started))
  })

  it("that is one changes nothing for a server that asks nothing", async () => {
    project.write("answers.json", "[{}]")
    const { code } = await project.run([
      ...inline("odd", [odd]),
      "mcp",
      "call",
      "odd",
      "echo",
      "text=hi",
      "--yes",
      "--answers",
      "answers.json"
    ])
    assert.equal(code, 0)
  })
})

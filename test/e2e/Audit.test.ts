/** The audit log of real commands: what is on record, that it holds under kill -9, and that changes are found. */
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { inline, makeProject, odd, type Project, until } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

const logOf = (): string => {
  const workspaces = path.join(project.home, ".sigil", "state", "workspaces")
  const [workspace = ""] = fs.readdirSync(workspaces)
  return path.join(workspaces, workspace, "audit.jsonl")
}

describe("the audit log", () => {
  it("has decisions, refusals, lifecycle and calls, shapes but no values", async () => {
    project.write(".mcp.json", { mcpServers: { odd: { command: process.execPath, args: [odd, "plain"] } } })
    await project.run(["mcp", "call", "odd", "echo", "--yes"])
    await project.run(["mcp", "approve", "odd"])
    await project.run(["mcp", "call", "odd", "echo", "note=a-value-nobody-records", "--yes"])
    await project.run(["mcp", "call", "odd", "nothing", "--yes"])
    await project.run(["mcp", "disable", "odd"])
    const { document } = await project.document("audit", ["audit", "show", "--limit", "100"])
    const kinds = document.records.map(({ kind }) => kind)
    assert.includeMembers(kinds, [
      "admission_refused",
      "project_decision",
      "extension_process_lifecycle_recorded",
      "approval_resolved",
      "egress_decision_recorded",
      "tool_execution_finished"
    ])
    assert.isBelow(kinds.indexOf("egress_decision_recorded"), kinds.indexOf("tool_execution_finished"))
    const egress = document.records.find(({ kind }) => kind === "egress_decision_recorded")
    assert.include(JSON.stringify(egress?.payload), '"top_level_keys":["note"]')
    assert.notInclude(fs.readFileSync(logOf(), "utf8"), "a-value-nobody-records")
    const verified = await project.document("audit_verify", ["audit", "verify"])
    assert.deepEqual(
      [verified.code, verified.document.ok, verified.document.records],
      [0, true, document.records.length]
    )
  })

  it("verifies after ten processes called at once and half of them were killed", async () => {
    const config = inline("odd", [odd, "plain"])
    const running = Array.from({ length: 10 }, (_, index) =>
      project.start([...config, "mcp", "call", "odd", index % 2 === 0 ? "hang" : "echo", "a=1"])
    )
    await until("five calls left", () => {
      if (!fs.existsSync(path.join(project.home, ".sigil", "state", "workspaces"))) return false
      const text = fs.existsSync(logOf()) ? fs.readFileSync(logOf(), "utf8") : ""
      return text.split('"remote_tool":"hang"').length - 1 === 5
    })
    for (const [index, { child }] of running.entries()) if (index % 2 === 0) child.kill("SIGKILL")
    const ended = await Promise.all(running.map(({ done }) => done))
    assert.deepEqual(
      ended.filter((_, index) => index % 2 === 1).map(({ code }) => code),
      [0, 0, 0, 0, 0]
    )
    const { document, code } = await project.document("audit_verify", ["audit", "verify"])
    assert.deepEqual([code, document.ok, document.faults], [0, true, []])
    // Each call that was answered is on record, before and after.
    const text = fs.readFileSync(logOf(), "utf8")
    assert.equal(text.split('"status":"succeeded"').length - 1, 5)
  })

  it("finds a changed, a removed and a swapped record, the last one included", async () => {
    const config = inline("odd", [odd, "plain"])
    await project.run([...config, "mcp", "call", "odd", "echo", "a=1"])
    await project.run([...config, "mcp", "call", "odd", "echo", "a=2"])
    const log = logOf()
    const whole = fs.readFileSync(log, "utf8")
    const lines = whole.trimEnd().split("\n")
    const damaged: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
      ["a changed record", lines.map((line, index) => (index === 1 ? line.replace("registered", "registeree") : line))],
      [
        "the last one changed",
        lines.map((line, index) => (index === lines.length - 1 ? line.replace('"odd"', '"old"') : line))
      ],
      ["a removed record", lines.filter((_, index) => index !== 2)],
      ["the last one removed", lines.slice(0, -1)],
      ["two swapped records", [...lines.slice(0, 1), lines[2] ?? "", lines[1] ?? "", ...lines.slice(3)]]
    ]
    for (const [what, changed] of damaged) {
      fs.writeFileSync(log, `${changed.join("\n")}\n`)
      const { document, code } = await project.document("audit_verify", ["audit", "verify"])
      assert.deepEqual([code, document.ok], [1, false], what)
    }
    fs.writeFileSync(log, whole)
    assert.equal((await project.document("audit_verify", ["audit", "verify"])).code, 0)
  })
})

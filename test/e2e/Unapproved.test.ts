/**
 * Nothing of a repository runs before its user approved it: over the whole table of commands.
 *
 * Every command has its lines here, or the test fails: a command that arrives is thought of.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { commands, groups } from "../../src/cli/Commands.ts"
import { makeProject, odd, type Project } from "../support/Command.ts"

/** Names of the servers that stand for every way a repository can declare one. */
const names = ["here", "above", "plugin:brought:s"] as const

/** What is typed, by the words of the command; NAME stands for each server in turn. */
const lines: { readonly [words: string]: ReadonlyArray<ReadonlyArray<string>> } = {
  "mcp add": [["mcp", "add", "other", process.execPath, odd, "plain"]],
  "mcp list": [
    ["mcp", "list"],
    ["mcp", "list", "--all", "--status"]
  ],
  "mcp get": [["mcp", "get", "NAME"]],
  "mcp pin": [["mcp", "pin", "NAME"]],
  "mcp remove": [["mcp", "remove", "NAME", "--scope", "user"]],
  "mcp enable": [["mcp", "enable", "NAME"]],
  "mcp disable": [
    ["mcp", "disable", "NAME"],
    ["mcp", "enable", "NAME"]
  ],
  "mcp explain": [["mcp", "explain", "NAME"]],
  "mcp logs": [["mcp", "logs", "NAME"]],
  "mcp pending": [
    ["mcp", "pending"],
    ["mcp", "pending", "NAME"]
  ],
  // The decision itself starts nothing; what it allows is tested below.
  "mcp approve": [["mcp", "approve", "no-such-server"]],
  "mcp reject": [["mcp", "reject", "no-such-server"]],
  "mcp tools": [
    ["mcp", "tools"],
    ["mcp", "tools", "--all"],
    ["mcp", "tools", "NAME"]
  ],
  "mcp call": [
    ["mcp", "call", "NAME", "echo", "a=1", "--yes"],
    ["mcp", "call", "NAME/echo", "--yes"],
    ["mcp", "call", "NAME", "echo", "--explain"]
  ],
  "mcp search": [["mcp", "search", "echo"]],
  "mcp resources": [["mcp", "resources", "NAME"]],
  "mcp templates": [["mcp", "templates", "NAME"]],
  "mcp read": [["mcp", "read", "NAME", "file:///a"]],
  "mcp prompts": [["mcp", "prompts", "NAME"]],
  "mcp prompt": [["mcp", "prompt", "NAME", "a"]],
  "mcp complete": [["mcp", "complete", "NAME", "prompt:a", "b", "c"]],
  "artifact list": [["artifact", "list"]],
  "artifact show": [["artifact", "show", "none"]],
  "artifact rm": [["artifact", "rm", "none"]],
  "audit show": [["audit", "show"]],
  // Waits for records until it is interrupted; it declares no need of servers at all.
  "audit tail": [["audit", "tail", "--help"]],
  "audit verify": [["audit", "verify"]],
  doctor: [["doctor"], ["doctor", "--probe"]],
  errors: [["errors"]],
  completions: [["completions", "bash"]]
}

let project: Project & { readonly dispose: () => void }
let root: string
let marker: string
const wordsOf = (words: ReadonlyArray<string>): string => words.join(" ")

beforeEach(() => {
  project = makeProject()
  root = path.join(project.root, "sub")
  marker = path.join(project.root, "ran")
  const server = { command: process.execPath, args: [odd, "plain", marker] }
  project.write(".mcp.json", { mcpServers: { above: server } })
  project.write("sub/.mcp.json", { mcpServers: { here: { ...server, args: [...server.args, "here"] } } })
  project.write(
    "sub/.sigil/plugins/brought/plugin.toml",
    [
      'id = "brought"',
      "[[mcp_servers]]",
      'name = "s"',
      'transport = "stdio"',
      `command = ${JSON.stringify(process.execPath)}`,
      `args = ${JSON.stringify([odd, "plain", marker, "plugin"])}`,
      ""
    ].join("\n")
  )
})
afterEach(() => project.dispose())

describe("before approval", () => {
  it("the table below has every command, and no other", () => {
    assert.deepEqual(Object.keys(lines).toSorted(), commands.map(({ shape }) => wordsOf(shape.path)).toSorted())
    for (const { standsFor } of groups) assert.isTrue(Object.hasOwn(lines, wordsOf(standsFor)))
  })

  it("no command lets anything of a repository run", async () => {
    const typed = Object.values(lines)
      .flat()
      .flatMap((line) =>
        line.some((word) => word.includes("NAME"))
          ? names.map((name) => line.map((word) => word.replace("NAME", name)))
          : [line]
      )
    for (const line of typed) {
      await project.run(line, { cwd: root })
      assert.isFalse(fs.existsSync(marker), `something ran in: ${line.join(" ")}`)
    }
    const { document } = await project.document("list", ["mcp", "list"], { cwd: root })
    for (const name of names)
      assert.equal(document.servers.find((server) => server.name === name)?.state, "pending", name)
  }, 240_000)

  it("and each of them runs once it is approved", async () => {
    for (const name of names) {
      assert.equal((await project.run(["mcp", "approve", name], { cwd: root })).code, 0)
      assert.isFalse(fs.existsSync(marker), "approving starts nothing")
      const called = await project.run(["mcp", "call", name, "echo", "a=1", "--yes"], { cwd: root })
      assert.equal(called.code, 0, called.stderr)
      assert.isTrue(fs.existsSync(marker), name)
      fs.rmSync(marker)
    }
  }, 60_000)
})

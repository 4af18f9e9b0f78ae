/** Nothing of a repository runs before its user approved it, in any command. */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { makeProject, odd, type Project } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
let marker: string
beforeEach(() => {
  project = makeProject()
  marker = path.join(project.root, "ran")
})
afterEach(() => project.dispose())

const declare = (more: object = {}) =>
  project.write(".mcp.json", {
    mcpServers: { fs: { command: process.execPath, args: [odd, "plain", marker], ...more } }
  })
const stateOf = async (): Promise<string | undefined> =>
  (await project.document("list", ["mcp", "list"])).document.servers.find(({ name }) => name === "fs")?.state

describe("project approval", () => {
  it("lets nothing run before approval, in any command", async () => {
    declare()
    const commands = [
      ["mcp", "list"],
      ["mcp", "list", "--all", "--status"],
      ["mcp", "get", "fs"],
      ["mcp", "pending"],
      ["mcp", "pending", "fs"],
      ["mcp", "explain", "fs"],
      ["mcp", "tools"],
      ["mcp", "tools", "--all"],
      ["mcp", "tools", "fs"],
      ["mcp", "call", "fs", "echo", "a=1", "--yes"],
      ["mcp", "call", "fs/echo", "--yes"],
      ["mcp", "call", "mcp__fs__echo", "--yes"],
      ["mcp", "call", "fs", "echo", "--explain"],
      ["mcp", "logs", "fs"],
      ["mcp", "disable", "fs"],
      ["mcp", "enable", "fs"],
      ["doctor"],
      ["doctor", "--probe"],
      ["errors"]
    ]
    for (const command of commands) {
      await project.run(command)
      assert.isFalse(fs.existsSync(marker), `something ran in: ${command.join(" ")}`)
    }
    await project.run(["mcp", "reject", "fs"])
    assert.equal(await stateOf(), "rejected")
    const { document, code } = await project.document("error", ["mcp", "call", "fs", "echo", "--yes"])
    assert.deepEqual([document.error.code, code], ["SIGIL_REJECTED", 4])
    assert.isFalse(fs.existsSync(marker))
  })

  it("refuses a pending server with what to do next, and runs it after approval", async () => {
    declare()
    const refused = await project.run(["mcp", "call", "fs", "echo", "--yes"])
    assert.equal(refused.code, 4)
    assert.include(refused.stderr, "SIGIL_PENDING_APPROVAL")
    assert.include(refused.stderr, "sigil mcp approve fs")
    const { document } = await project.document("decision", ["mcp", "approve", "fs"])
    assert.deepEqual(document.decided, ["fs"])
    const called = await project.run(["mcp", "call", "fs", "echo", "a=1", "--yes"])
    assert.equal(called.code, 0, called.stderr)
    assert.isTrue(fs.existsSync(marker))
  })

  it("asks again when an argument, a variable or a header changes, not when only `enabled` does", async () => {
    const remote = (headers: object) => ({ mcpServers: { far: { url: "https://example.invalid/mcp", headers } } })
    declare()
    await project.run(["mcp", "approve", "fs"])
    assert.equal(await stateOf(), "configured")
    declare({ enabled: true })
    assert.equal(await stateOf(), "configured")
    declare({ enabled: false })
    assert.equal(await stateOf(), "disabled")
    for (const change of [
      { args: [odd, "plain", marker, "more"] },
      { env: { A: "1" } },
      { command: "/bin/sh" },
      { unknown: 1 }
    ]) {
      declare(change)
      assert.equal(await stateOf(), "pending", JSON.stringify(change))
    }
    const { document } = await project.document("pending", ["mcp", "pending", "fs"])
    assert.deepEqual(document.pending[0]?.change?.fields, ["unknown"])
    declare()
    assert.equal(await stateOf(), "configured")
    // Headers: the remote entry is refused in project scope either way, so the fingerprint itself is compared.
    project.write("sigil.toml", '[mcp]\nproject_remote = "approved"\n')
    const fingerprint = async () =>
      (await project.document("pending", ["--config", "sigil.toml", "mcp", "pending", "far"])).document.pending[0]
        ?.fingerprint
    project.write(".mcp.json", remote({ "X-Team": "a" }))
    const before = await fingerprint()
    project.write(".mcp.json", remote({ "X-Team": "b" }))
    assert.notEqual(await fingerprint(), before)
    assert.isDefined(before)
  })

  it("keeps a rejection by name when the entry changes", async () => {
    declare()
    await project.run(["mcp", "reject", "fs"])
    declare({ env: { A: "1" } })
    assert.equal(await stateOf(), "rejected")
  })

  it("leaves entries that read the environment out of approve --all, and says so", async () => {
    project.write(".mcp.json", {
      mcpServers: {
        plain: { command: process.execPath, args: [odd, "plain"] },
        reads: { command: process.execPath, args: [odd, "plain"], env: { KEY: "${HOME}" } },
        trusting: { command: process.execPath, args: [odd, "plain"], trust: { approval_default: "allow" } }
      }
    })
    const { document } = await project.document("decision", ["mcp", "approve", "--all"])
    assert.deepEqual(document.decided, ["plain"])
    assert.deepEqual(document.skipped.map(({ name }) => name).sort(), ["reads", "trusting"])
    const states = (await project.document("list", ["mcp", "list"])).document.servers.map(({ name, state }) => [
      name,
      state
    ])
    assert.deepEqual(states.sort(), [
      ["plain", "configured"],
      ["reads", "pending"],
      ["trusting", "pending"]
    ])
  })

  it("is shared by a worktree and a sub-directory, not by a clone", async () => {
    const git = (cwd: string, ...args: ReadonlyArray<string>) =>
      assert.equal(
        spawnSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.invalid", ...args], { cwd }).status,
        0
      )
    declare()
    git(project.root, "init", "-q")
    git(project.root, "add", ".mcp.json")
    git(project.root, "commit", "-qm", "one")
    const worktree = path.join(path.dirname(project.root), "worktree")
    const clone = path.join(path.dirname(project.root), "clone")
    git(project.root, "worktree", "add", "-q", worktree)
    git(project.root, "clone", "-q", project.root, clone)
    fs.mkdirSync(path.join(project.root, "deep", "er"), { recursive: true })
    await project.run(["mcp", "approve", "fs"])
    const stateIn = async (cwd: string) =>
      (await project.document("list", ["mcp", "list"], { cwd })).document.servers.find(({ name }) => name === "fs")
        ?.state
    assert.equal(await stateIn(worktree), "configured")
    assert.equal(await stateIn(path.join(project.root, "deep", "er")), "configured")
    assert.equal(await stateIn(clone), "pending")
  })

  it("covers nothing outside of the project with approve --all", async () => {
    const inner = path.join(project.root, "inner")
    const nested = path.join(inner, "nested")
    for (const directory of [inner, nested]) {
      fs.mkdirSync(directory)
      assert.equal(spawnSync("git", ["init", "-q"], { cwd: directory }).status, 0)
    }
    const plain = path.join(project.root, "plain")
    fs.mkdirSync(path.join(inner, "deep"))
    fs.mkdirSync(plain)
    const entry = { command: process.execPath, args: [odd, "plain", marker] }
    const write = (directory: string, name: string) =>
      fs.writeFileSync(path.join(directory, ".mcp.json"), JSON.stringify({ mcpServers: { [name]: entry } }))
    for (const cwd of [inner, plain, nested]) await project.run(["mcp", "approve", "--all"], { cwd })
    write(project.root, "above")
    write(inner, "own")
    write(path.join(inner, "deep"), "deep")
    write(plain, "here")
    const stateIn = async (cwd: string, wanted: string) =>
      (await project.document("list", ["mcp", "list"], { cwd })).document.servers.find(({ name }) => name === wanted)
        ?.state
    const deep = path.join(inner, "deep")
    assert.deepEqual(
      [await stateIn(deep, "own"), await stateIn(deep, "deep"), await stateIn(plain, "here")],
      ["configured", "configured", "configured"]
    )
    for (const cwd of [deep, plain]) assert.equal(await stateIn(cwd, "above"), "pending")
    assert.equal(await stateIn(nested, "own"), "pending")
    const refused = await project.run(["mcp", "tools", "above"], { cwd: inner })
    assert.include(refused.stderr, `its file is outside of the project ${fs.realpathSync(inner)}`)
    assert.isFalse(fs.existsSync(marker))
    assert.include((await project.run(["mcp", "pending"], { cwd: inner })).stdout, "outside of the project")
    // A link out of the project is what it leads to.
    fs.rmSync(path.join(inner, ".mcp.json"))
    fs.symlinkSync(path.join(project.root, ".mcp.json"), path.join(inner, ".mcp.json"))
    assert.equal(await stateIn(inner, "above"), "pending")
    const { document } = await project.document("decision", ["mcp", "approve", "--all"], { cwd: inner })
    assert.deepEqual([document.decided, document.skipped.map(({ name }) => name)], [[], ["above"]])
    await project.run(["mcp", "approve", "above"], { cwd: inner })
    assert.equal(await stateIn(inner, "above"), "configured")
  })

  it("treats a store that is damaged or open to others as nothing decided, says so and keeps it", async () => {
    declare()
    await project.run(["mcp", "approve", "fs"])
    const file = path.join(project.home, ".sigil", "state", "mcp-approvals.json")
    const sound = fs.readFileSync(file, "utf8")
    for (const [text, mode, says] of [
      ["{", 0o600, "is damaged"],
      [sound, 0o666, "others than you may write to it (mode 0666)"]
    ] as const) {
      fs.writeFileSync(file, text)
      fs.chmodSync(file, mode)
      assert.equal(await stateOf(), "pending")
      assert.include((await project.run(["mcp", "call", "fs", "echo", "--yes"])).stderr, says)
      const pending = await project.run(["mcp", "pending"])
      assert.equal(pending.code, 0)
      assert.lengthOf(pending.stderr.split(says), 2, pending.stderr)
      for (const decision of [
        ["approve", "fs"],
        ["approve", "--all"],
        ["reject", "fs"],
        ["reject", "--all"]
      ]) {
        const { code, document } = await project.document("error", ["mcp", ...decision])
        assert.deepEqual([code, document.error.code, document.error.where.file], [1, "SIGIL_FILE", file])
      }
      const doctor = await project.document("doctor", ["doctor"])
      assert.equal(doctor.document.checks.find((check) => check.code === "workspace:approvals")?.status, "error")
      assert.equal(fs.readFileSync(file, "utf8"), text)
    }
    fs.chmodSync(file, 0o600)
    assert.equal(await stateOf(), "configured")
    assert.isFalse(fs.existsSync(marker))
  })
})

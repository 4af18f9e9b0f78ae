/** Servers of plugins as processes: where they run, what they may not, and how a change of their manifest is met. */
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { makeProject, odd, type Project } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

/** A script that says where it runs, then is a server. */
const script = `#!/bin/sh\npwd > "$1"\nexec "${process.execPath}" "${odd}" plain\n`
const mine = () => path.join(project.home, ".sigil", "plugins", "p")
const theirs = () => path.join(project.root, ".sigil", "plugins", "p")
const manifest = (command: string, ...more: ReadonlyArray<string>): string =>
  [
    'id = "p"',
    "[[mcp_servers]]",
    'name = "s"',
    'transport = "stdio"',
    `command = ${JSON.stringify(command)}`,
    `args = [${JSON.stringify(path.join(project.root, "where"))}]`,
    ...more,
    ""
  ].join("\n")
const bring = (directory: string, text: string): void => {
  fs.mkdirSync(path.join(directory, "bin"), { recursive: true })
  fs.writeFileSync(path.join(directory, "bin", "run"), script, { mode: 0o755 })
  fs.writeFileSync(path.join(directory, "plugin.toml"), text, { mode: 0o644 })
}
const call = () => project.run(["mcp", "call", "plugin:p:s", "echo", "a=1", "--yes"])
const where = () => fs.readFileSync(path.join(project.root, "where"), "utf8").trim()
const stateOf = async () =>
  (await project.document("list", ["mcp", "list"])).document.servers.find(({ name }) => name === "plugin:p:s")?.state

describe("a plugin", () => {
  for (const command of ["./bin/run", "${PLUGIN_ROOT}/bin/run"])
    it(`of the user's own runs in its directory, without approval: ${command}`, async () => {
      bring(mine(), manifest(command))
      const ran = await call()
      assert.equal(ran.code, 0, ran.stderr)
      assert.equal(where(), mine())
      const refused = await project.run(["mcp", "approve", "plugin:p:s"])
      assert.equal(refused.code, 2)
      assert.include(refused.stderr, "a plugin of your own")
    })

  it("of the workspace waits for approval, and again when any byte of its manifest changes", async () => {
    bring(theirs(), manifest("./bin/run"))
    assert.equal((await call()).code, 4)
    assert.isFalse(fs.existsSync(path.join(project.root, "where")))
    const shown = await project.run(["mcp", "pending", "plugin:p:s"])
    assert.include(shown.stdout, "plugin     p")
    assert.include(shown.stdout, `in         ${theirs()}`)
    assert.include(shown.stdout, "no variables of yours")
    await project.run(["mcp", "approve", "plugin:p:s"])
    const ran = await call()
    assert.equal(ran.code, 0, ran.stderr)
    assert.equal(where(), theirs())
    fs.appendFileSync(path.join(theirs(), "plugin.toml"), "# a remark\n")
    assert.equal(await stateOf(), "pending")
    const { document } = await project.document("pending", ["mcp", "pending", "plugin:p:s"])
    assert.deepEqual(document.pending[0]?.change?.fields, ["plugin.toml"])
    assert.equal((await call()).code, 4)
  })

  for (const command of ["./bin/run", "${PLUGIN_ROOT}/bin/run"])
    it(`may not leave its directory through a link: ${command}`, async () => {
      bring(mine(), manifest(command))
      fs.renameSync(path.join(mine(), "bin", "run"), path.join(project.root, "run"))
      fs.symlinkSync(path.join(project.root, "run"), path.join(mine(), "bin", "run"))
      const { code, document } = await project.document("error", ["mcp", "call", "plugin:p:s", "echo", "--yes"])
      assert.deepEqual([code, document.error.reason], [3, "mcp_command_symlink_escape"])
      assert.isFalse(fs.existsSync(path.join(project.root, "where")))
    })

  it("may not leave its directory by what a variable holds", async () => {
    fs.mkdirSync(path.join(project.home, ".sigil"), { recursive: true })
    fs.writeFileSync(path.join(project.home, ".sigil", "sigil.toml"), '[mcp]\nplugin_env_allow = ["WHERE"]\n')
    bring(mine(), manifest("./${WHERE}/run"))
    fs.copyFileSync(path.join(mine(), "bin", "run"), path.join(mine(), "..", "run"))
    const { code, document } = await project.document("error", ["mcp", "call", "plugin:p:s", "echo", "--yes"], {
      env: { WHERE: ".." }
    })
    assert.deepEqual([code, document.error.code, document.error.where.field], [4, "SIGIL_SCOPE_REFUSED", "command"])
    assert.isFalse(fs.existsSync(path.join(project.root, "where")))
  })

  it("that asks for more than a plugin may have says where to declare it", async () => {
    bring(mine(), manifest("./bin/run", "inherit_env = []"))
    const { code, document } = await project.document("error", ["mcp", "call", "plugin:p:s", "echo", "--yes"])
    assert.deepEqual([code, document.error.reason], [4, "plugin_mcp_environment_grant_not_supported"])
    assert.include(document.error.fix, "sigil.toml")
    assert.include(document.error.where.file ?? "", "plugin.toml")
  })

  it("is hidden by an entry of the user with its name", async () => {
    bring(mine(), manifest("./bin/run"))
    await project.run(["mcp", "add", "--scope", "user", "plugin:p:s", process.execPath, odd, "plain"])
    const { document } = await project.document("list", ["mcp", "list", "--all"])
    assert.deepEqual(
      document.shadowed.map(({ by, name, scope, why }) => [name, scope, by.scope, why]),
      [["plugin:p:s", "plugin", "user", "name"]]
    )
  })
})

describe("decisions about a whole project", () => {
  it("cover plugins and later entries, say what they leave out, and are taken back by rejecting all", async () => {
    const server = { command: process.execPath, args: [odd, "plain"] }
    bring(theirs(), manifest("./bin/run"))
    project.write(".mcp.json", { mcpServers: { plain: server, reads: { ...server, env: { A: "${HOME}" } } } })
    const { document } = await project.document("decision", ["mcp", "approve", "--all"])
    assert.deepEqual([...document.decided].toSorted(), ["plain", "plugin:p:s"])
    assert.deepEqual(
      document.skipped.map(({ name }) => name),
      ["reads"]
    )
    project.write(".mcp.json", { mcpServers: { plain: server, later: { ...server, args: [odd, "plain", "x"] } } })
    const states = async () =>
      Object.fromEntries(
        (await project.document("list", ["mcp", "list"])).document.servers.map(({ name, state }) => [name, state])
      )
    assert.deepEqual(await states(), { later: "configured", plain: "configured", "plugin:p:s": "configured" })
    const back = await project.document("decision", ["mcp", "reject", "--all"])
    assert.deepEqual(back.document.decided, ["later"])
    assert.deepEqual(await states(), { later: "rejected", plain: "configured", "plugin:p:s": "configured" })
    // Each decision about the whole project is on record by itself.
    const audit = await project.run(["--json", "audit", "show"])
    assert.include(audit.stdout, '"approve_all"')
  })

  it("shows no change where there is none, and names the place when only that changed", async () => {
    const server = { command: process.execPath, args: [odd, "plain"] }
    project.write(".mcp.json", { mcpServers: { a: server } })
    await project.run(["mcp", "approve", "a"])
    const shown = async (cwd: string) => (await project.document("pending", ["mcp", "pending", "a"], { cwd })).document
    assert.isUndefined((await shown(project.root)).pending[0]?.change)
    fs.mkdirSync(path.join(project.root, ".git"))
    fs.writeFileSync(path.join(project.root, ".git", "HEAD"), "ref: refs/heads/main\n")
    await project.run(["mcp", "approve", "a"])
    project.write("sub/.mcp.json", { mcpServers: { a: server } })
    assert.deepEqual((await shown(path.join(project.root, "sub"))).pending[0]?.change?.fields, ["(directory)"])
  })
})

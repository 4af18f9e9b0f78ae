/** Ways around the user's decisions that a hostile repository or a slip of the pen might find; each is closed. */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { inline, makeProject, odd, type Project } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

const server = { command: process.execPath, args: [odd, "plain"] }

describe("a policy that is misspelled or misplaced", () => {
  const home = (file: string, text: string) => {
    const target = path.join(project.home, ".sigil", file)
    fs.mkdirSync(path.dirname(target), { recursive: true })
    fs.writeFileSync(target, text)
  }
  const cases: ReadonlyArray<readonly [string, string]> = [
    ["sigil.toml", "[mcpPolicy]\nallowedServers = []\n"],
    ["sigil.toml", '[[mcpPolicy.deniedServers]]\nname = "odd"\n'],
    ["sigil.toml", '[permision]\nmode = "read-only"\n'],
    ["sigil.toml", '[permission]\nmode = "bogus"\n'],
    ["settings.json", '{"MCPPolicy":{}}'],
    ["settings.json", '{"mcpPolicies":{}}'],
    ["settings.json", '{"mcpPolicy":{"allowedServer":[]}}']
  ]
  for (const [file, text] of cases) {
    it(`refuses every start: ${text.split("\n")[0]} in ${file}`, async () => {
      home(file, text)
      const { document, code } = await project.document("error", [
        ...inline("odd", [odd, "plain"]),
        "mcp",
        "call",
        "odd",
        "echo"
      ])
      assert.deepEqual([code, document.error.code], [4, "SIGIL_SAFETY_UNSUPPORTED"])
      assert.include(document.error.message, file)
    })
  }
})

describe("what is shown for approval", () => {
  it("cannot be forged with line breaks", async () => {
    project.write(".mcp.json", {
      mcpServers: {
        a: { command: "node", args: ["server.js\n  reads      no variables of yours\nApprove: sure", "${HOME}"] }
      }
    })
    const { stdout } = await project.run(["mcp", "pending", "a"])
    assert.notMatch(stdout, /^Approve: sure/m)
    assert.equal([...stdout.matchAll(/^ {2}reads {2}/gm)].length, 1)
    assert.match(stdout, /^ {2}reads {6}HOME$/m)
  })

  it("has the values that steer which code runs, and hides credentials", async () => {
    project.write(".mcp.json", {
      mcpServers: {
        a: { ...server, env: { NODE_OPTIONS: "--require /tmp/evil.js", API_KEY: "sk-live-0123456789abcdef" } }
      }
    })
    const { stdout } = await project.run(["mcp", "pending", "a"])
    assert.include(stdout, "NODE_OPTIONS='--require /tmp/evil.js'")
    assert.include(stdout, "NODE_OPTIONS decides which code runs")
    assert.notInclude(stdout, "0123456789abcdef")
    const { document } = await project.document("pending", ["mcp", "pending", "a"])
    assert.equal(document.pending[0]?.env?.["NODE_OPTIONS"], "--require /tmp/evil.js")
    assert.notInclude(JSON.stringify(document), "0123456789abcdef")
  })
})

describe("an approval", () => {
  it("does not let a sub-directory put another program in the place of a relative command", async () => {
    assert.equal(spawnSync("git", ["init", "-q"], { cwd: project.root }).status, 0)
    const script = (file: string, marker: string) => {
      project.write(file, `#!/bin/sh\ntouch "${path.join(project.root, marker)}"\n`)
      fs.chmodSync(path.join(project.root, file), 0o755)
    }
    script("run.sh", "top-ran")
    script("sub/run.sh", "sub-ran")
    project.write(".mcp.json", { mcpServers: { a: { command: "./run.sh" }, b: { command: "sh", args: ["run.sh"] } } })
    await project.run(["mcp", "approve", "a"])
    await project.run(["mcp", "approve", "b"])
    const sub = path.join(project.root, "sub")
    for (const name of ["a", "b"]) await project.run(["mcp", "call", name, "x", "--yes"], { cwd: sub })
    assert.isFalse(fs.existsSync(path.join(project.root, "sub-ran")))
    assert.isTrue(fs.existsSync(path.join(project.root, "top-ran")))
    // A copy of the approved file lower down is another entry.
    fs.copyFileSync(path.join(project.root, ".mcp.json"), path.join(sub, ".mcp.json"))
    const { document } = await project.document("list", ["mcp", "list"], { cwd: sub })
    assert.deepEqual(
      document.servers.map(({ state }) => state),
      ["pending", "pending"]
    )
    await project.run(["mcp", "call", "a", "x", "--yes"], { cwd: sub })
    assert.isFalse(fs.existsSync(path.join(project.root, "sub-ran")))
  })

  it("of a server that cannot start says so", async () => {
    project.write(".mcp.json", { mcpServers: { a: { ...server, share: "per_client" } } })
    const { stdout } = await project.run(["mcp", "approve", "a"])
    assert.include(stdout, "It still does not start")
  })
})

describe("private servers of one project", () => {
  it("are never another's, however alike the paths read", async () => {
    const one = path.join(project.root, "a", "b")
    const other = path.join(project.root, "a-b")
    fs.mkdirSync(one, { recursive: true })
    fs.mkdirSync(other)
    await project.run(["mcp", "add", "--scope", "local", "mine", process.execPath, odd, "plain"], { cwd: one })
    const names = async (cwd: string) =>
      (await project.document("list", ["mcp", "list"], { cwd })).document.servers.map(({ name }) => name)
    assert.deepEqual(await names(one), ["mine"])
    assert.deepEqual(await names(other), [])
  })
})

describe("a file that cannot be read", () => {
  it("is named by every command that would otherwise seem to know all servers", async () => {
    project.write(".mcp.json", "{bad")
    for (const args of [
      ["mcp", "call", "a", "t"],
      ["mcp", "approve", "a"],
      ["mcp", "get", "a"]
    ]) {
      const { document, code } = await project.document("error", args)
      assert.equal(code, 2, args.join(" "))
      assert.include(document.error.where.file ?? "", ".mcp.json")
    }
    for (const args of [
      ["mcp", "pending"],
      ["mcp", "tools"],
      ["mcp", "approve", "--all"]
    ]) {
      assert.include((await project.run(args)).stderr, ".mcp.json", args.join(" "))
    }
  })

  it("or a directory that is gone gives a typed error, one document", async () => {
    const gone = path.join(project.root, "gone")
    fs.mkdirSync(gone)
    const script = `cd "${gone}" && rmdir "${gone}" && exec "$0" "$@"`
    const { bin } = await import("../support/Command.ts")
    const ran = spawnSync("sh", ["-c", script, process.execPath, bin(), "--json", "mcp", "list"], {
      encoding: "utf8",
      env: { PATH: process.env["PATH"], HOME: project.home }
    })
    assert.equal(ran.status, 2, ran.stderr)
    assert.equal(JSON.parse(ran.stdout).error.code, "SIGIL_CONFIG_UNREADABLE")
  })
})

describe("mcp add", () => {
  it("says how to declare what a shared file may not hold, before anything is written", async () => {
    const { document, code } = await project.document("error", [
      "mcp",
      "add",
      "--inherit-env",
      "TOKEN",
      "gh",
      "--",
      "gh-mcp"
    ])
    assert.equal(code, 2)
    assert.include(document.error.fix, "--scope user")
    assert.isFalse(fs.existsSync(path.join(project.root, ".mcp.json")))
    assert.equal((await project.run(["mcp", "add", "x", "ftp://example.invalid"])).code, 2)
  })
})

describe("list --status", () => {
  it("tells servers that wait for their turn from ones that failed", async () => {
    const hung = Object.fromEntries(
      Array.from({ length: 12 }, (_, n) => [`a${n}`, { command: process.execPath, args: [odd, "mute"] }])
    )
    const config = JSON.stringify({ mcpServers: { ...hung, z: server } })
    const { document } = await project.document("list", [
      "--mcp-config",
      config,
      "mcp",
      "list",
      "--status",
      "--timeout",
      // Shorter than the end of one that hangs, so no place becomes free.
      "0.4"
    ])
    const states = Object.fromEntries(document.servers.map(({ name, queued, state }) => [name, { state, queued }]))
    assert.deepEqual(states["z"], { state: "activating", queued: true })
    assert.deepEqual(states["a0"], { state: "failed", queued: undefined })
  })
})

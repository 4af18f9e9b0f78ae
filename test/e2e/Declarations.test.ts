/** Declaring, editing and reading servers: nothing is lost, and what is wrong is named with its place. */
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { makeProject, odd, official, type Project } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

describe("sigil mcp add", () => {
  it("keeps every word of the server's command, is pending, and works after approval", async () => {
    const words = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/tmp"]
    const added = await project.document("change", ["mcp", "add", "fs", ...words])
    assert.equal(added.document.scope, "project")
    assert.deepEqual(JSON.parse(project.read(".mcp.json")).mcpServers.fs, { command: "npx", args: words.slice(1) })
    const { document } = await project.document("pending", ["mcp", "pending"])
    assert.deepEqual(document.pending[0]?.command, words)
    // The same command line with the installed package, so that the test needs no registry.
    await project.run(["mcp", "add", "--force", "fs", process.execPath, official("filesystem"), project.root])
    assert.equal((await project.run(["mcp", "call", "fs", "list_directory", `path=${project.root}`, "--yes"])).code, 4)
    await project.run(["mcp", "approve", "fs"])
    const listed = await project.run(["mcp", "call", "fs", "list_directory", `path=${project.root}`, "--yes"])
    assert.equal(listed.code, 0, listed.stderr)
    assert.include(listed.stdout, "[FILE] .mcp.json")
  })

  it("in scope user works at once", async () => {
    await project.run(["mcp", "add", "--scope", "user", "fs", process.execPath, official("filesystem"), project.root])
    assert.include(fs.readFileSync(path.join(project.home, ".sigil", "sigil.toml"), "utf8"), "[[mcp_servers]]")
    const listed = await project.run(["mcp", "call", "fs", "list_directory", `path=${project.root}`, "--yes"])
    assert.equal(listed.code, 0, listed.stderr)
  })

  it("keeps words that look like options of sigil", async () => {
    const words = ["cmd", "--json", "--help", "", "-d", "--scope", "user", "--", "a b", "$HOME"]
    await project.run(["mcp", "add", "odd", ...words])
    assert.deepEqual(JSON.parse(project.read(".mcp.json")).mcpServers.odd, { command: "cmd", args: words.slice(1) })
  })

  it("refuses a literal credential in the project's file and shows the reference to write", async () => {
    const { document, code } = await project.document("error", [
      "mcp",
      "add",
      "--env",
      "API_KEY=sk-live-0123456789abcdef",
      "gh",
      "gh-mcp"
    ])
    assert.deepEqual([code, document.error.code], [2, "SIGIL_LITERAL_CREDENTIAL"])
    assert.include(document.error.fix, "${API_KEY}")
    assert.notInclude(JSON.stringify(document), "0123456789abcdef")
    assert.isFalse(fs.existsSync(path.join(project.root, ".mcp.json")))
  })

  describe("with a value that the user's entries read as a secret", () => {
    const env = {
      GRANTED: "plain words here",
      HEADER: "header-value-7",
      WRITTEN: "written/value+7",
      OPEN: "open-value-7",
      SWITCH: "1",
      UNUSED: "unused-value-7"
    }
    beforeEach(() => {
      fs.mkdirSync(path.join(project.home, ".sigil"), { recursive: true })
      fs.writeFileSync(
        path.join(project.home, ".sigil", "sigil.toml"),
        [
          '[[mcp_servers]]\nname = "a"\ntransport = "stdio"\ncommand = "x"\nargs = ["${WRITTEN}", "${OPEN}"]',
          'inherit_env = ["GRANTED", "OPEN", "SWITCH"]\npublic_env = ["OPEN"]\n',
          '[[mcp_servers]]\nname = "b"\ntransport = "streamable_http"\nurl = "https://h/"\nbearer_token_env_var = "HEADER"\n'
        ].join("\n")
      )
    })
    const url = ["--scope", "project"]
    it.each([
      ["env.A", "GRANTED", ["--env", `A=${env.GRANTED}`, "foo", "node", "x"]],
      ["env.A", "GRANTED", ["--env", `A=<${env.GRANTED}>`, "foo", "node", "x"]],
      ["args[1]", "WRITTEN", ["foo", "node", "x", `--with=${env.WRITTEN}`]],
      ["headers.X", "HEADER", [...url, "--header", `X=it is ${env.HEADER}`, "foo", "https://example.com/"]],
      ["url", "WRITTEN", [...url, "foo", `https://example.com/?q=${encodeURIComponent(env.WRITTEN)}`]]
    ])("is refused in %s of the project's file, and named %s", async (field, variable, args) => {
      const { code, document } = await project.document("error", ["mcp", "add", ...args], { env })
      assert.deepEqual([code, document.error.code], [2, "SIGIL_LITERAL_CREDENTIAL"])
      assert.equal(document.error.where.field, field)
      assert.include(document.error.fix, `\${${variable}}`)
      for (const value of [env.GRANTED, env.HEADER, env.WRITTEN]) assert.notInclude(JSON.stringify(document), value)
      assert.isFalse(fs.existsSync(path.join(project.root, ".mcp.json")))
    })

    it("is written for the user, and what is no secret for the project, too", async () => {
      const user = ["mcp", "add", "--scope", "user", "--env", `A=${env.GRANTED}`, "own", "node"]
      assert.equal((await project.run(user, { env })).code, 0)
      const words = [env.OPEN, env.SWITCH, env.UNUSED, "${GRANTED}"]
      assert.equal((await project.run(["mcp", "add", "foo", "node", ...words], { env })).code, 0)
      assert.deepEqual(JSON.parse(project.read(".mcp.json")).mcpServers.foo.args, words)
    })
  })

  it("refuses a name that is taken and leaves the file as it was", async () => {
    await project.run(["mcp", "add", "fs", "one"])
    const before = project.read(".mcp.json")
    const { document, code } = await project.document("error", ["mcp", "add", "fs", "two"])
    assert.deepEqual([code, document.error.code], [2, "SIGIL_NAME_TAKEN"])
    assert.equal(project.read(".mcp.json"), before)
  })

  it("eight at a time: each landed or said why not, nothing is lost, comments survive", async () => {
    project.write(
      ".mcp.json",
      '{\n  // kept by hand\n  "mcpServers": {\n    "first": { "command": "one" } // and this\n  }\n}\n'
    )
    const names = Array.from({ length: 8 }, (_, index) => `server-${index}`)
    const ran = await Promise.all(names.map((name) => project.run(["mcp", "add", name, "cmd", name])))
    const text = project.read(".mcp.json")
    const { document } = await project.document("list", ["mcp", "list"])
    const declared = document.servers.map(({ name }) => name)
    for (const [index, { code, stderr }] of ran.entries()) {
      if (code === 0) assert.include(declared, names[index])
      else assert.include(stderr, "reload and retry")
    }
    assert.isAbove(ran.filter(({ code }) => code === 0).length, 0)
    assert.include(declared, "first")
    assert.include(text, "// kept by hand")
    assert.include(text, "// and this")
  })

  it("eight at a time in sigil.toml", async () => {
    const toml = path.join(project.home, ".sigil", "sigil.toml")
    fs.mkdirSync(path.dirname(toml), { recursive: true })
    fs.writeFileSync(toml, "# mine\n[agent]\ntool_timeout_secs = 20 # short\n")
    const names = Array.from({ length: 8 }, (_, index) => `server-${index}`)
    const ran = await Promise.all(names.map((name) => project.run(["mcp", "add", "--scope", "user", name, "cmd"])))
    const { document } = await project.document("list", ["mcp", "list"])
    const declared = document.servers.map(({ name }) => name)
    for (const [index, { code, stderr }] of ran.entries()) {
      if (code === 0) assert.include(declared, names[index])
      else assert.include(stderr, "reload and retry")
    }
    assert.include(fs.readFileSync(toml, "utf8"), "tool_timeout_secs = 20 # short")
  })
})

describe("declarations", () => {
  it("lose one broken entry of five, with file, line, column and field", async () => {
    const server = (name: string) =>
      `    "${name}": { "command": ${JSON.stringify(process.execPath)}, "args": [${JSON.stringify(odd)}, "plain"] }`
    const file = project.write(
      ".mcp.json",
      `{\n  "mcpServers": {\n${server("a")},\n${server("b")},\n    "c": { "command": "node", "args": "not a list" },\n${server("d")},\n${server("e")}\n  }\n}\n`
    )
    for (const name of ["a", "b", "d", "e"]) await project.run(["mcp", "approve", name])
    const { document } = await project.document("list", ["mcp", "list"])
    assert.deepEqual(
      document.servers.map(({ name, state }) => `${name} ${state}`),
      ["a configured", "b configured", "c invalid", "d configured", "e configured"]
    )
    const failed = await project.document("error", ["mcp", "call", "c", "echo"])
    assert.equal(failed.code, 2)
    assert.deepEqual(failed.document.error.where, {
      ...failed.document.error.where,
      file,
      line: 5,
      field: "mcpServers.c.args"
    })
    assert.isNumber(failed.document.error.where.column)
    for (const name of ["a", "b", "d", "e"]) {
      assert.equal((await project.run(["mcp", "call", name, "echo", "--yes"])).code, 0)
    }
  })

  it("are shown by get without values of variables, headers and credentials in arguments", async () => {
    const config = JSON.stringify({
      mcpServers: {
        s: { command: "node", args: ["--api-key", "sk-live-0123456789abcdef"], env: { TOKEN: "literal-secret-value" } }
      }
    })
    const ran = await project.run(["--mcp-config", config, "mcp", "get", "s"])
    const json = await project.document("get", ["--mcp-config", config, "mcp", "get", "s"])
    for (const text of [ran.stdout, JSON.stringify(json.document)]) {
      assert.notInclude(text, "0123456789abcdef")
      assert.notInclude(text, "literal-secret-value")
    }
  })

  it("are removed from the file that declares them, comments kept", async () => {
    project.write(
      ".mcp.json",
      '{\n  // top\n  "mcpServers": {\n    "a": { "command": "one" },\n    "b": { "command": "two" } // b\n  }\n}\n'
    )
    const { document } = await project.document("change", ["mcp", "remove", "a"])
    assert.equal(document.action, "remove")
    assert.include(project.read(".mcp.json"), "// top")
    assert.deepEqual(
      (await project.document("list", ["mcp", "list"])).document.servers.map(({ name }) => name),
      ["b"]
    )
    assert.equal((await project.document("error", ["mcp", "remove", "a"])).code, 1)
  })

  it("are switched off and on by a private file", async () => {
    project.write(".mcp.json", { mcpServers: { a: { command: process.execPath, args: [odd, "plain"] } } })
    await project.run(["mcp", "approve", "a"])
    const before = project.read(".mcp.json")
    await project.document("change", ["mcp", "disable", "a"])
    const refused = await project.document("error", ["mcp", "call", "a", "echo", "--yes"])
    assert.deepEqual([refused.code, refused.document.error.code], [4, "SIGIL_DISABLED"])
    await project.document("change", ["mcp", "enable", "a"])
    assert.equal((await project.run(["mcp", "call", "a", "echo", "--yes"])).code, 0)
    assert.equal(project.read(".mcp.json"), before)
  })

  it("with a safety setting that cannot be read start nothing", async () => {
    project.write("sigil.toml", '[execution]\nstrategy = "jail"\n')
    project.write(".mcp.json", { mcpServers: { a: { command: process.execPath, args: [odd, "plain"] } } })
    await project.run(["--config", "sigil.toml", "mcp", "approve", "a"])
    const { document, code } = await project.document("error", [
      "--config",
      "sigil.toml",
      "mcp",
      "call",
      "a",
      "echo",
      "--yes"
    ])
    assert.deepEqual([code, document.error.code], [4, "SIGIL_SAFETY_UNSUPPORTED"])
  })

  it("are explained gate by gate, and checked by the doctor", async () => {
    project.write(".mcp.json", { mcpServers: { a: { command: "no-such-command-anywhere" } } })
    const pending = await project.document("explain", ["mcp", "explain", "a"])
    assert.equal(pending.document.gates.find(({ verdict }) => verdict === "refuse")?.gate, "approval")
    await project.run(["mcp", "approve", "a"])
    const missing = await project.document("explain", ["mcp", "explain", "a"])
    assert.equal(missing.document.gates.find(({ verdict }) => verdict === "refuse")?.gate, "executable")
    const doctor = await project.document("doctor", ["doctor"])
    assert.equal(doctor.code, 0)
    assert.equal(doctor.document.checks.find(({ code }) => code === "mcp:executable")?.status, "warn")
    project.write("sigil.toml", "nonsense = = 1\n")
    const broken = await project.document("doctor", ["--config", "sigil.toml", "doctor"])
    assert.equal(broken.code, 1)
    assert.isFalse(broken.document.ok)
  })
})

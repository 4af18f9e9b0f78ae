/** Calls through the whole pipeline: exact tools, hostile definitions, bad input, failing servers. */
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { demo, inline, makeProject, odd, type Project } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

const answerOf = (content: ReadonlyArray<{ readonly [key: string]: unknown }>): unknown =>
  JSON.parse(String(content[0]?.["text"]))

describe("names", () => {
  it("of any kind have visible names that stay, and calls reach the exact tool", async () => {
    const config = inline("odd", [odd, "names"])
    const first = await project.document("tools", [...config, "mcp", "tools", "odd"])
    const again = await project.document("tools", [...config, "mcp", "tools", "odd"])
    const tools = first.document.servers[0]?.tools ?? []
    assert.deepEqual(again.document.servers[0]?.tools, tools)
    assert.equal(tools.length, 8)
    assert.equal(new Set(tools.map(({ visible_name }) => visible_name)).size, 8)
    for (const { visible_name } of tools) assert.match(visible_name, /^mcp__odd__[A-Za-z0-9_-]{1,54}$/)
    const twins = tools.filter(({ name }) => name === "read.file" || name === "read file")
    for (const { visible_name } of twins) assert.match(visible_name, /^mcp__odd__read_file__[0-9a-f]{16}$/)
    for (const { name, visible_name } of tools) {
      const byName = await project.document("call", [...config, "mcp", "call", "odd", "--args", "{}", "--", name])
      assert.deepEqual(answerOf(byName.document.content), { name, args: {} })
      const byVisible = await project.document("call", [...config, "mcp", "call", visible_name, "--args", "{}"])
      assert.deepEqual(answerOf(byVisible.document.content), { name, args: {} })
    }
  })
})

describe("hostile definitions", () => {
  it("cost one tool each; the others work and nothing blocks", async () => {
    const config = inline("odd", [odd, "schemas"])
    const { document } = await project.document("tools", [...config, "mcp", "tools", "odd"])
    const reasons = Object.fromEntries(
      (document.servers[0]?.tools ?? []).map(({ name, status, reason }) => [name, reason?.code ?? status])
    )
    assert.equal(reasons["good"], "available")
    assert.equal(reasons["slow_pattern"], "available")
    for (const name of ["deep", "huge", "external", "no_schema", "wrong_schema"]) {
      assert.notEqual(reasons[name], "available", name)
    }
    const good = await project.document("call", [...config, "mcp", "call", "odd", "good", "n=3"])
    assert.deepEqual(answerOf(good.document.content), { name: "good", args: { n: 3 } })
    const deep = await project.document("error", [...config, "mcp", "call", "odd", "deep", "--args", "{}"])
    assert.deepEqual([deep.code, deep.document.error.code], [4, "SIGIL_TOOL_QUARANTINED"])
    const lookahead = await project.document("error", [...config, "mcp", "call", "odd", "lookahead", "text=ab"])
    assert.deepEqual([lookahead.code, lookahead.document.error.code], [4, "SIGIL_TOOL_QUARANTINED"])
  })

  it("with a pattern of exponential cost are answered like any other", async () => {
    const config = inline("odd", [odd, "schemas"])
    const text = `${"a".repeat(5_000)}!`
    const { document, code } = await project.document("error", [
      ...config,
      "mcp",
      "call",
      "odd",
      "slow_pattern",
      `text=${text}`
    ])
    assert.deepEqual([code, document.error.code], [2, "SIGIL_ARGUMENTS_INVALID"])
    const fits = await project.run([...config, "mcp", "call", "odd", "slow_pattern", `text=${"a".repeat(5_000)}`])
    assert.equal(fits.code, 0)
  })
})

describe("arguments", () => {
  const config = inline("odd", [odd, "schemas"])
  const refused = async (...args: ReadonlyArray<string>) => {
    const { document, code } = await project.document("error", [...config, "mcp", "call", "odd", ...args])
    return { ...document.error, code: document.error.code, exit: code }
  }

  it("that do not fit are refused with path and expectation, and nothing is sent", async () => {
    const file = path.join(project.root, "messages")
    const recorded = inline("odd", [odd, "schemas", file])
    const { document, code } = await project.document("error", [...recorded, "mcp", "call", "odd", "good", "n=x"])
    assert.deepEqual([code, document.error.code], [2, "SIGIL_ARGUMENTS_INVALID"])
    assert.match(document.error.message, /\/n: must be an integer/)
    assert.notInclude(fs.readFileSync(file, "utf8"), "tools/call")
    assert.match((await refused("good")).message, /\/n: is required/)
    assert.match((await refused("good", "n=0")).message, /\/n: must be (?:>=|at least) 1/)
  })

  it("suggest the near key and tool", async () => {
    const key = await refused("good", "nn=1")
    assert.deepEqual([key.exit, key.candidates], [2, ["n"]])
    const tool = await refused("goood", "n=1")
    assert.deepEqual([tool.exit, tool.code, tool.candidates], [1, "SIGIL_UNKNOWN_TOOL", ["good"]])
    const { document, code } = await project.document("error", [...config, "mcp", "call", "od", "good"])
    assert.deepEqual([code, document.error.code, document.error.candidates], [1, "SIGIL_UNKNOWN_SERVER", ["odd"]])
  })

  it("may be words, JSON words, files, one object or standard input", async () => {
    project.write("text.txt", "from a file\n")
    project.write("all.json", { a: [1] })
    const open = inline("odd", [odd, "plain"])
    const sent = async (args: ReadonlyArray<string>, stdin?: string) =>
      answerOf(
        (
          await project.document(
            "call",
            [...open, "mcp", "call", "odd", "echo", ...args],
            stdin === undefined ? {} : { stdin }
          )
        ).document.content
      )
    const args = (value: object) => ({ name: "echo", args: value })
    assert.deepEqual(await sent(["a=1", "b=true", "--", "--c=x=y"]), args({ a: "1", b: "true", "--c": "x=y" }))
    assert.deepEqual(await sent(["a:=1", 'b:={"c":[true,null]}']), args({ a: 1, b: { c: [true, null] } }))
    assert.deepEqual(await sent(["a=@text.txt"]), args({ a: "from a file\n" }))
    assert.deepEqual(await sent(["--args", '{"a":{"b":2}}']), args({ a: { b: 2 } }))
    assert.deepEqual(await sent(["--args", "@all.json"]), args({ a: [1] }))
    assert.deepEqual(await sent(["-"], '{"x":"y"}'), args({ x: "y" }))
    for (const bad of [
      ["word"],
      ["--args", "[1]"],
      ["--args", "{"],
      ["a=1", "a=2"],
      ["a:=nope"],
      ["a=@missing.txt"],
      ["a=1", "--args", "{}"]
    ]) {
      const { code, document } = await project.document("error", [...open, "mcp", "call", "odd", "echo", ...bad])
      assert.equal(code, 2, bad.join(" "))
      assert.equal(document.error.code, "SIGIL_ARGUMENTS_INVALID")
    }
  })

  it("and results keep digits that a double cannot hold", async () => {
    const structured = inline("odd", [odd, "structured"])
    const { stdout } = await project.run([
      "--json",
      ...structured,
      "mcp",
      "call",
      "odd",
      "digits",
      "n:=98765432109876543210"
    ])
    assert.include(stdout, '"n":12345678901234567890')
    assert.include(stdout, '"n":98765432109876543210')
  })
})

describe("permission", () => {
  const ask = (approval: string) => inline("odd", [odd, "plain"], { trust: { approval_default: approval } })

  it("refuses an ask without a terminal and prints the rule that would allow it", async () => {
    const { document, code } = await project.document("error", [...ask("ask"), "mcp", "call", "odd", "echo"])
    assert.deepEqual(
      [code, document.error.code, document.error.reason],
      [4, "SIGIL_APPROVAL_REQUIRED", "approval_required"]
    )
    assert.include(document.error.fix, 'tool_name = "mcp__odd__echo"')
    project.write("sigil.toml", '[[permission.rules]]\ntool_name = "mcp__odd__echo"\nmode = "allow"\n')
    assert.equal((await project.run(["--config", "sigil.toml", ...ask("ask"), "mcp", "call", "odd", "echo"])).code, 0)
  })

  it("lets --yes answer an ask, never a deny and never a network ask", async () => {
    assert.equal((await project.run([...ask("ask"), "mcp", "call", "odd", "echo", "--yes"])).code, 0)
    assert.equal((await project.run([...ask("deny"), "mcp", "call", "odd", "echo", "--yes"])).code, 4)
    project.write("sigil.toml", '[web]\nnetwork_mode = "ask"\n')
    const { document, code } = await project.document("error", [
      "--config",
      "sigil.toml",
      ...ask("allow"),
      "mcp",
      "call",
      "odd",
      "echo",
      "--yes"
    ])
    assert.deepEqual([code, document.error.reason], [4, "network_approval_required"])
  })

  it("is explained without sending anything", async () => {
    const file = path.join(project.root, "messages")
    const { document, code } = await project.document("explain", [
      ...inline("odd", [odd, "plain", file]),
      "mcp",
      "call",
      "odd",
      "echo",
      "a=1",
      "--explain"
    ])
    assert.equal(code, 0)
    assert.includeMembers(
      document.gates.map(({ gate }) => gate),
      ["approval", "arguments", "permission", "secret_gate"]
    )
    assert.notInclude(fs.readFileSync(file, "utf8"), "tools/call")
  })
})

describe("servers that fail", () => {
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<string>, string, RegExp]> = [
    ["dies", ["dies"], "SIGIL_START_FAILED", /cannot find configuration in HOME/],
    ["frames with Content-Length", ["content-length"], "SIGIL_PROTOCOL_FAULT", /Content-Length/],
    ["speaks a version of the future", ["future"], "SIGIL_PROTOCOL_FAULT", /2099-01-01/],
    ["prints a banner to stdout", ["noise"], "SIGIL_PROTOCOL_FAULT", /not JSON/]
  ]
  for (const [what, args, code, text] of cases) {
    it(`a server that ${what} is exit 3 with the reason`, async () => {
      const failed = await project.document("error", [...inline("odd", [odd, ...args]), "mcp", "call", "odd", "echo"])
      assert.equal(failed.code, 3)
      assert.equal(failed.document.error.code, code)
      assert.match(failed.document.error.message, text)
    })
  }

  it("a server that dies says which variables it may lack", async () => {
    const { document } = await project.document("error", [...inline("odd", [odd, "dies"]), "mcp", "tools", "odd"], {
      env: { API_TOKEN: "a-token-of-the-parent" }
    })
    assert.includeMembers(
      [...(document.error.details["lacking_variables"] as ReadonlyArray<string>)],
      ["API_TOKEN", "HOME"]
    )
    assert.include(document.error.fix, "--inherit-env API_TOKEN")
    assert.notInclude(JSON.stringify(document), "a-token-of-the-parent")
    const logs = await project.document("logs", [...inline("odd", [odd, "dies"]), "mcp", "logs", "odd"])
    assert.include(logs.document.lines.join("\n"), "fatal: cannot find configuration")
  })

  it("a mute server is exit 3 within its start budget, naming the field", async () => {
    const { document, code } = await project.document("error", [
      ...inline("odd", [odd, "mute"], { timeout: 300 }),
      "mcp",
      "tools",
      "odd"
    ])
    assert.deepEqual([code, document.error.code], [3, "SIGIL_START_TIMEOUT"])
    assert.include(document.error.fix, "startupTimeoutSecs")
  })

  it("a server that dies of the first question is started once more, and from then on not asked", async () => {
    const call = [...inline("odd", [odd, "fragile"]), "mcp", "call", "odd", "echo", "--stderr"]
    const first = await project.run(call)
    assert.equal(first.code, 0, first.stderr)
    assert.equal(first.stderr.split("what is server/discover?").length, 2)
    const second = await project.run(call)
    assert.equal(second.code, 0, second.stderr)
    assert.notInclude(second.stderr, "what is")
  })

  it("a missing command names the PATH that was searched", async () => {
    const config = JSON.stringify({ mcpServers: { gone: { command: "no-such-command-anywhere" } } })
    const { document, code } = await project.document("error", ["--mcp-config", config, "mcp", "tools", "gone"])
    assert.deepEqual([code, document.error.code], [3, "SIGIL_COMMAND_NOT_FOUND"])
    assert.include(document.error.message, "PATH searched:")
  })

  it("a banner is tolerated where the entry says so, and counted", async () => {
    const config = inline("odd", [odd, "noise"], { stdoutNoise: "skip" })
    const { document } = await project.document("list", [...config, "mcp", "list", "--status"])
    assert.equal(document.servers[0]?.state, "ready")
    assert.equal(document.servers[0]?.status?.noise_lines, 1)
  })

  it("list --status is complete although one server is mute", async () => {
    const config = JSON.stringify({
      mcpServers: {
        good: { command: process.execPath, args: [odd, "plain"] },
        mute: { command: process.execPath, args: [odd, "mute"] }
      }
    })
    const { document, code } = await project.document("list", [
      "--mcp-config",
      config,
      "mcp",
      "list",
      "--status",
      "--timeout",
      "2"
    ])
    assert.equal(code, 0)
    assert.deepEqual(
      document.servers.map(({ name, state }) => [name, state]),
      [
        ["good", "ready"],
        ["mute", "failed"]
      ]
    )
  })
})

describe("results", () => {
  const config = () => inline("demo", [demo()])

  it("that are cut say how much, in a last block of their own, and the artifact has the whole", async () => {
    const { document, code } = await project.document("call", [
      ...config(),
      "mcp",
      "call",
      "demo",
      "count",
      "lines=5000"
    ])
    assert.equal(code, 0)
    assert.isTrue(document.truncated)
    assert.equal(document.limit_bytes, 32_768)
    assert.isAtMost(document.returned_bytes, 32_768)
    assert.isTrue(String(document.content[0]?.["text"]).startsWith("line 1\nline 2\n"))
    const last = String(document.content.at(-1)?.["text"])
    assert.include(last, `${document.returned_bytes} of ${document.total_bytes} bytes`)
    const file = document.artifact?.path ?? ""
    assert.equal(fs.readFileSync(file, "utf8").split("\n").length, 5_000)
    assert.equal(fs.statSync(file).mode & 0o777, 0o600)
    const full = await project.run([...config(), "mcp", "call", "demo", "count", "lines=5000", "--full"])
    assert.equal(full.stdout.trimEnd().split("\n").length, 5_000)
  })

  it("of megabytes reach a pipe whole", async () => {
    const { stdout } = await project.run([...config(), "mcp", "call", "demo", "count", "lines=100000", "--full"])
    assert.isTrue(stdout.endsWith("line 100000\n"))
    const saved = path.join(project.root, "out.txt")
    await project.run([...config(), "mcp", "call", "demo", "count", "lines=3000", "--save", "out.txt"])
    assert.equal(fs.readFileSync(saved, "utf8").split("\n").length, 3_000)
  })

  it("with isError are exit 5 and keep their content", async () => {
    const { document, code } = await project.document("call", [...config(), "mcp", "call", "demo", "fail"])
    assert.deepEqual([code, document.is_error], [5, true])
    assert.equal(document.content[0]?.["text"], "This tool fails on purpose.")
  })

  it("that break the tool's own output schema are exit 1, content still shown", async () => {
    const { document, code } = await project.document("call", [
      ...inline("odd", [odd, "structured"]),
      "mcp",
      "call",
      "odd",
      "violates"
    ])
    assert.equal(code, 1)
    assert.equal(document.content[0]?.["text"], "kept")
    assert.match(document.warnings.join("\n"), /output schema/)
  })

  it("show a datum once when text and structured content say the same", async () => {
    const { document } = await project.document("call", [...config(), "mcp", "call", "demo", "add", "a=1", "b=2"])
    assert.deepEqual(document.content, [{ type: "text", text: '{"sum":3}' }])
    assert.isUndefined(document.structured_content)
  })

  it("are refused where the state directory cannot be written, while list works", async () => {
    // A file where the directory should be: unwritable for every user, root included.
    const state = project.write("state", "a file")
    const env = { SIGIL_STATE_HOME: state }
    const { document, code } = await project.document(
      "error",
      [...config(), "mcp", "call", "demo", "add", "a=1", "b=2"],
      { env }
    )
    assert.deepEqual([code, document.error.code], [4, "SIGIL_STATE_UNWRITABLE"])
    assert.include(document.error.fix, "SIGIL_STATE_HOME")
    assert.equal((await project.run([...config(), "mcp", "list"], { env })).code, 0)
  })
})

describe("usage", () => {
  it("errors go to stderr with exit 2", async () => {
    for (const args of [
      ["nonsense"],
      ["mcp", "lst"],
      ["mcp", "list", "--nonsense"],
      ["mcp", "call"],
      ["mcp", "approve"],
      ["--config"]
    ]) {
      const { code, stdout, stderr } = await project.run(args)
      assert.equal(code, 2, args.join(" "))
      assert.equal(stdout, "")
      assert.include(stderr, "error:")
    }
    assert.include((await project.run(["mcp", "lst"])).stderr, "'sigil mcp list'")
  })
})

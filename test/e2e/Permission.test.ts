/** Permission as a user meets it: both files, the built command, and the texts that say what to do. */
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { inline, makeProject, odd, type Project } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

const home = (file: "settings.json" | "sigil.toml", content: string | object): string => {
  const target = path.join(project.home, ".sigil", file)
  fs.mkdirSync(path.dirname(target), { recursive: true })
  fs.writeFileSync(target, typeof content === "string" ? content : JSON.stringify(content, undefined, 2))
  return target
}
const server = (name: string, approval: string, ...more: ReadonlyArray<string>) =>
  inline(name, [odd, "plain", ...more], { trust: { approval_default: approval } })
const call = (name: string, approval: string, ...words: ReadonlyArray<string>) =>
  project.run([...server(name, approval), "mcp", "call", name, "echo", ...words])
const refused = (name: string, approval: string, ...words: ReadonlyArray<string>) =>
  project.document("error", [...server(name, approval), "mcp", "call", name, "echo", ...words])

describe("the lists of settings.json", () => {
  const spellings = (name: string) => [`mcp__${name}__echo`, `mcp__${name}__*`, `mcp__${name}`, "mcp__*"]

  for (const name of ["odd", "fetch-demo"]) {
    it(`allow the calls of '${name}' that would be asked, in every spelling`, async () => {
      assert.equal((await call(name, "ask")).code, 4)
      for (const rule of spellings(name)) {
        home("settings.json", { permissions: { allow: [rule] } })
        const { code, stderr } = await call(name, "ask")
        assert.equal(code, 0, `${rule}: ${stderr}`)
      }
    })
  }

  it("deny before ask before allow, and say the list with its line", async () => {
    const file = home("settings.json", { permissions: { allow: ["mcp__odd__echo"], ask: ["mcp__ODD"] } })
    const asked = await refused("odd", "allow")
    assert.deepEqual([asked.code, asked.document.error.code], [4, "SIGIL_APPROVAL_REQUIRED"])
    assert.include(asked.document.error.message, "'mcp__ODD' in permissions.ask of settings.json")
    assert.deepInclude(asked.document.error.where, { file, line: 7 })
    // No rule of sigil.toml is stronger than this list, so none is suggested.
    assert.notInclude(asked.document.error.fix, "[[permission.rules]]")
    assert.include(asked.document.error.fix, `${file}:7`)
    assert.equal((await call("odd", "allow", "--yes")).code, 0)

    home("settings.json", { permissions: { allow: ["mcp__odd__echo"], deny: ["mcp__odd__e*"] } })
    const denied = await refused("odd", "allow", "--yes")
    assert.deepEqual([denied.code, denied.document.error.code], [4, "SIGIL_DENIED"])
    assert.include(denied.document.error.message, "permissions.deny")
  })

  it("and sigil.toml: the stricter counts", async () => {
    home("settings.json", { permissions: { allow: ["mcp__odd"] } })
    home("sigil.toml", '[[permission.rules]]\ntool_name = "mcp__odd__echo"\nmode = "deny"\n')
    const denied = await refused("odd", "allow")
    assert.equal(denied.code, 4)
    assert.include(denied.document.error.message, "line 1 of sigil.toml")
    home("sigil.toml", '[[permission.rules]]\ntool_name = "mcp__odd__echo"\nmode = "allow"\n')
    assert.equal((await call("odd", "deny")).code, 0)
  })

  it("look at arguments, and allowedTools at exact names", async () => {
    home("settings.json", { permissions: { deny: ["mcp__odd(/etc/*)"] }, allowedTools: ["mcp__odd__echo"] })
    assert.equal((await call("odd", "ask", "file_path=/tmp/x")).code, 0)
    assert.equal((await call("odd", "ask", "file_path=/etc/passwd", "--yes")).code, 4)
    assert.equal((await call("odd", "ask", "file_path=/tmp/../etc/passwd", "--yes")).code, 4)
    home("settings.json", { allowedTools: ["mcp__odd__*"] })
    assert.equal((await call("odd", "ask")).code, 4)
  })

  it("that cannot be read start nothing", async () => {
    home("settings.json", { permissions: { deny: ["mcp__odd("] } })
    const { document, code } = await refused("odd", "allow")
    assert.deepEqual([code, document.error.code], [4, "SIGIL_SAFETY_UNSUPPORTED"])
  })
})

describe("a refusal", () => {
  it("has the rule that allows exactly this call, and the rule does", async () => {
    const { document } = await refused("odd", "ask")
    const { toml } = document.error.details
    assert.equal(toml, '[[permission.rules]]\ntool_name = "mcp__odd__echo"\nmode = "allow"')
    assert.include(document.error.fix, "--yes")
    const { stderr } = await call("odd", "ask")
    assert.include(stderr, 'tool_name = "mcp__odd__echo"')
    home("sigil.toml", `${String(toml)}\n`)
    assert.equal((await call("odd", "ask")).code, 0)
  })

  it("of read-only mode is no rule's to lift", async () => {
    home("sigil.toml", '[permission]\nmode = "read-only"\n\n[[permission.rules]]\nmode = "allow"\n')
    const { document } = await refused("odd", "allow", "--yes")
    assert.deepEqual([document.error.code, document.error.where.line], ["SIGIL_DENIED", 2])
    assert.include(document.error.message, "read-only")
  })

  it("of one server is not lifted by a rule for one that reads alike", async () => {
    const both = JSON.stringify({
      mcpServers: Object.fromEntries(
        ["a b", "a_b"].map((name) => [name, { command: process.execPath, args: [odd, "plain"] }])
      )
    })
    home("settings.json", { permissions: { allow: ["mcp__a_b__*"] } })
    const run = (name: string) => project.run(["--mcp-config", both, "mcp", "call", name, "echo"])
    assert.equal((await run("a_b")).code, 0)
    assert.equal((await run("a b")).code, 4)
  })
})

describe("danger-full-access", () => {
  it("asks nothing, the network included, and keeps every deny", async () => {
    home("sigil.toml", '[permission]\nmode = "danger-full-access"\n\n[web]\nnetwork_mode = "ask"\n')
    assert.equal((await call("odd", "ask")).code, 0)
    assert.equal((await call("odd", "deny")).code, 4)
    home("sigil.toml", '[permission]\nmode = "danger-full-access"\n\n[web]\nnetwork_mode = "deny"\n')
    assert.equal((await call("odd", "allow")).code, 4)
  })
})

describe("mcp call --explain", () => {
  it("shows each facet with what decided it and where that stands", async () => {
    const toml = home("sigil.toml", '[permission.tools]\nmcp__odd__echo = "allow"\n')
    const file = home("settings.json", { permissions: { ask: ["mcp__odd"] } })
    const words = [...server("odd", "allow"), "mcp", "call", "odd", "echo", "--explain"]
    const { document, code } = await project.document("explain", words)
    assert.equal(code, 0)
    assert.isDefined(document.permission)
    const { decision, facets } = document.permission
    const { local, network, source } = facets
    assert.equal(decision, "ask")
    assert.deepEqual([local.verdict, network.verdict, source.verdict], ["allow", "allow", "ask"])
    assert.deepEqual([source.kind, source.where?.file, source.where?.line], ["list", file, 4])
    const { stdout } = await project.run(words)
    assert.match(stdout, /source +ask +'mcp__odd' in permissions\.ask of settings\.json +.*settings\.json:4/)
    fs.rmSync(file)
    const named = await project.document("explain", words)
    assert.deepInclude(named.document.permission?.facets.source, { verdict: "allow", kind: "tools" })
    assert.deepInclude(named.document.permission?.facets.source.where, { file: toml, line: 2 })
  })
})

describe("tools of two servers that read alike", () => {
  const alike = (...names: ReadonlyArray<string>) => [
    "--mcp-config",
    JSON.stringify({
      mcpServers: Object.fromEntries(
        names.map((name) => [
          name,
          { command: process.execPath, args: [odd, "alike"], trust: { approval_default: "allow" } }
        ])
      )
    })
  ]
  const both = alike("a", "a__b")

  it("are denied by the name that any list shows, also when only one of the servers is there", async () => {
    for (const provider of ["openai", "anthropic", "gemini"]) {
      const { stdout } = await project.run([...both, "mcp", "tools", "--all", "--for", provider])
      assert.include(stdout, '"mcp__a__b__c__cfc5f616742e9ca1"')
    }
    const call = (servers: ReadonlyArray<string>, ...words: ReadonlyArray<string>) =>
      project.run([...servers, "mcp", "call", ...words, "--yes"])
    for (const written of [
      '[permission.tools]\nmcp__a__b__c__cfc5f616742e9ca1 = "deny"\n',
      '[[permission.rules]]\ntool_name = "mcp__a__b__c__cfc5f616742e9ca1"\nmode = "deny"\n'
    ]) {
      home("sigil.toml", written)
      assert.equal((await call(both, "a", "b__c")).code, 4, written)
      assert.equal((await call(alike("a"), "a", "b__c")).code, 4, written)
      assert.equal((await call(both, "a__b", "c")).code, 0, written)
      assert.equal((await call(both, "a", "c")).code, 0, written)
    }
  })

  it("are called by their whole visible name, and by no name that means both", async () => {
    for (const [name, server, tool] of [
      ["mcp__a__b__c__cfc5f616742e9ca1", "a", "b__c"],
      ["mcp__a__b__c__34de2b703c4451f9", "a__b", "c"]
    ] as const) {
      const { document } = await project.document("call", [...both, "mcp", "call", name])
      assert.deepEqual([document.server, document.tool], [server, tool])
    }
    const alone = await project.document("call", [...alike("a"), "mcp", "call", "mcp__a__b__c__cfc5f616742e9ca1"])
    assert.equal(alone.document.tool, "b__c")
    const refused = await project.document("error", [...both, "mcp", "call", "mcp__a__b__c"])
    assert.deepEqual([refused.code, refused.document.error.code], [2, "SIGIL_USAGE"])
    assert.include(refused.document.error.fix, "sigil mcp call a b__c or sigil mcp call a__b c")
    const names = inline("odd", [odd, "names"])
    const twins = await project.document("error", [...names, "mcp", "call", "mcp__odd__read_file"])
    assert.equal(twins.document.error.reason, "ambiguous_tool")
    assert.equal(twins.document.error.candidates?.length, 2)
  })
})

describe("a deny in sigil.toml", () => {
  it("holds in every spelling that the lists know", async () => {
    const words = (name: string) => [...server(name, "allow"), "mcp", "call", name, "echo", "--yes"]
    for (const spelling of ["mcp__my.srv__echo", "MCP__MY_SRV__ECHO", "mcp__my srv__echo"]) {
      home("sigil.toml", `[[permission.rules]]\ntool_name = "${spelling}"\nmode = "deny"\n`)
      assert.equal((await project.run(words("my.srv"))).code, 4, spelling)
      home("sigil.toml", `[permission.tools]\n"${spelling}" = "deny"\n`)
      assert.equal((await project.run(words("my.srv"))).code, 4, spelling)
    }
  })

  it("by a pattern among the exact names starts nothing and says where patterns belong", async () => {
    home("sigil.toml", '[permission.tools]\n"mcp__odd__*" = "deny"\n')
    const { code, stderr } = await call("odd", "allow")
    assert.equal(code, 4)
    assert.include(stderr, "permission.tools")
    assert.include(stderr, "[[permission.rules]]")
  })
})

describe("the doctor", () => {
  it("warns of a rule that matches nothing declared", async () => {
    home("settings.json", { permissions: { deny: ["mcp__ood__*", "mcp__odd__x"] } })
    const { document, code } = await project.document("doctor", [...server("odd", "ask"), "doctor"])
    assert.equal(code, 0)
    const found = document.checks.filter(({ code }) => code === "permission:rule")
    assert.deepEqual(
      found.map(({ subject, status }) => [subject, status]),
      [["mcp__ood__*", "warn"]]
    )
    assert.include(found[0]?.fix, "mcp__odd")
  })
})

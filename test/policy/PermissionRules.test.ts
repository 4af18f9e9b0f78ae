/** Each source of verdicts by itself: sigil.toml, the lists of settings.json, commands, paths, and what helps an ask. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { ListRule } from "../../src/config/PermissionLists.ts"
import {
  type Call,
  decide,
  defaultPolicy,
  grantKey,
  mcpActivation,
  mcpCall,
  type Policy
} from "../../src/policy/Permission.ts"
import { namesCommand } from "../../src/policy/permission/CommandText.ts"
import { remedyOf } from "../../src/policy/permission/Remedy.ts"

type Mode = "allow" | "ask" | "deny"
const none: ReadonlySet<string> = new Set()
const tool = (
  server: string,
  name: string,
  more: { readonly approval?: Mode; readonly trustClass?: string; readonly input?: Call["input"] } = {}
): Call =>
  mcpCall({
    server: { server, trustClass: more.trustClass ?? "third_party", approvalDefault: more.approval ?? "ask" },
    operation: "tool",
    tool: name,
    names: {
      visibleName: `mcp__${server}__${name}`,
      mcp: { server, serverPart: server, toolPart: name },
      rivals: []
    },
    destructive: false,
    input: more.input ?? {}
  })
const bash = (command: string, more: Partial<Call> = {}): Call => ({
  kind: "builtin",
  access: "execute",
  network: "none",
  names: { visibleName: "bash", rivals: [] },
  subjects: [],
  grantKey: grantKey("", "bash"),
  source: { verdict: "allow", by: "built in" },
  destructive: false,
  input: { command },
  command,
  ...more
})
const toml = (permission: Partial<Policy["permission"]>, rest: Partial<Policy> = {}): Policy => ({
  ...defaultPolicy,
  ...rest,
  permission: { ...defaultPolicy.permission, ...permission }
})
const rules = (...list: ReadonlyArray<Omit<Policy["permission"]["rules"][number], "line">>): Policy =>
  toml({ rules: list.map((rule, index) => ({ ...rule, line: index + 1 })) })
const parsed = (text: string): ListRule => {
  const [, name = "", pattern] = /^([^(]+)(?:\((.*)\))?$/.exec(text) ?? []
  return { text, tool: name, ...(pattern === undefined ? {} : { pattern }), where: { file: "settings.json", line: 3 } }
}
const lists = (given: { readonly [group in Mode | "allowedTools"]?: ReadonlyArray<string> }): Policy => ({
  ...defaultPolicy,
  lists: {
    allow: (given.allow ?? []).map(parsed),
    ask: (given.ask ?? []).map(parsed),
    deny: (given.deny ?? []).map(parsed),
    allowedTools: (given.allowedTools ?? []).map(parsed)
  }
})
const verdict = (policy: Policy, call: Call): Mode => decide(policy, call, none).decision

describe("sigil.toml", () => {
  it("lets the last match win, and rules beat tools", () => {
    const read = tool("fs", "read")
    assert.equal(
      verdict(rules({ toolName: "mcp__fs__*", mode: "deny" }, { toolName: "mcp__fs__read", mode: "allow" }), read),
      "allow"
    )
    assert.equal(
      verdict(rules({ toolName: "mcp__fs__read", mode: "allow" }, { toolName: "mcp__fs__*", mode: "deny" }), read),
      "deny"
    )
    assert.equal(
      verdict(rules({ toolName: "mcp__fs", mode: "allow" }, { toolName: "mcp__other", mode: "deny" }), read),
      "allow"
    )
    assert.equal(
      verdict(toml({ tools: { mcp__fs__read: "deny" }, rules: [{ toolName: "*", mode: "allow", line: 1 }] }), read),
      "allow"
    )
    assert.equal(verdict(toml({ tools: { mcp__fs__read: "deny" } }), read), "deny")
  })

  it("takes names as own keys only", () => {
    assert.equal(verdict(toml({ tools: {} }), bash("x", { names: { visibleName: "toString", rivals: [] } })), "ask")
  })

  it("matches subjects, and the strictest of several counts", () => {
    const read = tool("fs", "read", { approval: "allow" })
    const trust = (mode: Mode) => ({ subjectGlob: "mcp_trust_class:third_party", mode })
    assert.equal(verdict(rules(trust("deny")), read), "deny")
    assert.equal(
      verdict(rules(trust("deny")), tool("fs", "read", { approval: "allow", trustClass: "official" })),
      "allow"
    )
    assert.equal(verdict(rules({ subjectGlob: "mcp_trust_class:*", mode: "deny" }), read), "deny")
    assert.equal(verdict(rules({ subjectGlob: "mcp__fs__*", mode: "deny" }), read), "deny")
    // The name is allowed last, its trust class stays denied: two subjects, each with its own last rule.
    assert.equal(verdict(rules(trust("deny"), { subjectGlob: "mcp__fs__*", mode: "allow" }), read), "deny")
    assert.equal(verdict(rules(trust("deny"), { toolName: "mcp__fs__*", mode: "allow" }), read), "allow")
    const both = { toolName: "mcp__fs__*", subjectGlob: "mcp_trust_class:third_party", mode: "deny" } as const
    assert.equal(verdict(rules(both), read), "deny")
    assert.equal(verdict(rules(both), tool("x", "read", { approval: "allow" })), "allow")
    assert.equal(verdict(rules({ mode: "deny" }), read), "deny")
  })

  it("cannot evaluate a subject_glob for a call without subject, which refuses it", () => {
    const asked = rules({ subjectGlob: "mcp_*", mode: "allow" })
    const refused = decide(asked, bash("ls"), none)
    assert.deepEqual([refused.decision, refused.error, refused.ground.where?.line], ["deny", "subject_missing", 1])
    // A rule that is not reached is not evaluated.
    assert.equal(
      verdict(rules({ subjectGlob: "mcp_*", mode: "deny" }, { toolName: "bash", mode: "allow" }), bash("ls")),
      "allow"
    )
    assert.equal(verdict(rules({ toolName: "other", subjectGlob: "mcp_*", mode: "deny" }), bash("ls")), "ask")
  })

  it("says file and line of what decided", () => {
    const place = { file: "/home/a/sigil.toml", line: 9, column: 1, field: "permission.tools.mcp__fs__read" }
    const named = toml({ tools: { mcp__fs__read: "deny" }, places: { "tools.mcp__fs__read": place } })
    assert.deepEqual(decide(named, tool("fs", "read"), none).ground.where, place)
    const ruled = toml({ file: "/home/a/sigil.toml", rules: [{ toolName: "*", mode: "deny", line: 4 }] })
    assert.deepInclude(decide(ruled, tool("fs", "read"), none).ground.where, { file: "/home/a/sigil.toml", line: 4 })
  })
})

describe("activation of a server", () => {
  const server = (name: string) => mcpActivation({ server: name, trustClass: "official", approvalDefault: "allow" })

  it("runs a program with an unknown effect, so it asks although the server allows", () => {
    const decided = decide(defaultPolicy, server("a"), none)
    assert.deepEqual(decided.facets, { local: "ask", network: "allow", source: "allow" })
    assert.equal(verdict(toml({ mode: "read-only" }), server("a")), "deny")
    assert.equal(verdict(toml({}, { networkMode: "deny" }), server("a")), "deny")
  })

  it("has the server and its trust class as subjects, and is granted per server", () => {
    const policy = rules({ subjectGlob: "mcp_server:a", mode: "allow" })
    assert.equal(verdict(policy, server("a")), "allow")
    assert.equal(verdict(policy, server("b")), "ask")
    assert.equal(verdict(rules({ subjectGlob: "mcp_trust_class:official", mode: "deny" }), server("a")), "deny")
    const grants = new Set([server("a").grantKey ?? ""])
    assert.equal(decide(defaultPolicy, server("a"), grants).decision, "allow")
    assert.equal(decide(defaultPolicy, server("b"), grants).decision, "ask")
    const remedy = remedyOf(defaultPolicy, server("a"), decide(defaultPolicy, server("a"), none))
    assert.equal(remedy.rule?.subject_glob, "mcp_server:a")
  })
})

describe("the lists of settings.json", () => {
  it("know deny before ask before allow, names without case, and hyphens", () => {
    const call = tool("fetch-demo", "get-page")
    for (const name of [
      "mcp__fetch-demo__get-page",
      "mcp__fetch-demo__*",
      "mcp__fetch-demo",
      "mcp__*",
      "MCP__Fetch-Demo"
    ]) {
      assert.equal(verdict(lists({ allow: [name] }), call), "allow", name)
      assert.equal(verdict(lists({ allow: [name], ask: [name] }), call), "ask", name)
      assert.equal(verdict(lists({ allow: [name], ask: [name], deny: [name] }), call), "deny", name)
      assert.equal(
        verdict(lists({ allow: [name], deny: [name] }), tool("other", "x")),
        name === "mcp__*" ? "deny" : "ask"
      )
    }
  })

  it("allow by exact name in allowedTools and --allowed-tools, and nothing by a pattern there", () => {
    const call = tool("fs", "read")
    assert.equal(verdict(lists({ allowedTools: ["mcp__fs__read"] }), call), "allow")
    assert.equal(verdict({ ...defaultPolicy, allowedTools: ["MCP__fs__read"] }, call), "allow")
    assert.equal(verdict({ ...lists({ deny: ["mcp__fs"] }), allowedTools: ["mcp__fs__read"] }, call), "deny")
    assert.equal(verdict({ ...lists({ ask: ["mcp__fs"] }), allowedTools: ["mcp__fs__read"] }, call), "ask")
    for (const name of ["mcp__fs", "mcp__fs__*", "*", "mcp__*", "mcp__fs__rea?"]) {
      assert.equal(verdict({ ...defaultPolicy, allowedTools: [name] }, call), "ask", name)
      assert.equal(verdict(lists({ allowedTools: [name] }), call), "ask", name)
    }
  })

  it("compare a pattern with the first of file_path, command and pattern that is not empty", () => {
    const call = (input: Call["input"]) => tool("x", "t", { input })
    const policy = lists({ allow: ["mcp__x__t(src/*)"], deny: ["mcp__x(*secret*)"] })
    assert.equal(verdict(policy, call({ file_path: "src/a/b.ts" })), "allow")
    assert.equal(verdict(policy, call({ file_path: "src/secret.ts" })), "deny")
    assert.equal(verdict(policy, call({ file_path: "", command: "", pattern: "src/a" })), "allow")
    assert.equal(verdict(policy, call({ file_path: "lib/a", pattern: "src/a" })), "ask")
    assert.equal(verdict(policy, call({ other: "src/a" })), "ask")
    assert.equal(verdict(policy, call({})), "ask")
    assert.equal(verdict(policy, call({ file_path: "src/../lib/a" })), "ask")
    assert.equal(verdict(lists({ deny: ["mcp__x(/etc/*)"] }), call({ file_path: "/tmp/../etc/passwd" })), "deny")
  })

  it("name the rule with a pattern before a bare one of its class", () => {
    const call = tool("x", "t", { input: { command: "rm -r a" } })
    const decided = decide(lists({ deny: ["mcp__x", "mcp__x__t(rm *)"] }), call, none)
    assert.include(decided.decidedBy, "mcp__x__t(rm *)")
    assert.equal(decided.ground.where?.file, "settings.json")
  })

  it("and sigil.toml give one verdict each, and the stricter counts", () => {
    const call = tool("fs", "read", { approval: "deny" })
    const modes = ["allow", "ask", "deny"] as const
    for (const left of modes)
      for (const right of modes) {
        const policy: Policy = {
          ...lists({ [right]: ["mcp__fs"] }),
          permission: rules({ toolName: "mcp__fs__read", mode: left }).permission
        }
        const expected = [left, right].includes("deny") ? "deny" : [left, right].includes("ask") ? "ask" : "allow"
        assert.equal(verdict(policy, call), expected, `${left} ${right}`)
      }
  })
})

describe("commands", () => {
  const policy = toml({ commands: { allow: ["git *", "ls"], ask: ["git push*"], deny: ["* --force*"] } })

  it("deny before ask before allow, with white space made one", () => {
    assert.equal(verdict(policy, bash("git   status\t-s")), "allow")
    assert.equal(verdict(policy, bash(" ls ")), "allow")
    assert.equal(verdict(policy, bash("git push origin")), "ask")
    assert.equal(verdict(policy, bash("git push --force")), "deny")
    assert.equal(verdict(policy, bash("make")), "ask")
  })

  it("apply to shells only, and answer no ask or deny of a rule", () => {
    assert.equal(verdict(policy, tool("x", "bash", { input: { command: "a --force" }, approval: "allow" })), "allow")
    const asking = {
      ...policy,
      permission: { ...policy.permission, rules: [{ toolName: "bash", mode: "ask" as const, line: 1 }] }
    }
    assert.equal(verdict(asking, bash("ls")), "ask")
  })

  it("do not let an allowed command carry another one along", () => {
    for (const command of [
      "git status; rm -rf a",
      "git log | sh",
      "git a && b",
      "git `x`",
      "git $(x)",
      "git a\nrm b",
      "git a > /etc/x"
    ])
      assert.equal(verdict(policy, bash(command)), "ask", command)
    assert.equal(
      verdict(
        toml({ commands: { ...policy.permission.commands, allow: ["git log | head *"] } }),
        bash("git log | head -3")
      ),
      "allow"
    )
    assert.equal(verdict(policy, bash("x; git a --force")), "deny")
  })

  it("that begin as other hosts write it", () => {
    assert.isTrue(namesCommand("npm run:*", "npm run build", true))
    assert.isTrue(namesCommand("npm run:*", "npm run", true))
    assert.isFalse(namesCommand("npm run:*", "npm runaway", true))
    assert.isTrue(namesCommand("npm run:*", "npm runaway", false))
  })

  it("are never allowed more widely than they are denied", () => {
    const text = fc.string({ unit: fc.constantFrom("a", " ", ";", "*", ":", "|", "\n"), maxLength: 8 })
    fc.assert(
      fc.property(text, text, (pattern, command) => {
        if (namesCommand(pattern, command, true)) assert.isTrue(namesCommand(pattern, command, false))
      }),
      { numRuns: 3_000 }
    )
  })
})

describe("what helps an ask", () => {
  const remedy = (policy: Policy, call: Call) => remedyOf(policy, call, decide(policy, call, none))

  it("is a rule that does allow the call", () => {
    const { rule, toml: text } = remedy(defaultPolicy, tool("fs", "read"))
    assert.deepEqual(rule, { tool_name: "mcp__fs__read", mode: "allow" })
    assert.equal(text, '[[permission.rules]]\ntool_name = "mcp__fs__read"\nmode = "allow"')
  })

  it("is no rule where none could, and says what stands in the way", () => {
    const network = remedy({ ...defaultPolicy, networkMode: "ask" }, tool("fs", "read"))
    assert.isUndefined(network.rule)
    assert.include(network.text, "network_mode")
    const list = remedy(lists({ ask: ["mcp__fs"] }), tool("fs", "read"))
    assert.isUndefined(list.rule)
    assert.include(list.text, "settings.json:3")
    const call = tool("a__b", "c")
    const alike = remedy(defaultPolicy, { ...call, names: { ...call.names, rivals: ["a"] } })
    assert.isUndefined(alike.rule)
    assert.include(alike.text, "rename")
  })

  it("is the command itself for a shell, never the shell", () => {
    const { rule, toml: text } = remedy(defaultPolicy, bash('git  log "x"'))
    assert.isUndefined(rule)
    assert.equal(text, '[permission.commands]\nallow = ["git log \\"x\\""]')
    assert.isUndefined(remedy(lists({ ask: ["Bash"] }), bash("ls")).toml)
  })
})

import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { decide, glob, grantKey, type Input } from "../../src/policy/Permission.ts"

type Mode = "allow" | "ask" | "deny"
const modes: ReadonlyArray<Mode> = ["allow", "ask", "deny"]

const base: Input = {
  mode: "manual",
  tools: {},
  rules: [],
  approvalDefault: "ask",
  trustClass: "third_party",
  server: "fs",
  tool: "read",
  serverPart: "fs",
  toolPart: "read",
  visibleName: "mcp__fs__read",
  destructiveHint: false,
  networkMode: "allow",
  sessionGrants: new Set(),
  operation: "tool"
}
const tool = (server: string, name: string): Partial<Input> => ({
  server,
  tool: name,
  serverPart: server,
  toolPart: name,
  visibleName: `mcp__${server}__${name}`
})
const rule = (toolName: string, mode: Mode, line = 1) => ({ toolName, mode, line })
const decision = (input: Partial<Input>): Mode => decide({ ...base, ...input }).decision
/** Whether a rule of this mode reaches the tool; the default is the opposite. */
const reaches = (pattern: string, input: Partial<Input>, mode: "allow" | "deny" = "deny"): boolean =>
  decision({ ...input, approvalDefault: mode === "deny" ? "allow" : "deny", rules: [rule(pattern, mode)] }) === mode

describe("Permission facets", () => {
  /** The rules of the specification once more, as one flat list of cases instead of facets. */
  const naive = (input: Input): Mode => {
    const explicit = input.rules.length > 0 ? input.rules[input.rules.length - 1]?.mode : input.tools[input.visibleName]
    const granted = input.sessionGrants.size > 0
    if (input.networkMode === "deny" || explicit === "deny") return "deny"
    if (input.mode === "read-only" && input.operation === "tool") return "deny"
    if (explicit === undefined && input.approvalDefault === "deny") return "deny"
    if (input.networkMode === "ask") return "ask"
    if (granted || explicit === "allow") return "allow"
    if (explicit === "ask" || input.approvalDefault === "ask" || input.destructiveHint) return "ask"
    return "allow"
  }

  it("agrees with the naive formulation on every combination", () => {
    let cases = 0
    for (const mode of ["read-only", "manual", "auto-edit", "danger-full-access"] as const)
      for (const networkMode of modes)
        for (const approvalDefault of modes)
          for (const operation of ["tool", "resource", "prompt"] as const)
            for (const destructiveHint of [false, true])
              for (const named of [undefined, ...modes])
                for (const ruled of [undefined, ...modes])
                  for (const granted of [false, true]) {
                    const input: Input = {
                      ...base,
                      mode,
                      networkMode,
                      approvalDefault,
                      operation,
                      destructiveHint,
                      tools: named === undefined ? {} : { [base.visibleName]: named },
                      rules: ruled === undefined ? [] : [rule("mcp__fs__read", ruled)],
                      sessionGrants: new Set(granted ? [grantKey("fs", "read")] : [])
                    }
                    cases += 1
                    assert.equal(decide(input).decision, naive(input), JSON.stringify(input))
                  }
    assert.equal(cases, 4 * 3 * 3 * 3 * 2 * 4 * 4 * 2)
  })

  it("names what decided", () => {
    const by = (input: Partial<Input>) => decide({ ...base, ...input }).decidedBy
    assert.include(by({}), "approval_default = \"ask\" of server 'fs'")
    assert.include(by({ rules: [rule("mcp__fs__*", "deny", 7)] }), "line 7")
    assert.include(by({ tools: { mcp__fs__read: "allow" } }), "permission.tools.mcp__fs__read")
    assert.include(by({ approvalDefault: "allow", destructiveHint: true }), "destructiveHint")
    assert.include(by({ networkMode: "deny", approvalDefault: "allow" }), "web.network_mode")
    assert.include(by({ mode: "read-only", approvalDefault: "allow" }), "read-only")
  })

  it("gives each facet", () => {
    assert.deepEqual(decide({ ...base, networkMode: "ask", approvalDefault: "deny" }).facets, {
      local: "allow",
      network: "ask",
      source: "deny"
    })
  })

  it("grants one exact tool for the session, against an ask only", () => {
    const sessionGrants = new Set([grantKey("fs", "read")])
    assert.equal(decision({ sessionGrants }), "allow")
    assert.equal(decision({ sessionGrants, ...tool("fs", "write") }), "ask")
    assert.equal(decision({ sessionGrants, ...tool("f", "sread") }), "ask")
    assert.equal(decision({ sessionGrants, approvalDefault: "deny" }), "deny")
    assert.equal(decision({ sessionGrants, networkMode: "ask" }), "ask")
  })

  it("takes tools and rules by own names only", () => {
    assert.equal(decision({ visibleName: "constructor" }), "ask")
    assert.equal(decision({ visibleName: "toString", approvalDefault: "allow" }), "allow")
  })
})

describe("Permission rules", () => {
  it("lets the last match win, and rules beat tools", () => {
    assert.equal(decision({ rules: [rule("mcp__fs__*", "deny"), rule("mcp__fs__read", "allow")] }), "allow")
    assert.equal(decision({ rules: [rule("mcp__fs__read", "allow"), rule("mcp__fs__*", "deny")] }), "deny")
    assert.equal(decision({ rules: [rule("mcp__fs", "allow"), rule("mcp__other", "deny")] }), "allow")
    assert.equal(decision({ tools: { mcp__fs__read: "deny" }, rules: [rule("*", "allow")] }), "allow")
  })

  it("matches exact names, parts, servers and everything", () => {
    for (const mode of ["allow", "deny"] as const) {
      for (const pattern of ["mcp__fs__read", "mcp__fs__*", "mcp__fs", "mcp__*", "*", "mcp__f?__re*", "mcp__*__read"])
        assert.isTrue(reaches(pattern, {}, mode), pattern)
      for (const pattern of ["mcp__f", "mcp__fs__rea", "mcp__fs_read", "fs", "read", "mcp__read", "mcp__other__*", ""])
        assert.isFalse(reaches(pattern, {}, mode), pattern)
    }
    assert.isTrue(reaches("mcp__fetch-demo__*", tool("fetch-demo", "get")))
    assert.isTrue(
      reaches("mcp__s__t__0123456789abcdef", { ...tool("s", "t"), visibleName: "mcp__s__t__0123456789abcdef" }, "allow")
    )
    assert.isTrue(reaches("mcp__s__t", { ...tool("s", "t"), visibleName: "mcp__s__t__0123456789abcdef" }, "allow"))
  })

  it("never lets a star cross from the server to the tool", () => {
    assert.isFalse(reaches("mcp__a__*", tool("a__b", "c"), "allow"))
    assert.isFalse(reaches("mcp__a__*", tool("a__b", "c"), "deny"))
    assert.isFalse(reaches("mcp__a", tool("a__b", "c"), "allow"))
    assert.isFalse(reaches("mcp__a*c", tool("ab", "c"), "allow"))
  })

  it("lets no server borrow the permission of another by its name, and no deny miss it", () => {
    // Meant for the tool 'list__issues' of the server 'hub'; the server 'hub__list' must not profit.
    assert.isFalse(reaches("mcp__hub__list__*", tool("hub__list", "issues"), "allow"))
    assert.isFalse(reaches("mcp__hub__list", tool("hub__list", "issues"), "allow"))
    assert.isTrue(reaches("mcp__hub__list__*", tool("hub", "list__issues"), "allow"))
    assert.isTrue(reaches("mcp__hub__list__*", tool("hub__list", "issues"), "deny"))
    assert.isTrue(reaches("mcp__hub__list", tool("hub__list", "issues"), "deny"))
    assert.isTrue(reaches("*__issues", tool("hub", "issues"), "deny"))
    assert.isFalse(reaches("*__issues", tool("hub", "issues"), "allow"))
  })

  it("matches trust classes as subjects, and both parts of a rule must match", () => {
    const subject = (subjectGlob: string, input: Partial<Input> = {}) =>
      decision({ approvalDefault: "allow", rules: [{ subjectGlob, mode: "deny", line: 1 }], ...input })
    assert.equal(subject("mcp_trust_class:third_party"), "deny")
    assert.equal(subject("mcp_trust_class:third_party", { trustClass: "official" }), "allow")
    assert.equal(subject("mcp_trust_class:*"), "deny")
    assert.equal(subject("mcp__fs__*"), "deny")
    const both = { toolName: "mcp__fs__*", subjectGlob: "mcp_trust_class:third_party", mode: "deny", line: 1 } as const
    assert.equal(decision({ approvalDefault: "allow", rules: [both] }), "deny")
    assert.equal(decision({ approvalDefault: "allow", rules: [both], trustClass: "official" }), "allow")
    assert.equal(decision({ approvalDefault: "allow", rules: [both], ...tool("x", "read") }), "allow")
    assert.equal(decision({ approvalDefault: "allow", rules: [{ mode: "deny", line: 1 }] }), "deny")
  })
})

describe("glob", () => {
  it("does what the same pattern as a regular expression does", () => {
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "/", "."), maxLength: 8 })
    const patterns = fc.string({ unit: fc.constantFrom("a", "b", "/", ".", "*", "?"), maxLength: 8 })
    fc.assert(
      fc.property(patterns, letters, (pattern, text) => {
        const expression = new RegExp(
          `^${pattern.replace(/[.]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".")}$`,
          "s"
        )
        assert.equal(glob(pattern, text), expression.test(text))
      }),
      { numRuns: 2_000 }
    )
  })

  it("is not slowed down by many stars", () => {
    assert.isFalse(glob(`${"*a".repeat(200)}b`, "a".repeat(2_000)))
  })
})

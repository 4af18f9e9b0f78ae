import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { glob } from "../../src/policy/permission/Glob.ts"
import { namesTool, reachesServer, type ToolNames } from "../../src/policy/permission/ToolPattern.ts"
import { sanitise, visibleNames } from "../../src/tools/Naming.ts"

const names = (server: string, tool: string, others: ReadonlyArray<string> = []): ToolNames => ({
  visibleName: visibleNames([{ server, tool }])[0] ?? "",
  mcp: { server, serverPart: sanitise(server), toolPart: sanitise(tool) },
  rivals: others.map(sanitise)
})
const fs = names("fs", "read")
const allows = (pattern: string, tool: ToolNames, fold = false) => namesTool(pattern, { widens: true, fold }, tool)
const denies = (pattern: string, tool: ToolNames, fold = false) => namesTool(pattern, { widens: false, fold }, tool)

describe("namesTool", () => {
  it("matches exact names, parts, servers and everything", () => {
    for (const match of [allows, denies]) {
      for (const pattern of ["mcp__fs__read", "mcp__fs__*", "mcp__fs", "mcp__*", "*", "mcp__f?__re*", "mcp__*__read"])
        assert.isTrue(match(pattern, fs), pattern)
      for (const pattern of ["mcp__f", "mcp__fs__rea", "mcp__fs_read", "fs", "read", "mcp__read", "mcp__other__*", ""])
        assert.isFalse(match(pattern, fs), pattern)
      assert.isTrue(match("mcp__fetch-demo__*", names("fetch-demo", "get")))
      const long = names("s", "t".repeat(80))
      assert.match(long.visibleName, /__[0-9a-f]{16}$/)
      assert.isTrue(match(long.visibleName, long))
      assert.isTrue(match(`mcp__s__${"t".repeat(80)}`, long))
      assert.isTrue(match("bash", { visibleName: "bash", rivals: [] }))
      assert.isFalse(match("mcp__*", { visibleName: "bash", rivals: [] }))
    }
  })

  it("compares without case only where asked", () => {
    assert.isTrue(allows("MCP__Fs__READ", fs, true))
    assert.isTrue(denies("mcp__FS", fs, true))
    assert.isFalse(allows("mcp__FS__read", fs))
    assert.isFalse(denies("mcp__FS__read", fs))
  })

  it("reads what tightens leniently by every name a tool can be shown under, with its edges", () => {
    const clashing = { ...names("a", "b__c"), shownAs: ["mcp__a__b__c__0123456789abcdef"] }
    assert.isTrue(denies("mcp__a__b__c__0123456789ABCDEF", clashing, true))
    assert.isFalse(denies("mcp__a__b__c__0123456789abcdef", clashing))
    assert.isFalse(allows("mcp__a__b__c__0123456789abcdef", clashing, true))
    assert.isTrue(denies("mcp__a__l_schen_", names("a", "löschen!"), true))
    assert.isTrue(denies("mcp__my_srv___x", names("my.srv.", "x"), true))
    assert.isTrue(denies("mcp__a___", names("a", "🎉"), true))
    assert.isFalse(allows("mcp__a__l_schen_", names("a", "löschen!"), true))
  })

  it("never lets a star cross from the server to the tool", () => {
    assert.isFalse(allows("mcp__a__*", names("a__b", "c")))
    assert.isFalse(denies("mcp__a__*", names("a__b", "c")))
    assert.isFalse(allows("mcp__a", names("a__b", "c")))
    assert.isFalse(allows("mcp__a*c", names("ab", "c")))
  })

  it("reads a pattern that tightens in every way, one that widens in the shortest", () => {
    assert.isFalse(allows("mcp__hub__list__*", names("hub__list", "issues")))
    assert.isFalse(allows("mcp__hub__list", names("hub__list", "issues")))
    assert.isTrue(allows("mcp__hub__list__*", names("hub", "list__issues")))
    assert.isTrue(denies("mcp__hub__list__*", names("hub__list", "issues")))
    assert.isTrue(denies("mcp__hub__list", names("hub__list", "issues")))
    assert.isTrue(denies("*__issues", fs.mcp === undefined ? fs : names("hub", "issues")))
    assert.isFalse(allows("*__issues", names("hub", "issues")))
  })

  it("knows the declared servers that read alike", () => {
    const exact = "mcp__hub__list__issues"
    assert.isTrue(allows(exact, names("hub__list", "issues")))
    assert.isFalse(allows(exact, names("hub__list", "issues", ["hub"])))
    assert.isFalse(allows(exact, names("hub", "list__issues", ["hub__list"])))
    assert.isFalse(allows("mcp__hub__list__*", names("hub", "list__issues", ["hub__list"])))
    assert.isTrue(denies(exact, names("hub__list", "issues", ["hub"])))
    // A server whose name was replaced gives way to the one that is really called so.
    assert.isTrue(allows("mcp__a_b__*", names("a b", "t")))
    assert.isFalse(allows("mcp__a_b__*", names("a b", "t", ["a_b"])))
    assert.isTrue(allows("mcp__a_b__*", names("a_b", "t", ["a b"])))
    assert.isTrue(allows("mcp__FS__*", names("fs", "t"), true))
    assert.isFalse(allows("mcp__FS__*", names("fs", "t", ["FS"]), true))
    assert.isTrue(allows("mcp__FS__*", names("FS", "t", ["fs"]), true))
    assert.isTrue(allows("mcp__*", names("a b", "t", ["a_b"])))
  })

  const name = fc.string({ unit: fc.constantFrom("a", "b", "A", "_", "_", " ", "-"), minLength: 1, maxLength: 7 })

  it("lets no tool of one server borrow what is written for another's", () => {
    let judged = 0
    fc.assert(
      fc.property(name, name, name, name, fc.boolean(), (one, tool, other, otherTool, fold) => {
        fc.pre(one !== other)
        const [mine = "", theirs = ""] = visibleNames([
          { server: one, tool },
          { server: other, tool: otherTool }
        ])
        // As each server's own catalogue has it, and as a list of both has it.
        for (const text of [visibleNames([{ server: one, tool }])[0] ?? "", mine, `mcp__${sanitise(one)}__*`]) {
          for (const visibleName of [visibleNames([{ server: other, tool: otherTool }])[0] ?? "", theirs]) {
            const both = allows(text, { ...names(other, otherTool, [one]), visibleName }, fold)
            // Only the server whose exact name the pattern holds may profit from it.
            if (both && text.slice(5).startsWith(`${other}__`)) continue
            judged += 1
            assert.isFalse(both, `${text} allowed ${other} / ${otherTool}`)
          }
        }
      }),
      { numRuns: 5_000 }
    )
    assert.isAbove(judged, 10_000)
  })

  it("lets no deny miss the tool it was written for", () => {
    fc.assert(
      fc.property(name, name, fc.array(name, { maxLength: 3 }), fc.boolean(), (server, tool, others, fold) => {
        const mine = names(server, tool, others)
        for (const pattern of [
          mine.visibleName,
          `mcp__${sanitise(server)}`,
          `mcp__${sanitise(server)}__*`,
          `mcp__${sanitise(server)}__${sanitise(tool)}`,
          "mcp__*",
          "*"
        ])
          assert.isTrue(denies(pattern, mine, fold), pattern)
      }),
      { numRuns: 2_000 }
    )
  })

  it("never widens further than it tightens", () => {
    const pattern = fc.string({ unit: fc.constantFrom("a", "A", "_", "__", "*", "?", "mcp__"), maxLength: 8 })
    fc.assert(
      fc.property(
        pattern,
        name,
        name,
        fc.array(name, { maxLength: 2 }),
        fc.boolean(),
        (text, server, tool, others, fold) => {
          const mine = names(server, tool, others)
          if (allows(text, mine, fold)) assert.isTrue(denies(text, mine, fold), text)
        }
      ),
      { numRuns: 5_000 }
    )
  })
})

describe("reachesServer", () => {
  it("is true wherever a tool of the server could be named", () => {
    for (const pattern of ["*", "mcp__*", "mcp__fs", "mcp__fs__*", "mcp__FS__x", "mcp__f*__y", "mcp__*__y"])
      assert.isTrue(reachesServer(pattern, "fs"), pattern)
    for (const pattern of ["mcp__other", "mcp__fsx__*", "bash", "mcp__f__s"])
      assert.isFalse(reachesServer(pattern, "fs"), pattern)
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

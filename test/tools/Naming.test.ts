import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { fnv1a, MAX_NAME, sanitise, type ToolKey, visibleNames } from "../../src/tools/Naming.ts"

const legal = /^[A-Za-z0-9_-]{1,64}$/
const odd = [
  "",
  "_",
  "__proto__",
  "constructor",
  "a b",
  "a_b",
  "a-b",
  "a__b",
  "🔑",
  "é",
  "a\0b",
  "x".repeat(128),
  "\u202e"
]
const part = fc.oneof(
  fc.constantFrom(...odd),
  fc.string({ maxLength: 12 }),
  fc.string({ unit: "grapheme", maxLength: 6 })
)
const keys = fc.uniqueArray(fc.record({ server: part, tool: part }), {
  maxLength: 12,
  selector: ({ server, tool }) => JSON.stringify([server, tool])
})

const nameOf = (all: ReadonlyArray<ToolKey>, one: ToolKey): string | undefined => visibleNames(all)[all.indexOf(one)]

describe("Naming", () => {
  it("keeps the plain form of plain names", () => {
    assert.deepEqual(visibleNames([{ server: "fetch-demo", tool: "get_page" }]), ["mcp__fetch-demo__get_page"])
  })

  it("replaces each run of other characters and strips the edges", () => {
    assert.equal(sanitise("  a  b::c  "), "a_b_c")
    assert.equal(sanitise("🔑"), "tool")
    assert.equal(sanitise("___"), "tool")
    assert.equal(sanitise("a-b_c"), "a-b_c")
  })

  it("hashes as FNV-1a with 64 bits does", () => {
    assert.equal(fnv1a(""), "cbf29ce484222325")
    assert.equal(fnv1a("a"), "af63dc4c8601ec8c")
    assert.equal(fnv1a("foobar"), "85944171f73967e8")
  })

  it("shortens what is too long and marks it with its hash", () => {
    const [name] = visibleNames([{ server: "s", tool: "t".repeat(128) }])
    assert.equal(name, `${`mcp__s__${"t".repeat(128)}`.slice(0, 46)}__${fnv1a(`s\0${"t".repeat(128)}`)}`)
    assert.equal(name?.length, MAX_NAME)
  })

  it("marks every member of a clash, whoever came first", () => {
    const left = { server: "s", tool: "a b" }
    const right = { server: "s", tool: "a:b" }
    const alone = visibleNames([left])[0]
    const names = visibleNames([left, right])
    assert.equal(alone, "mcp__s__a_b")
    assert.deepEqual(names, [`mcp__s__a_b__${fnv1a("s\0a b")}`, `mcp__s__a_b__${fnv1a("s\0a:b")}`])
    assert.deepEqual(visibleNames([right, left]), names.toReversed())
  })

  it("gives a tool that imitates a marked name a mark of its own and leaves the other one alone", () => {
    const left = { server: "s", tool: "a b" }
    const right = { server: "s", tool: "a:b" }
    const imitator = { server: "s", tool: `a_b__${fnv1a("s\0a b")}` }
    const names = visibleNames([imitator, left, right])
    assert.equal(new Set(names).size, 3)
    assert.equal(names[1], `mcp__s__a_b__${fnv1a("s\0a b")}`)
    assert.match(names[0] ?? "", legal)
  })

  it("takes linear time for a name of underscores", () => {
    assert.equal(sanitise(`${"_".repeat(1_000_000)}x${"_".repeat(1_000_000)}y`).length, 1_000_002)
  })

  it("is unique, legal and independent of the order", () => {
    fc.assert(
      fc.property(keys, fc.integer(), (all, seed) => {
        const names = visibleNames(all)
        assert.equal(new Set(names).size, all.length)
        for (const name of names) assert.match(name, legal)
        const turned = all.toSorted((a, b) => (JSON.stringify([seed, a]) < JSON.stringify([seed, b]) ? 1 : -1))
        for (const one of all) assert.equal(nameOf(turned, one), nameOf(all, one))
      })
    )
  })

  it("stays unique when names imitate the marked form of others", () => {
    fc.assert(
      fc.property(keys, (all) => {
        const imitators = visibleNames(all).map((name) => ({
          server: name.split("__")[1] ?? "",
          tool: name.split("__").slice(2).join("__")
        }))
        const both = [
          ...new Map([...all, ...imitators].map((key) => [JSON.stringify([key.server, key.tool]), key])).values()
        ]
        const names = visibleNames(both)
        assert.equal(new Set(names).size, both.length)
        for (const name of names) assert.match(name, legal)
      })
    )
  })

  it("tells names apart that hold the separator of the hash", () => {
    const names = visibleNames([
      { server: "a\0b", tool: "c" },
      { server: "a", tool: "b\0c" },
      { server: "a_b", tool: "c" },
      { server: "a", tool: "b_c" }
    ])
    assert.equal(new Set(names).size, 4)
  })
})

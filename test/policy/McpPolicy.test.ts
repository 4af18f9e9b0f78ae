import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { CompanyPolicy, McpPolicyRules, PolicyEntry } from "../../src/config/CompanyPolicy.ts"
import { decide, type Outcome, type Subject, urlMatches } from "../../src/policy/McpPolicy.ts"

type Keys = Pick<PolicyEntry, "name" | "command" | "url">
interface Lists {
  readonly denied?: ReadonlyArray<Keys>
  readonly allowed?: ReadonlyArray<Keys>
}

const at = (line: number) => ({ line, column: 1 })
const rules = ({ allowed, denied }: Lists): McpPolicyRules => ({
  field: "mcpPolicy",
  at: at(1),
  denied: (denied ?? []).map((entry, index) => ({ ...entry, field: `denied[${index}]`, at: at(10 + index) })),
  ...(allowed === undefined
    ? {}
    : {
        allowed: {
          field: "allowed",
          at: at(20),
          entries: allowed.map((entry, index) => ({ ...entry, field: `allowed[${index}]`, at: at(30 + index) }))
        }
      })
})
/** Files that speak one after the other. */
const files = (...lists: ReadonlyArray<Lists>): ReadonlyArray<CompanyPolicy> =>
  lists.map((one, index) => ({ file: `f${index}`, managed: index === 0, mcpPolicy: rules(one) }))

const stdio = (name: string, command: string, ...args: ReadonlyArray<string>): Subject => ({
  name,
  endpoint: { _tag: "stdio", command, args }
})
const remote = (name: string, url: string): Subject => ({ name, endpoint: { _tag: "remote", url } })

/** The outcome in a word, with the file and field that decided. */
const word = (outcome: Outcome): string => {
  if (outcome._tag === "Allowed")
    return ["allowed", ...outcome.by.map(({ entry, policy }) => `${policy.file} ${entry.field}`)].join(" ")
  const { entry, policy } = outcome.by
  return outcome._tag === "Denied"
    ? `denied ${policy.file} ${entry.field} ${outcome.key}`
    : `not allowed ${policy.file} ${entry.field}`
}

describe("McpPolicy", () => {
  const fetch = stdio("fetch", "npx", "-y", "fetch")
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<Lists>, Subject, string]> = [
    ["no policy", [], fetch, "allowed"],
    ["an empty policy", [{}], fetch, "allowed"],
    ["an empty allow list", [{ allowed: [] }], fetch, "not allowed f0 allowed"],
    ["the name", [{ denied: [{ name: "fetch" }] }], fetch, "denied f0 denied[0] name"],
    ["another case of the name", [{ denied: [{ name: "Fetch" }] }], fetch, "allowed"],
    ["the name as a part", [{ denied: [{ name: "fet" }] }], fetch, "allowed"],
    ["a star in a name is a star", [{ denied: [{ name: "*" }] }], fetch, "allowed"],
    ["the command", [{ denied: [{ command: ["npx", "-y", "fetch"] }] }], fetch, "denied f0 denied[0] command"],
    ["its beginning only", [{ denied: [{ command: ["npx", "-y"] }] }], fetch, "allowed"],
    ["one word more", [{ denied: [{ command: ["npx", "-y", "fetch", ""] }] }], fetch, "allowed"],
    ["the same text in other words", [{ denied: [{ command: ["npx", "-y fetch"] }] }], fetch, "allowed"],
    [
      "any key denies",
      [{ denied: [{ name: "x", command: ["npx", "-y", "fetch"] }] }],
      fetch,
      "denied f0 denied[0] command"
    ],
    [
      "all keys allow",
      [{ allowed: [{ name: "x", command: ["npx", "-y", "fetch"] }] }],
      fetch,
      "not allowed f0 allowed"
    ],
    [
      "all keys allow, and all match",
      [{ allowed: [{ name: "x" }, { name: "fetch", command: ["npx", "-y", "fetch"] }] }],
      fetch,
      "allowed f0 allowed[1]"
    ],
    [
      "denied goes before allowed",
      [{ denied: [{ name: "fetch" }], allowed: [{ name: "fetch" }] }],
      fetch,
      "denied f0 denied[0] name"
    ],
    ["a URL for a command", [{ allowed: [{ url: "*" }] }], fetch, "not allowed f0 allowed"],
    ["a command for a URL", [{ denied: [{ command: ["https://a/"] }] }], remote("r", "https://a/"), "allowed"],
    [
      "a URL glob",
      [{ denied: [{ url: "https://*.a.example/*" }] }],
      remote("r", "https://x.y.a.example/mcp/1"),
      "denied f0 denied[0] url"
    ],
    ["another scheme", [{ denied: [{ url: "https://a.example/*" }] }], remote("r", "http://a.example/mcp"), "allowed"],
    [
      "another case",
      [{ allowed: [{ url: "https://a.example/MCP" }] }],
      remote("r", "https://a.example/mcp"),
      "not allowed f0 allowed"
    ],
    ["an entry without keys denies nobody", [{ denied: [{}] }], fetch, "allowed"],
    ["an entry without keys allows nobody", [{ allowed: [{}] }], fetch, "not allowed f0 allowed"],
    [
      "the second file denies",
      [{ allowed: [{ name: "fetch" }] }, { denied: [{ name: "fetch" }] }],
      fetch,
      "denied f1 denied[0] name"
    ],
    [
      "the second file cannot allow",
      [{ denied: [{ name: "fetch" }] }, { allowed: [{ name: "fetch" }] }],
      fetch,
      "denied f0 denied[0] name"
    ],
    ["every allow list counts", [{ allowed: [{ name: "fetch" }] }, { allowed: [] }], fetch, "not allowed f1 allowed"],
    [
      "every allow list is named",
      [{ allowed: [{ name: "fetch" }] }, {}, { allowed: [{ command: ["npx", "-y", "fetch"] }] }],
      fetch,
      "allowed f0 allowed[0] f2 allowed[0]"
    ]
  ]
  for (const [what, lists, subject, expected] of cases)
    it(`${what}: ${expected}`, () => assert.equal(word(decide(files(...lists), subject)), expected))

  const globs: ReadonlyArray<readonly [string, string, boolean]> = [
    ["", "", true],
    ["", "a", false],
    ["*", "", true],
    ["**", "anything/at?all", true],
    ["a*", "a", true],
    ["a*a", "a", false],
    ["ab*ba", "aba", false],
    ["a*b*c", "a-b-c-b-c", true],
    ["*b", "ab\n", false],
    ["a*c", "a\nc", true],
    ["a?c", "abc", false],
    ["a?c", "a?c", true],
    ["a.c", "abc", false],
    ["[a-z]", "b", false],
    ["\\*", "*", false],
    ["\\*", "\\x", true]
  ]
  for (const [pattern, url, expected] of globs)
    it(`the pattern ${JSON.stringify(pattern)} ${expected ? "is" : "is not"} ${JSON.stringify(url)}`, () =>
      assert.equal(urlMatches(pattern, url), expected))
})

describe("McpPolicy beside a naive formulation", () => {
  /** Few letters, so that matches happen; the star and characters with a meaning elsewhere among them. */
  const text = (letters: string, maxLength: number) =>
    fc.array(fc.constantFrom(...letters), { maxLength }).map((all) => all.join(""))

  /** A pattern read letter by letter, every way a star can go. */
  const naiveGlob = (pattern: string, url: string): boolean => {
    if (pattern === "") return url === ""
    if (pattern[0] !== "*") return pattern[0] === url[0] && url !== "" && naiveGlob(pattern.slice(1), url.slice(1))
    return Array.from({ length: url.length + 1 }, (_, skip) => url.slice(skip)).some((rest) =>
      naiveGlob(pattern.slice(1), rest)
    )
  }

  it("reads every glob alike", () => {
    fc.assert(
      fc.property(text("ab*?.", 6), text("ab*?.", 8), (pattern, url) => {
        assert.equal(urlMatches(pattern, url), naiveGlob(pattern, url))
      }),
      { numRuns: 5_000 }
    )
  })

  const words = fc.constantFrom("a", "b", "")
  const keys: fc.Arbitrary<Keys> = fc.record(
    { name: words, command: fc.array(words, { minLength: 1, maxLength: 2 }), url: text("ab*", 3) },
    { requiredKeys: [] }
  )
  const lists: fc.Arbitrary<Lists> = fc.record(
    { denied: fc.array(keys, { maxLength: 2 }), allowed: fc.array(keys, { maxLength: 2 }) },
    { requiredKeys: [] }
  )
  const subjects: fc.Arbitrary<Subject> = fc.oneof(
    fc.tuple(words, words, fc.array(words, { maxLength: 1 })).map(([name, first, rest]) => stdio(name, first, ...rest)),
    fc.tuple(words, text("ab", 3)).map(([name, url]) => remote(name, url))
  )

  /** The rules of the specification as they are told: what an entry says, then the lists. */
  const says = (entry: Keys, { endpoint, name }: Subject): ReadonlyArray<boolean> => {
    const answers: Array<boolean> = []
    if (entry.name !== undefined) answers.push(entry.name === name)
    if (entry.command !== undefined)
      answers.push(
        endpoint._tag === "stdio" &&
          JSON.stringify(entry.command) === JSON.stringify([endpoint.command, ...endpoint.args])
      )
    if (entry.url !== undefined) answers.push(endpoint._tag === "remote" && naiveGlob(entry.url, endpoint.url))
    return answers
  }
  const naive = (all: ReadonlyArray<Lists>, subject: Subject): "Denied" | "NotAllowed" | "Allowed" => {
    const denied = all.flatMap((one) => one.denied ?? [])
    if (denied.some((entry) => says(entry, subject).includes(true))) return "Denied"
    const present = all.flatMap((one) => (one.allowed === undefined ? [] : [one.allowed]))
    const holds = (list: ReadonlyArray<Keys>): boolean =>
      list.some((entry) => says(entry, subject).length > 0 && !says(entry, subject).includes(false))
    return present.every(holds) ? "Allowed" : "NotAllowed"
  }

  it("decides alike, whatever the files and the server", () => {
    const seen = new Set<string>()
    fc.assert(
      fc.property(fc.array(lists, { maxLength: 3 }), subjects, (all, subject) => {
        const { _tag } = decide(files(...all), subject)
        seen.add(_tag)
        assert.equal(_tag, naive(all, subject))
      }),
      { numRuns: 5_000 }
    )
    assert.deepEqual([...seen].sort(), ["Allowed", "Denied", "NotAllowed"])
  })

  it("never lets another file loosen", () => {
    const order = { Allowed: 0, NotAllowed: 1, Denied: 2 }
    fc.assert(
      fc.property(fc.array(lists, { maxLength: 2 }), lists, subjects, (all, more, subject) => {
        const before = order[decide(files(...all), subject)._tag]
        assert.isAtLeast(order[decide(files(...all, more), subject)._tag], before)
        assert.isAtLeast(order[decide(files(more, ...all), subject)._tag], before)
      }),
      { numRuns: 2_000 }
    )
  })

  it("decides by an entry that matches", () => {
    fc.assert(
      fc.property(fc.array(lists, { maxLength: 3 }), subjects, (all, subject) => {
        const outcome = decide(files(...all), subject)
        if (outcome._tag === "Denied") assert.include(says(outcome.by.entry, subject), true)
        if (outcome._tag === "Allowed")
          for (const { entry } of outcome.by) assert.notInclude(says(entry, subject), false)
      })
    )
  })
})

/**
 * The decision table, written out and compared with a second formulation that shares nothing with the first: a list
 * of reasons to deny and a list of reasons to ask, instead of facets.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { ListRule } from "../../src/config/PermissionLists.ts"
import { type Call, type Caps, decide, defaultPolicy, type Policy } from "../../src/policy/Permission.ts"

type Mode = "allow" | "ask" | "deny"
const verdicts: ReadonlyArray<Mode> = ["allow", "ask", "deny"]
const maybe: ReadonlyArray<Mode | undefined> = [undefined, ...verdicts]
const strictness = { allow: 0, ask: 1, deny: 2 } as const
const none: ReadonlySet<string> = new Set()
const runModes = ["read-only", "manual", "auto-edit", "danger-full-access"] as const
const accesses = ["read", "write", "execute"] as const
const effects = ["none", "read", "mutate", "unknown"] as const

const base: Call = {
  kind: "mcp",
  access: "read",
  network: "unknown",
  names: { visibleName: "mcp__fs__read", mcp: { server: "fs", serverPart: "fs", toolPart: "read" }, rivals: [] },
  subjects: ["mcp__fs__read", "mcp_trust_class:third_party"],
  grantKey: "key",
  source: { verdict: "ask", by: "the default" },
  destructive: false,
  input: {}
}
const listed = (tool: string, pattern?: string): ListRule => ({
  text: pattern === undefined ? tool : `${tool}(${pattern})`,
  tool,
  ...(pattern === undefined ? {} : { pattern }),
  where: { file: "settings.json", line: 1 }
})
const policy = (more: Partial<Policy["permission"]> = {}, rest: Partial<Policy> = {}): Policy => ({
  ...defaultPolicy,
  ...rest,
  permission: { ...defaultPolicy.permission, ...more }
})
const rule = (toolName: string, mode: Mode, line = 1) => ({ toolName, mode, line })
const inLists = (verdict: Mode | undefined): Policy["lists"] => ({
  ...defaultPolicy.lists,
  ...(verdict === undefined ? {} : { [verdict]: [listed("mcp__fs__read")] })
})

/** One row of the table. */
interface Row {
  readonly mode: (typeof runModes)[number]
  readonly cap: Caps["mode"]
  readonly access: (typeof accesses)[number]
  readonly effect: (typeof effects)[number]
  readonly networkMode: Mode
  readonly source: Mode
  readonly destructive: boolean
  readonly toml: Mode | undefined
  /** What sigil.toml says last, in a spelling that is not the visible name. */
  readonly spelled: Mode | undefined
  readonly list: Mode | undefined
  readonly granted: boolean
}

const naive = ({ spelled, ...row }: Row): Mode => {
  const exact = naiveExact(row)
  if (spelled === undefined || spelled === "allow") return exact
  // It can only tighten, by as much as the same rule would have asked or denied had the tool been allowed.
  const asked = naiveExact({ ...row, toml: spelled, list: undefined })
  return strictness[asked] > strictness[exact] ? asked : exact
}
const naiveExact = (row: Omit<Row, "spelled">): Mode => {
  const readOnly = row.mode === "read-only" || row.cap === "read-only"
  const says = (verdict: Mode) => row.toml === verdict || row.list === verdict
  const silent = row.toml === undefined && row.list === undefined
  if (says("deny")) return "deny"
  if (silent && row.source === "deny") return "deny"
  if (row.effect !== "none" && row.networkMode === "deny") return "deny"
  if (readOnly && row.access !== "read") return "deny"
  if (readOnly && (row.effect === "mutate" || row.effect === "unknown")) return "deny"
  if (row.mode === "danger-full-access" && row.cap === undefined) return "allow"
  if (row.effect !== "none" && row.networkMode === "ask") return "ask"
  if (row.granted) return "allow"
  if (says("ask")) return "ask"
  if (says("allow")) return "allow"
  if (row.source === "ask" || row.destructive) return "ask"
  return row.access === "read" ? "allow" : "ask"
}

describe("the decision table", () => {
  it("agrees with the naive formulation on every row", () => {
    let rows = 0
    const seen = { allow: 0, ask: 0, deny: 0 }
    for (const mode of runModes)
      for (const cap of [undefined, "read-only", "manual"] as const)
        for (const access of accesses)
          for (const effect of effects)
            for (const networkMode of verdicts)
              for (const source of verdicts)
                for (const destructive of [false, true])
                  for (const toml of maybe)
                    for (const list of maybe)
                      for (const granted of [false, true]) {
                        const row: Row = {
                          mode,
                          cap,
                          access,
                          effect,
                          networkMode,
                          source,
                          destructive,
                          toml,
                          spelled: undefined,
                          list,
                          granted
                        }
                        const decided = decide(
                          policy(
                            { mode, rules: toml === undefined ? [] : [rule("mcp__fs__read", toml)] },
                            { networkMode, lists: inLists(list), caps: cap === undefined ? {} : { mode: cap } }
                          ),
                          { ...base, access, network: effect, destructive, source: { verdict: source, by: "" } },
                          granted ? new Set(["key"]) : none
                        ).decision
                        rows += 1
                        seen[decided] += 1
                        if (decided !== naive(row)) assert.fail(`${decided} for ${JSON.stringify(row)}`)
                      }
    assert.equal(rows, 4 * 3 * 3 * 4 * 3 * 3 * 2 * 4 * 4 * 2)
    assert.isAbove(Math.min(seen.allow, seen.ask, seen.deny), 1_000)
  })

  it("agrees on rules and names in another spelling, which only tighten", () => {
    const spellings = ["MCP__FS__read", "mcp__fs__read!", "mcp__fs.__re*", "mcp__fs__read__0123456789abcdef"]
    const names = { ...base.names, shownAs: ["mcp__fs__read__0123456789abcdef"] }
    for (const mode of runModes)
      for (const networkMode of verdicts)
        for (const source of verdicts)
          for (const toml of maybe)
            for (const spelled of maybe)
              for (const list of maybe)
                for (const granted of [false, true])
                  for (const spelling of spellings)
                    for (const inTools of [false, true]) {
                      if (inTools && spelling.includes("*")) continue
                      const row: Row = {
                        mode,
                        cap: undefined,
                        access: "read",
                        effect: "unknown",
                        networkMode,
                        source,
                        destructive: false,
                        toml,
                        spelled,
                        list,
                        granted
                      }
                      const written = inTools
                        ? { tools: { ...(toml && { mcp__fs__read: toml }), ...(spelled && { [spelling]: spelled }) } }
                        : {
                            rules: [
                              ...(toml === undefined ? [] : [rule("mcp__fs__read", toml)]),
                              ...(spelled === undefined ? [] : [rule(spelling, spelled)])
                            ]
                          }
                      const { decision } = decide(
                        policy({ mode, ...written }, { networkMode, lists: inLists(list) }),
                        { ...base, names, source: { verdict: source, by: "" } },
                        granted ? new Set(["key"]) : none
                      )
                      if (decision !== naive(row))
                        assert.fail(`${decision} for ${spelling} ${inTools} ${JSON.stringify(row)}`)
                    }
  })

  it("agrees on commands of a shell, paths outside and edits inside the workspace", () => {
    let rows = 0
    for (const mode of runModes)
      for (const planApproved of [false, true])
        for (const [access, tool] of [
          ["execute", "bash"],
          ["write", "write_file"]
        ] as const)
          for (const edit of [false, true])
            for (const explicit of maybe)
              for (const command of maybe)
                for (const outside of [undefined, "off", ...verdicts] as const)
                  for (const granted of [false, true]) {
                    const shell = tool === "bash"
                    const expected = ((): Mode => {
                      if (explicit === "deny" || outside === "off" || outside === "deny") return "deny"
                      if (mode === "read-only" || (shell && command === "deny")) return "deny"
                      if (mode === "danger-full-access") return "allow"
                      if (outside === "ask") return "ask"
                      if (granted && !shell) return "allow"
                      if (explicit === "ask" || (shell && command === "ask")) return "ask"
                      if (explicit === "allow" || (shell && command === "allow")) return "allow"
                      if (!shell && edit && (mode === "auto-edit" || planApproved)) return "allow"
                      return "ask"
                    })()
                    const decided = decide(
                      policy(
                        {
                          mode,
                          rules: explicit === undefined ? [] : [rule(tool, explicit)],
                          commands: { allow: [], ask: [], deny: [], ...(command && { [command]: ["git *"] }) },
                          externalDirectory: {
                            enabled: outside !== "off",
                            defaultMode: "deny",
                            rules:
                              outside === undefined || outside === "off"
                                ? []
                                : [
                                    { pathGlob: "/*", mode: "deny" },
                                    { pathGlob: "/etc/*", mode: outside }
                                  ]
                          }
                        },
                        { caps: { planApproved } }
                      ),
                      {
                        kind: "builtin",
                        access,
                        network: "none",
                        names: { visibleName: tool, rivals: [] },
                        subjects: [],
                        grantKey: "key",
                        source: { verdict: "allow", by: "built in" },
                        destructive: false,
                        input: {},
                        command: "git  status",
                        workspaceEdit: edit && !shell,
                        externalPaths: outside === undefined ? [] : ["/etc/ssl/x"]
                      },
                      granted ? new Set(["key"]) : none
                    ).decision
                    rows += 1
                    if (decided !== expected)
                      assert.fail(
                        `${decided}, not ${expected}: ${JSON.stringify({ mode, planApproved, tool, edit, explicit, command, outside, granted })}`
                      )
                  }
    assert.equal(rows, 4 * 2 * 2 * 2 * 4 * 4 * 5 * 2)
  })

  it("asks no network policy for a server that was proved to have no network, and keeps every other verdict", () => {
    for (const mode of runModes)
      for (const networkMode of verdicts)
        for (const source of verdicts)
          for (const toml of maybe) {
            const decided = (isolated: boolean, network: Mode) =>
              decide(
                policy(
                  { mode, rules: toml === undefined ? [] : [rule("mcp__fs__read", toml)] },
                  { networkMode: network }
                ),
                { ...base, source: { verdict: source, by: "" }, ...(isolated ? { isolated: true } : {}) },
                none
              ).decision
            assert.equal(decided(true, networkMode), decided(false, "allow"))
          }
  })

  it("covers nothing but edits of the workspace with an approved plan", () => {
    const planned = policy({}, { caps: { planApproved: true }, networkMode: "allow" })
    const edit: Call = {
      ...base,
      kind: "builtin",
      access: "write",
      network: "none",
      names: { visibleName: "edit_file", rivals: [] },
      subjects: [],
      source: { verdict: "allow", by: "" },
      workspaceEdit: true
    }
    const verdict = (call: Partial<Call>) => decide(planned, { ...edit, ...call }, none).decision
    assert.equal(verdict({}), "allow")
    assert.equal(verdict({ workspaceEdit: false }), "ask")
    assert.equal(verdict({ access: "execute" }), "ask")
    assert.equal(verdict({ network: "read" }), "ask")
    assert.equal(verdict({ kind: "mcp" }), "ask")
    assert.equal(verdict({ kind: "subagent" }), "ask")
    assert.equal(verdict({ kind: "activation" }), "ask")
    assert.equal(verdict({ names: { visibleName: "bash", rivals: [] } }), "ask")
  })
})

describe("properties", () => {
  const verdict = fc.constantFrom(...verdicts)
  const pattern = fc.constantFrom(
    "mcp__fs__read",
    "mcp__fs__*",
    "mcp__fs",
    "mcp__*",
    "mcp__other",
    "*",
    "mcp__FS__read",
    "bash",
    "mcp__fs__re?d"
  )
  const subject = fc.constantFrom("mcp_trust_class:*", "mcp_trust_class:official", "mcp__fs__*", "*", "mcp_server:*")
  const tomlRule = fc.record(
    { toolName: pattern, subjectGlob: subject, mode: verdict, line: fc.constant(1) },
    { requiredKeys: ["mode", "line"] }
  )
  const listRule = fc
    .tuple(pattern, fc.option(fc.constantFrom("git *", "*", "/x/*", "git:*"), { nil: undefined }))
    .map(([tool, inner]) => listed(tool, inner))
  const list = fc.array(listRule, { maxLength: 3 })
  const commands = fc.array(fc.constantFrom("git *", "ls", "*"), { maxLength: 2 })
  const policies: fc.Arbitrary<Policy> = fc.record({
    permission: fc.record({
      mode: fc.constantFrom(...runModes),
      places: fc.constant({}),
      tools: fc.dictionary(fc.constantFrom("mcp__fs__read", "bash"), verdict, { maxKeys: 2, noNullPrototype: true }),
      rules: fc.array(tomlRule, { maxLength: 4 }),
      commands: fc.record({ allow: commands, ask: commands, deny: commands }),
      externalDirectory: fc.record({
        enabled: fc.boolean(),
        defaultMode: verdict,
        rules: fc.array(fc.record({ pathGlob: fc.constantFrom("/etc/*", "*"), mode: verdict }), { maxLength: 2 })
      })
    }),
    networkMode: verdict,
    lists: fc.record({ allow: list, ask: list, deny: list, allowedTools: list }),
    allowedTools: fc.array(fc.constantFrom("mcp__fs__read", "bash"), { maxLength: 1 }),
    caps: fc.record({ mode: fc.constantFrom(...runModes), planApproved: fc.boolean() }, { requiredKeys: [] })
  })
  const calls: fc.Arbitrary<Call> = fc
    .record({
      shell: fc.boolean(),
      access: fc.constantFrom(...accesses),
      network: fc.constantFrom(...effects),
      source: verdict,
      destructive: fc.boolean(),
      text: fc.constantFrom("git status", "git a; rm b", "/x/../etc", "ls"),
      field: fc.constantFrom("command", "file_path", "pattern", "other"),
      subjects: fc.subarray(["mcp_trust_class:official", "mcp_server:fs"]),
      paths: fc.subarray(["/etc/x", "/opt/y"])
    })
    .map(({ shell, access, network, source, destructive, text, field, subjects, paths }) => ({
      ...base,
      access,
      network,
      destructive,
      source: { verdict: source, by: "" },
      input: { [field]: text },
      externalPaths: paths,
      ...(shell
        ? { kind: "builtin" as const, names: { visibleName: "bash", rivals: [] }, subjects, command: text }
        : { subjects: ["mcp__fs__read", ...subjects] })
    }))
  const strict = (policy: Policy, call: Call, grants = none): number =>
    strictness[decide(policy, call, grants).decision]
  const granted = new Set(["key"])
  const check = (holds: (policy: Policy, call: Call) => void) =>
    fc.assert(fc.property(policies, calls, holds), { numRuns: 3_000 })

  it("no grant and no allow of a list widens a deny", () =>
    check((policy, call) => {
      const { decision, error, facets } = decide(policy, call, none)
      if (decision !== "deny") return
      assert.equal(decide(policy, call, granted).decision, "deny")
      const everything = { ...policy, lists: { ...policy.lists, allow: [...policy.lists.allow, listed("*")] } }
      // What a default denies, naming the tool may allow; all else stays.
      if (error !== undefined || facets.local === "deny" || facets.network === "deny")
        assert.equal(decide(everything, call, granted).decision, "deny")
      const full = { ...policy, permission: { ...policy.permission, mode: "danger-full-access" as const }, caps: {} }
      if (facets.source === "deny" || policy.networkMode === "deny")
        if (call.network !== "none" || facets.source === "deny")
          assert.equal(decide(full, call, granted).decision, "deny")
    }))

  it("one more deny never loosens, wherever it is written", () =>
    fc.assert(
      fc.property(policies, calls, tomlRule, listRule, fc.nat(4), (policy, call, more, listed, at) => {
        const before = strict(policy, call)
        const { permission, lists } = policy
        const rules = permission.rules.toSpliced(at, 0, { ...more, mode: "deny" })
        assert.isAtLeast(strict({ ...policy, permission: { ...permission, rules } }, call), before)
        assert.isAtLeast(strict({ ...policy, lists: { ...lists, deny: [...lists.deny, listed] } }, call), before)
        const commands = { ...permission.commands, deny: [...permission.commands.deny, "git *"] }
        assert.isAtLeast(strict({ ...policy, permission: { ...permission, commands } }, call), before)
      }),
      { numRuns: 3_000 }
    ))

  it("one more ask or deny in another spelling never loosens", () =>
    fc.assert(
      fc.property(
        policies,
        calls,
        fc.constantFrom("MCP__FS__READ", "mcp__fs.__read", "mcp__f.s", "mcp__Fs*", "BASH", "b!ash"),
        fc.constantFrom("ask" as const, "deny" as const),
        fc.nat(4),
        (policy, call, spelling, mode, at) => {
          const { permission } = policy
          const rules = permission.rules.toSpliced(at, 0, rule(spelling, mode))
          const tools = { ...permission.tools, [spelling]: mode }
          const before = strict(policy, call)
          assert.isAtLeast(strict({ ...policy, permission: { ...permission, rules } }, call), before)
          assert.isAtLeast(strict({ ...policy, permission: { ...permission, tools } }, call), before)
        }
      ),
      { numRuns: 3_000 }
    ))

  it("annotations and caps never loosen", () =>
    check((policy, call) => {
      assert.isAtLeast(strict(policy, { ...call, destructive: true }), strict(policy, { ...call, destructive: false }))
      const { mode: _, ...uncapped } = policy.caps
      assert.isAtLeast(strict(policy, call), strict({ ...policy, caps: uncapped }, call))
    }))

  it("the order of settings.json means nothing", () =>
    check((policy, call) => {
      const { allow, ask, deny, allowedTools } = policy.lists
      const lists = {
        allow: allow.toReversed(),
        ask: ask.toReversed(),
        deny: deny.toReversed(),
        allowedTools: allowedTools.toReversed()
      }
      assert.equal(strict({ ...policy, lists }, call), strict(policy, call))
    }))

  it("rules and lists do not reach the network facet", () =>
    check((policy, call) => {
      const bare = { ...policy, permission: { ...policy.permission, rules: [], tools: {} }, lists: defaultPolicy.lists }
      assert.equal(decide(policy, call, granted).facets.network, decide(bare, call, none).facets.network)
    }))

  it("a grant is offered exactly where it would answer everything", () =>
    check((policy, call) => {
      const decided = decide(policy, call, none)
      assert.equal(decided.grantable, decided.decision === "ask" && decide(policy, call, granted).decision === "allow")
      if (decided.facets.network === "ask") assert.isFalse(decided.grantable)
    }))

  it("every facet has a reason whose verdict it is, and the strictest decides", () =>
    check((policy, call) => {
      const { decision, facets, grounds, ground, decidedBy } = decide(policy, call, none)
      for (const facet of ["local", "network", "source"] as const) assert.equal(grounds[facet].verdict, facets[facet])
      assert.equal(strictness[decision], Math.max(...Object.values(facets).map((one) => strictness[one])))
      assert.deepEqual([ground.verdict, ground.by], [decision, decidedBy])
    }))
})

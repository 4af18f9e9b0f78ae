import { assert, describe, it } from "@effect/vitest"
import type { ConfigSnapshot } from "../../src/config/Configuration.ts"
import { defaultSettings } from "../../src/config/Settings.ts"
import { checkPermission } from "../../src/doctor/PermissionCheck.ts"
import { declared } from "../support/FakeRuntime.ts"

const rule = (toolName: string) => ({ toolName, mode: "deny" as const, line: 1 })
const snapshotOf = (permission: Partial<ConfigSnapshot["settings"]["permission"]>): ConfigSnapshot => ({
  workspace: "/",
  launchDirectory: "/",
  projectIdentity: "/",
  servers: [declared("github"), declared("fetch demo"), declared("my.srv"), declared("my-srv")],
  shadowed: [],
  problems: [],
  settings: { ...defaultSettings, permission: { ...defaultSettings.permission, ...permission } },
  unsupportedSafety: []
})

describe("rules that match nothing declared", () => {
  it("are named with their line and a likely name", () => {
    const where = { file: "sigil.toml", line: 4, column: 1, field: "permission.rules[0]" }
    const found = checkPermission(snapshotOf({ rules: [rule("mcp__gihub__*")], places: { "rules[0]": where } }))
    assert.deepEqual(
      found.map(({ code, status, subject, where }) => ({ code, status, subject, where })),
      [{ code: "permission:rule", status: "warn", subject: "mcp__gihub__*", where }]
    )
    assert.include(found[0]?.fix, "mcp__github")
  })

  it("are not those that tighten in another spelling; an allow in it is told the right one", () => {
    const spelled = ["mcp__my.srv__*", "mcp__my.srv", "MCP__GitHub__x", "mcp__fetch demo__get"]
    assert.deepEqual(checkPermission(snapshotOf({ rules: spelled.map(rule) })), [])
    const allowed = checkPermission(
      snapshotOf({ rules: spelled.map((toolName) => ({ toolName, mode: "allow" as const, line: 1 })) })
    )
    assert.deepEqual(
      allowed.map(({ fix }) => /'(.*)'/.exec(fix ?? "")?.[1]),
      ["mcp__my_srv", "mcp__my_srv", "mcp__github", "mcp__fetch_demo"]
    )
  })

  it("are not those that could match under any reading, or that are about something else", () => {
    const fine = ["mcp__github", "mcp__fetch_demo__*", "mcp__*", "*", "mcp__git*__x", "bash"]
    assert.deepEqual(checkPermission(snapshotOf({ rules: fine.map(rule) })), [])
    const subjects = ["mcp_trust_class:third_party", "mcp_server:github", "mcp__github__*"]
    const bySubject = (names: ReadonlyArray<string>) =>
      checkPermission(
        snapshotOf({ rules: names.map((subjectGlob) => ({ subjectGlob, mode: "deny" as const, line: 1 })) })
      ).map(({ subject }) => subject)
    assert.deepEqual(bySubject(subjects), [])
    const wrong = ["mcp_trust_class:thirdparty", "mcp_server:gitlab"]
    assert.deepEqual(bySubject(wrong), wrong)
    assert.equal(checkPermission(snapshotOf({ tools: { mcp__gitlab__x: "deny" } })).length, 1)
  })
})

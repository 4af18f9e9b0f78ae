import { assert, describe, it } from "vitest"
import * as JsonText from "../../src/config/JsonText.ts"
import { decodeJsonSettings, decodeTomlSettings, defaultSettings } from "../../src/config/Settings.ts"
import * as Toml from "../../src/config/Toml.ts"
import { right } from "./Support.ts"

const toml = (text: string) => decodeTomlSettings(right(Toml.parse(text, "f")).root, "f", defaultSettings)
const json = (text: string) => {
  const root = right(JsonText.parse(text, "f"))
  if (root.kind !== "object") assert.fail()
  return decodeJsonSettings(root, "f", defaultSettings)
}

describe("settings of sigil.toml", () => {
  it("decode whole", () => {
    const { settings, faults, unsupportedSafety } = toml(`
config_version = 2
[permission]
mode = "auto-edit"
[permission.tools]
mcp__a__b = "allow"
__proto__ = "deny"
[[permission.rules]]
tool_name = "mcp__a__*"
mode = "deny"
[[permission.rules]]
subject_glob = "mcp_trust_class:*"
[permission.commands]
allow = ["git status*"]
deny = ["rm *"]
[permission.external_directory]
enabled = true
rules = [{ path_glob = "/tmp/*", mode = "allow" }]
[web]
network_mode = "ask"
allowed_ports = [443]
allowed_private_hosts = ["localhost"]
search_mcp = { server = "s", tool = "t" }
[web.bundled_search]
enabled = false
[mcp]
oauth_store = "file"
tool_search = "auto:10"
[agent]
tool_timeout_secs = 0
[audit]
sync = "always"
[workspace]
root = "."
[execution]
strategy = "sandbox"
backend = "linux_bubblewrap"
workspace = "read-only"
network = "denied"
readable_paths = ["~/.nvm", "/opt/tools"]
writable_paths = ["~"]
`)
    assert.deepEqual(faults, [])
    assert.deepEqual(unsupportedSafety, [])
    assert.strictEqual(settings.permission.mode, "auto-edit")
    assert.deepEqual(Object.entries(settings.permission.tools), [
      ["mcp__a__b", "allow"],
      ["__proto__", "deny"]
    ])
    assert.deepEqual(settings.permission.rules, [
      { toolName: "mcp__a__*", mode: "deny", line: 8 },
      { subjectGlob: "mcp_trust_class:*", mode: "ask", line: 11 }
    ])
    assert.deepEqual(settings.permission.commands, { allow: ["git status*"], ask: [], deny: ["rm *"] })
    assert.deepEqual(settings.permission.externalDirectory, {
      enabled: true,
      defaultMode: "ask",
      rules: [{ pathGlob: "/tmp/*", mode: "allow" }]
    })
    assert.deepEqual(
      [settings.networkMode, settings.web.allowedPorts, settings.web.searchMcp, settings.web.bundledSearchEnabled],
      ["ask", [443], { server: "s", tool: "t" }, false]
    )
    assert.deepEqual(
      [
        settings.mcp.oauthStore,
        settings.mcp.toolSearch,
        settings.agent.toolTimeoutMs,
        settings.audit.sync,
        settings.workspaceRoot
      ],
      ["file", "auto:10", 30_000, "always", "."]
    )
    assert.deepEqual(settings.execution, {
      strategy: "sandbox",
      backend: "linux_bubblewrap",
      workspace: "read-only",
      network: "denied",
      readablePaths: ["~/.nvm", "/opt/tools"],
      writablePaths: ["~"]
    })
  })

  it.each([
    ["nope = 1", "nope", 1, 1],
    ["[nope]", "nope", 1, 1],
    ["[permission]\nmodes = 1", "permission.modes", 2, 1],
    ['[permission.tools]\nx = "maybe"', "permission.tools.x", 2, 5],
    ['[permission.tools]\n"mcp__fs__*" = "deny"', 'permission.tools["mcp__fs__*"]', 2, 1],
    ['[permission.tools]\n"mcp__fs__rea?" = "ask"', 'permission.tools["mcp__fs__rea?"]', 2, 1],
    ['[permission.tools]\n"mcp__my.srv" = "allow"', 'permission.tools["mcp__my.srv"]', 2, 1],
    ['[permission]\nrules = [{ tool_name = "x", mod = "ask" }]', "permission.rules[0].mod", 2, 29],
    ['[permission.commands]\nallow = ["a"]\ndeny = ["a"]', "permission.commands.deny[0]", 3, 9],
    ['[permission.commands]\nallow = [" "]', "permission.commands.allow[0]", 2, 10],
    ['[permission.commands]\nallow = ["a\\nb"]', "permission.commands.allow[0]", 2, 10],
    ["[permission.external_directory]\nrules = [{}]", "permission.external_directory.rules[0].path_glob", 2, 10],
    ['[web]\nnetwork_mode = "off"', "web.network_mode", 2, 16],
    ["[web]\nallowed_ports = [0]", "web.allowed_ports[0]", 2, 18],
    ["[web]\ntimeout_secs = 0", "web.timeout_secs", 2, 16],
    ['[mcp]\nproject_remote = "yes"', "mcp.project_remote", 2, 18],
    ['[execution]\nstrategy = "jail"', "execution.strategy", 2, 12],
    ['[execution]\nbackend = "chroot"', "execution.backend", 2, 11],
    ["[execution]\nsandbox = true", "execution.sandbox", 2, 1],
    ['[execution]\nreadable_paths = ["tools"]', "execution.readable_paths[0]", 2, 19],
    ['[execution]\nwritable_paths = ["/"]', "execution.writable_paths[0]", 2, 19],
    ['[audit]\nsync = "never"', "audit.sync", 2, 8],
    ["[agent]\nmodel = 1", "agent.model", 2, 1],
    ["permission = 1", "permission", 1, 14]
  ])("%j is a fault of the file", (text, field, line, column) => {
    const { faults } = toml(text)
    assert.deepEqual(faults[0]?.where, { file: "f", line, column, field })
  })

  it("a switch without its feature is said and does no harm", () => {
    const { faults, remarks } = toml(
      '[mcp]\nskills = true\nallow_http = true\nmissing_env = "literal"\noauth_auto = false\n'
    )
    assert.deepEqual(faults, [])
    assert.deepEqual(
      remarks.map(({ code, where }) => [code, where?.field]),
      [
        ["SIGIL_NOT_SUPPORTED", "mcp.skills"],
        ["SIGIL_NOT_SUPPORTED", "mcp.allow_http"]
      ]
    )
  })
})

describe("settings of settings.json", () => {
  it("decode both spellings and remark on unknown keys", () => {
    const { settings, faults, remarks } = json(
      '{"toolSearch":false,"toolSearchKeepLoaded":["a"],"mcp":{"projectWalk":"off"},"theme":"x","allowedTools":["t"],"permissions":{"deny":["d"]}}'
    )
    assert.deepEqual(faults, [])
    assert.deepEqual(settings.mcp, { projectWalk: "off", toolSearch: false, toolSearchKeepLoaded: ["a"] })
    assert.deepEqual(settings.lists, {
      allow: [],
      ask: [],
      deny: [{ text: "d", tool: "d", where: { file: "f", line: 1, column: 134, field: "permissions.deny[0]" } }],
      allowedTools: [{ text: "t", tool: "t", where: { file: "f", line: 1, column: 106, field: "allowedTools[0]" } }]
    })
    assert.deepEqual(
      remarks.map(({ where }) => where?.field),
      ["theme"]
    )
  })
  const safety = [
    "deniedTools",
    "denied_tools",
    "DENIEDTOOLS",
    "deniedMcpServers",
    "allowedMcpServers",
    "disableAllMcp",
    "disabledMcpjsonServers",
    "disallowedTools",
    "forbiddenServers",
    "blockedDomains",
    "restrictTools",
    "mcp-allowlist",
    "excludeTools",
    "requireToolConfirmation",
    "trustedServers",
    "deny",
    "denylist",
    "permission",
    "toolPermissions",
    "permissionMode",
    "approvalMode",
    "sandbox"
  ]
  it.each(safety)("%s looks like a safety setting, so nothing may start", (key) => {
    const { unsupportedSafety } = json(`{"${key}":["x"]}`)
    assert.deepEqual(
      unsupportedSafety.map(({ at, field }) => [field, at]),
      [[key, { line: 1, column: 2 }]]
    )
    assert.include(unsupportedSafety[0]?.fix, "mcpPolicy")
  })
  it.each(['{"mcp":{"excluded":["x"]}}', '{"mcp":{"allowed":["x"]}}', '{"tools":{"exclude":["x"]}}'])(
    "%s looks like a safety setting, so nothing may start",
    (text) => assert.lengthOf(json(text).unsupportedSafety, 1)
  )
  it("harmless keys of S and of other hosts start what they did", () => {
    const { faults, unsupportedSafety } = json(`{
      "$schema": "x", "mcpServers": {}, "toolSearch": true, "toolSearchKeepLoaded": ["a"], "allowedTools": ["a"],
      "permissions": {}, "mcpPolicy": {}, "policyLimits": {}, "mcp": {}, "theme": "x", "model": "x", "language": "x",
      "env": { "ALLOW_X": "1", "DISABLE_TELEMETRY": "1" }, "hooks": { "PreToolUse": [] }, "disableTooltips": true,
      "enableAllProjectMcpServers": true, "statusLine": { "command": "x" }, "disableTelemetry": true
    }`)
    assert.deepEqual([faults, unsupportedSafety], [[], []])
  })

  const zero = "\\u200b"
  it.each([
    [`{"mcpPolicy":{"deniedServers":[{"name":"a${zero}"}]}}`, "mcpPolicy.deniedServers[0].name", 40],
    ['{"mcpPolicy":{"deniedServers":[{"name":" a"}]}}', "mcpPolicy.deniedServers[0].name", 40],
    ['{"mcpPolicy":{"allowedServers":[{"url":"https://a/* "}]}}', "mcpPolicy.allowedServers[0].url", 40],
    [`{"mcpPolicy":{"deniedServers":[{"command":["${zero}npx"]}]}}`, "mcpPolicy.deniedServers[0].command", 43],
    [`{"permissions":{"deny":["mcp__a${zero}__b"]}}`, "permissions.deny[0]", 25],
    ['{"permissions":{"deny":["mcp__a__b "]}}', "permissions.deny[0]", 25],
    ['{"allowedTools":["mcp__a\\u2060__b"]}', "allowedTools[0]", 18]
  ])("%s would never match, so nothing may start", (text, field, column) => {
    const { unsupportedSafety } = json(text)
    assert.deepEqual([unsupportedSafety[0]?.field, unsupportedSafety[0]?.at], [field, { line: 1, column }])
  })
  it.each([
    '[permission.tools]\n"mcp__a__b\\u200B" = "deny"',
    '[permission.tools]\n" mcp__a__b" = "deny"',
    '[[permission.rules]]\ntool_name = "mcp__a\\u200B"\nmode = "deny"',
    '[[permission.rules]]\nsubject_glob = "x "\nmode = "deny"'
  ])("%j of sigil.toml would never match, so nothing may start", (text) => {
    const { faults, unsupportedSafety } = toml(text)
    assert.equal(faults[0]?.where?.line, 2)
    assert.deepEqual(
      unsupportedSafety.map(({ field }) => field),
      ["permission"]
    )
  })

  it("a key twice is a fault", () => {
    assert.deepEqual(
      json('{"mcp":{},"mcp":{}}').faults.map(({ where }) => where?.column),
      [11]
    )
  })
})

import { assert, describe, it } from "vitest"
import * as JsonText from "../../src/config/JsonText.ts"
import { decodeJsonSettings, defaultSettings, type Settings } from "../../src/config/Settings.ts"
import { right } from "./Support.ts"

const json = (text: string, base: Settings = defaultSettings) => {
  const root = right(JsonText.parse(text, "f"))
  if (root.kind !== "object") assert.fail()
  return decodeJsonSettings(root, "f", base)
}

describe("policies of settings.json", () => {
  it("decode in both spellings, with the place of everything that decides", () => {
    const { faults, remarks, settings, unsupportedSafety } = json(`{
  // who may run
  "mcpPolicy": {
    "deniedServers": [{ "name": "a" },
      { "command": ["npx", ""], "url": "https://*" }],
    "allowedServers": []
  },
  "policyLimits": { "mcp": { "allowed": false, "reason": "audit" } }
}`)
    assert.deepEqual([faults, remarks, unsupportedSafety], [[], [], []])
    assert.deepEqual(settings.company, [
      {
        file: "f",
        managed: false,
        mcpPolicy: {
          field: "mcpPolicy",
          at: { line: 3, column: 3 },
          denied: [
            { field: "mcpPolicy.deniedServers[0]", at: { line: 4, column: 23 }, name: "a" },
            {
              field: "mcpPolicy.deniedServers[1]",
              at: { line: 5, column: 7 },
              command: ["npx", ""],
              url: "https://*"
            }
          ],
          allowed: { field: "mcpPolicy.allowedServers", at: { line: 6, column: 5 }, entries: [] }
        },
        mcpLimit: { field: "policyLimits.mcp", at: { line: 8, column: 21 }, allowed: false, reason: "audit" }
      }
    ])
    const snake = json(
      '{"mcp_policy":{"denied_servers":[],"allowed_servers":[]},"policy_limits":{"mcp":true}}'
    ).settings
    assert.deepEqual(
      snake.company.map(({ mcpLimit, mcpPolicy }) => [mcpPolicy?.allowed?.field, mcpLimit?.allowed]),
      [["mcp_policy.allowed_servers", true]]
    )
  })

  it("come after what was read before, and take nothing from it", () => {
    const managed = json('{"mcpPolicy":{}}').settings
    assert.equal(json("{}", managed).settings.company.length, 1)
    assert.equal(json('{"policyLimits":{}}', managed).settings.company.length, 1)
    assert.equal(json('{"policyLimits":{"mcp":true}}', managed).settings.company.length, 2)
  })

  it("remark on an allowed entry that nothing can match", () => {
    const { faults, remarks } = json('{"mcpPolicy":{"allowedServers":[{"command":["a"],"url":"*"},{"url":"*"}]}}')
    assert.deepEqual(faults, [])
    assert.deepEqual(
      remarks.map(({ reason, where }) => [reason, where?.field]),
      [["never_matches", "mcpPolicy.allowedServers[0]"]]
    )
  })

  const broken: ReadonlyArray<readonly [text: string, field: string, column: number]> = [
    ['{"mcpPolicy":null}', "mcpPolicy", 14],
    ['{"mcpPolicy":{"deniedServer":[]}}', "mcpPolicy.deniedServer", 15],
    ['{"mcpPolicy":{"deniedServers":{}}}', "mcpPolicy.deniedServers", 31],
    ['{"mcpPolicy":{"deniedServers":["a"]}}', "mcpPolicy.deniedServers[0]", 32],
    ['{"mcpPolicy":{"deniedServers":[{}]}}', "mcpPolicy.deniedServers[0]", 32],
    ['{"mcpPolicy":{"allowedServers":[{}]}}', "mcpPolicy.allowedServers[0]", 33],
    ['{"mcpPolicy":{"deniedServers":[{"names":"a"}]}}', "mcpPolicy.deniedServers[0].names", 33],
    ['{"mcpPolicy":{"deniedServers":[{"name":"a","id":1}]}}', "mcpPolicy.deniedServers[0].id", 44],
    ['{"mcpPolicy":{"deniedServers":[{"name":1}]}}', "mcpPolicy.deniedServers[0].name", 40],
    ['{"mcpPolicy":{"deniedServers":[{"command":"a"}]}}', "mcpPolicy.deniedServers[0].command", 43],
    ['{"mcpPolicy":{"deniedServers":[{"command":[]}]}}', "mcpPolicy.deniedServers[0].command", 32],
    ['{"mcpPolicy":{"deniedServers":[],"denied_servers":[]}}', "mcpPolicy.denied_servers", 34],
    ['{"mcpPolicy":{"deniedServers":[],"deniedServers":[]}}', "mcpPolicy.deniedServers", 34],
    ['{"mcpPolicy":{},"mcpPolicy":{}}', "mcpPolicy", 17],
    ['{"mcpPolicy":{},"mcp_policy":{}}', "mcp_policy", 17],
    ['{"policyLimits":[]}', "policyLimits", 17],
    ['{"policyLimits":{"mcp":"off"}}', "policyLimits.mcp", 24],
    ['{"policyLimits":{"mcp":{}}}', "policyLimits.mcp.allowed", 24],
    ['{"policyLimits":{"mcp":{"allowed":"no"}}}', "policyLimits.mcp.allowed", 35],
    ['{"policyLimits":{"mcp":{"allowed":true,"reasons":"x"}}}', "policyLimits.mcp.reasons", 40],
    ['{"policyLimits":{"web":false}}', "policyLimits.web", 18]
  ]
  for (const [text, field, column] of broken)
    it(`refuse every start: ${text}`, () => {
      const { faults, unsupportedSafety } = json(text)
      assert.isNotEmpty(faults)
      const [first] = unsupportedSafety
      assert.deepEqual([first?.field, first?.source, first?.at], [field, "f", { line: 1, column }])
      assert.isString(first?.why)
    })
})

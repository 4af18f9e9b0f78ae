/** The company's gates: what they refuse with, in which order, and that they are asked again for every generation. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { CompanyPolicy, McpLimit, McpPolicyRules } from "../../src/config/CompanyPolicy.ts"
import { Configuration } from "../../src/config/Configuration.ts"
import type { Entry, RemoteEndpoint, ServerDeclaration } from "../../src/config/ServerDeclaration.ts"
import { defaultSettings, type UnsupportedSafety } from "../../src/config/Settings.ts"
import { Admission } from "../../src/server/Admission.ts"
import { Registry } from "../../src/server/Registry.ts"
import { headless } from "../../src/tools/Caller.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"
import * as ToolServer from "../../src/transport/ToolServer.ts"
import { declared, withFakes } from "../support/FakeRuntime.ts"

const place = (field: string, line: number) => ({ field, at: { line, column: 5 } })
const policy = (more: Partial<McpPolicyRules>, managed = true): CompanyPolicy => ({
  file: managed ? "/etc/sigil/managed.json" : "/home/u/settings.json",
  managed,
  mcpPolicy: { ...place("mcpPolicy", 2), denied: [], ...more }
})
const limit = (more: Partial<McpLimit> = {}, managed = true): CompanyPolicy => ({
  file: managed ? "/etc/sigil/managed.json" : "/home/u/settings.json",
  managed,
  mcpLimit: { ...place("policyLimits.mcp", 3), allowed: false, ...more }
})
const snapshot = (company: ReadonlyArray<CompanyPolicy>, unsupportedSafety: ReadonlyArray<UnsupportedSafety> = []) => ({
  settings: { ...defaultSettings, company },
  unsupportedSafety
})

interface Given {
  readonly company: ReadonlyArray<CompanyPolicy>
  readonly more?: Partial<ServerDeclaration>
  readonly variables?: { readonly [name: string]: string }
  readonly unsupportedSafety?: ReadonlyArray<UnsupportedSafety>
}

/** Admits one server named `a`; gives the refusal, if any, and each gate's word. */
const admitted = ({ company, more, unsupportedSafety, variables }: Given) => {
  const entry = declared("a", more)
  return Effect.gen(function* () {
    const admission = yield* Admission
    const facts = { snapshot: yield* Effect.flatMap(Configuration, ({ load }) => load), networkApproved: false }
    const verdicts = yield* admission.explain(entry, facts)
    const outcome = yield* Effect.either(admission.admit(entry, facts))
    const gate = (name: string) => verdicts.find((one) => one.gate === name)
    return { refusal: outcome._tag === "Left" ? outcome.left : undefined, gate }
  }).pipe(
    withFakes({
      servers: {},
      entries: [entry],
      snapshot: snapshot(company, unsupportedSafety),
      ...(variables === undefined ? {} : { variables })
    })
  )
}

const remote = (url: string): RemoteEndpoint => ({
  _tag: "remote",
  transport: "streamable_http",
  url,
  headers: {},
  envHeaders: {},
  clientCapabilities: []
})

describe("the gate of mcpPolicy", () => {
  it.effect("refuses what is denied, with the line and whom to ask", () =>
    Effect.gen(function* () {
      const denied = [{ ...place("mcpPolicy.deniedServers[0]", 7), name: "a" }]
      const { gate, refusal } = yield* admitted({ company: [policy({ denied })] })
      assert.deepEqual(
        { ...refusal },
        {
          _tag: "AdmissionError",
          code: "SIGIL_DENIED",
          reason: "mcp_policy_denied",
          text: "The server 'a' is denied by mcpPolicy.deniedServers[0] in /etc/sigil/managed.json: its name matches.",
          fix: "Ask whoever administers this machine to change /etc/sigil/managed.json, or remove the server.",
          where: {
            file: "/etc/sigil/managed.json",
            line: 7,
            column: 5,
            field: "mcpPolicy.deniedServers[0]",
            server: "a",
            operation: "mcp_policy"
          }
        }
      )
      assert.equal(gate("mcp_policy")?.verdict, "refuse")
      assert.deepEqual(gate("mcp_policy")?.where, refusal?.where)
      // The company's word goes before the question to the user.
      assert.equal(gate("approval")?.verdict, "not_reached")
    })
  )

  it.effect("refuses what no allow list holds, and says what a user could add to an own one", () =>
    Effect.gen(function* () {
      const allowed = { ...place("mcpPolicy.allowedServers", 4), entries: [] }
      const empty = yield* admitted({ company: [policy({}), policy({ allowed }, false)] })
      assert.deepEqual(
        [empty.refusal?.code, empty.refusal?.reason, empty.refusal?.text, empty.refusal?.fix],
        [
          "SIGIL_DENIED",
          "mcp_policy_not_allowed",
          "The server 'a' is not allowed: mcpPolicy.allowedServers in /home/u/settings.json is empty, so no server is.",
          `Add an entry such as {"name": "a"} to mcpPolicy.allowedServers in /home/u/settings.json, if you want the server.`
        ]
      )
      assert.deepEqual([empty.refusal?.where?.line, empty.refusal?.where?.column], [4, 5])
      const entries = [{ ...place("mcpPolicy.allowedServers[0]", 5), name: "a", url: "*" }]
      const partly = yield* admitted({ company: [policy({ allowed: { ...allowed, entries } })] })
      assert.include(partly.refusal?.text, "matches it in all of its keys")
      assert.include(partly.refusal?.fix, "Ask whoever administers this machine to allow it")
    })
  )

  it.effect("lets pass what every list leaves, naming the entries", () =>
    Effect.gen(function* () {
      const word = (company: ReadonlyArray<CompanyPolicy>) =>
        Effect.map(admitted({ company }), ({ gate, refusal }) => {
          assert.isUndefined(refusal)
          return gate("mcp_policy")?.why
        })
      const entries = [{ ...place("mcpPolicy.allowedServers[0]", 5), name: "a" }]
      const allowed = { ...place("mcpPolicy.allowedServers", 4), entries }
      assert.equal(yield* word([]), "no mcpPolicy is set")
      assert.equal(yield* word([policy({})]), "no entry of mcpPolicy denies it, and there is no allow list")
      assert.equal(
        yield* word([policy({ allowed }), policy({ allowed }, false)]),
        "allowed by mcpPolicy.allowedServers[0] (/etc/sigil/managed.json:5:5) and mcpPolicy.allowedServers[0] (/home/u/settings.json:5:5)"
      )
    })
  )

  it.effect("judges a command by its expanded words, and repeats none of them", () =>
    Effect.gen(function* () {
      const denied = [
        { ...place("mcpPolicy.deniedServers[0]", 7), command: [process.execPath, "--key", "s3cret-value"] }
      ]
      const endpoint = {
        _tag: "stdio" as const,
        command: "${NODE}",
        args: ["--key", "${KEY:-other}"],
        inheritEnv: [],
        publicEnv: [],
        env: {}
      }
      const given = { company: [policy({ denied })], more: { endpoint } }
      const variables = { NODE: process.execPath, KEY: "s3cret-value" }
      const { refusal } = yield* admitted({ ...given, variables })
      assert.equal(refusal?.reason, "mcp_policy_denied")
      assert.notInclude(JSON.stringify(refusal), "s3cret-value")
      assert.isUndefined((yield* admitted({ ...given, variables: { NODE: process.execPath } })).refusal)
    })
  )

  it.effect("judges a URL by its expanded text", () =>
    Effect.gen(function* () {
      const allowed = {
        ...place("mcpPolicy.allowedServers", 4),
        entries: [{ ...place("mcpPolicy.allowedServers[0]", 5), url: "https://*.good.example/*" }]
      }
      const reason = (host: string) =>
        Effect.map(
          admitted({
            company: [policy({ allowed })],
            more: { endpoint: remote("https://${HOST}/mcp") },
            variables: { HOST: host }
          }),
          ({ refusal }) => refusal?.reason
        )
      assert.equal(yield* reason("evil.example"), "mcp_policy_not_allowed")
      // Past this gate: what is refused then is that this build dials nothing.
      assert.notEqual(yield* reason("eu.good.example"), "mcp_policy_not_allowed")
    })
  )
})

describe("the gate of the company limit", () => {
  it.effect("switches every server off, with the reason and whom to ask", () =>
    Effect.gen(function* () {
      const { gate, refusal } = yield* admitted({ company: [limit({ reason: "audit week" })] })
      assert.deepEqual(
        [refusal?.code, refusal?.reason, refusal?.text, refusal?.fix, refusal?.where?.line],
        [
          "SIGIL_DENIED",
          "company_limit",
          "The server 'a' is off, like all servers, by policyLimits.mcp in /etc/sigil/managed.json: audit week",
          "Ask whoever administers this machine to change policyLimits.mcp in /etc/sigil/managed.json.",
          3
        ]
      )
      assert.equal(gate("company_limit")?.verdict, "refuse")
      assert.equal(gate("scope_rules")?.verdict, "not_reached")
    })
  )

  it.effect("is off when any file says off, whatever the others say", () =>
    Effect.gen(function* () {
      const on = limit({ allowed: true })
      for (const company of [
        [on, limit({}, false)],
        [limit(), limit({ allowed: true }, false)]
      ])
        assert.equal((yield* admitted({ company })).refusal?.reason, "company_limit")
      assert.isUndefined((yield* admitted({ company: [on] })).refusal)
    })
  )

  it.effect("spares what an IDE declares, which mcpPolicy does not", () =>
    Effect.gen(function* () {
      const ide = { scope: "dynamic", origin: "ide" } as const
      const spared = yield* admitted({ company: [limit()], more: ide })
      assert.isUndefined(spared.refusal)
      assert.include(spared.gate("company_limit")?.why, "spared")
      assert.equal(
        (yield* admitted({ company: [limit()], more: { scope: "dynamic" } })).refusal?.reason,
        "company_limit"
      )
      assert.equal(
        (yield* admitted({ company: [limit()], more: { scope: "project", origin: "ide" } })).refusal?.reason,
        "company_limit"
      )
      const denied = [{ ...place("mcpPolicy.deniedServers[0]", 7), name: "a" }]
      const both = yield* admitted({ company: [limit(), policy({ denied })], more: ide })
      assert.equal(both.refusal?.reason, "mcp_policy_denied")
    })
  )

  it.effect("refuses everything, an IDE's too, under a policy that cannot be used", () =>
    Effect.gen(function* () {
      const unsupportedSafety = [
        {
          field: "mcpPolcy",
          source: "/etc/sigil/managed.json",
          reason: "managed_file_invalid",
          why: "managed.json has no key of this name",
          fix: "Ask somebody.",
          at: { line: 2, column: 3 }
        }
      ]
      const more = { scope: "dynamic", origin: "ide" } as const
      const { refusal } = yield* admitted({ company: [], more, unsupportedSafety })
      assert.deepEqual(
        [refusal?.code, refusal?.reason, refusal?.fix, refusal?.where],
        [
          "SIGIL_SAFETY_UNSUPPORTED",
          "managed_file_invalid",
          "Ask somebody.",
          {
            file: "/etc/sigil/managed.json",
            line: 2,
            column: 3,
            field: "mcpPolcy",
            server: "a",
            operation: "company_limit"
          }
        ]
      )
    })
  )
})

describe("generations under a policy", () => {
  const server = ToolServer.make({
    tools: { t: { description: "", inputSchema: { type: "object" }, run: () => Effect.succeed("here") } }
  })
  const templated: Partial<ServerDeclaration> = {
    endpoint: {
      _tag: "stdio",
      command: process.execPath,
      args: ["${MODE:-safe}"],
      inheritEnv: [],
      publicEnv: [],
      env: {}
    }
  }
  const denied = [{ ...place("mcpPolicy.deniedServers[0]", 7), command: [process.execPath, "unsafe"] }]

  it.effect("are judged one by one: a changed variable keeps the old one and refuses the next", () => {
    const variables: { [name: string]: string } = {}
    const opened: Array<string> = []
    const counting: typeof server = (link) => {
      opened.push("open")
      return server(link)
    }
    return Effect.gen(function* () {
      const registry = yield* Registry
      const first = yield* registry.activate("a")
      variables["MODE"] = "unsafe"
      const refused = yield* Effect.flip(registry.refresh("a"))
      assert.deepEqual([refused.code, refused.reason], ["SIGIL_DENIED", "mcp_policy_denied"])
      assert.equal(opened.length, 1)
      yield* registry.close("a")
      assert.equal((yield* Effect.flip(registry.activate("a"))).reason, "mcp_policy_denied")
      assert.equal(opened.length, 1)
      delete variables["MODE"]
      const second = yield* registry.activate("a")
      assert.notEqual(second.id, first.id)
      assert.equal(opened.length, 2)
    }).pipe(
      withFakes({
        servers: { a: counting },
        entries: [declared("a", templated)],
        snapshot: snapshot([policy({ denied })]),
        // The fake reads them anew at every start.
        get variables() {
          return { ...variables }
        }
      })
    )
  })

  const members: ReadonlyArray<Entry> = [
    declared("a", { required: true }),
    // Another command line than the first one's, or the two would be one server.
    declared("ide", {
      scope: "dynamic",
      origin: "ide",
      required: true,
      endpoint: { _tag: "stdio", command: process.execPath, args: ["ide"], inheritEnv: [], publicEnv: [], env: {} }
    })
  ]

  it.effect("do not exist while MCP is off: no required server fails a run, an IDE's starts", () =>
    Effect.gen(function* () {
      const registry = yield* Registry
      const { failed, ready } = yield* registry.startEager
      assert.deepEqual([ready.map(({ declaration }) => declaration.name), failed], [["ide"], []])
      const call = yield* Effect.flatMap(Pipeline, (pipeline) =>
        Effect.flip(pipeline.call(headless("test"), { server: "a", tool: "t", args: {} }))
      )
      assert.equal(call.reason, "company_limit")
    }).pipe(withFakes({ servers: { a: server, ide: server }, entries: members, snapshot: snapshot([limit()]) }))
  )

  it.effect("that are required and denied fail the run as any refusal does", () =>
    Effect.gen(function* () {
      const registry = yield* Registry
      const error = yield* Effect.flip(registry.startEager)
      assert.deepEqual([error.code, error.reason], ["SIGIL_DENIED", "mcp_policy_denied"])
    }).pipe(
      withFakes({
        servers: { a: server, ide: server },
        entries: members,
        snapshot: snapshot([policy({ denied: [{ ...place("mcpPolicy.deniedServers[0]", 7), name: "ide" }] })])
      })
    )
  )
})

/** What the gates say of a remote server: its headers, its address, its pin, the network; and that they call nobody. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { createHook } from "node:async_hooks"
import * as dns from "node:dns"
import type { AuditRecord } from "../../src/audit/AuditRecord.ts"
import { Configuration } from "../../src/config/Configuration.ts"
import type { RemoteEndpoint, ServerDeclaration } from "../../src/config/ServerDeclaration.ts"
import { defaultSettings, type Settings } from "../../src/config/Settings.ts"
import { checkServer } from "../../src/doctor/ServerCheck.ts"
import * as Library from "../../src/runtime/Library.ts"
import { Admission, type Verdict } from "../../src/server/Admission.ts"
import { secretsOf } from "../../src/server/ChildEnvironment.ts"
import { ClientFeatures } from "../../src/server/ClientFeatures.ts"
import type { RemoteEntry } from "../../src/server/DynamicServers.ts"
import { Registry } from "../../src/server/Registry.ts"
import type { MemoryLink } from "../../src/transport/MemoryTransport.ts"
import { declared, layer, withFakes } from "../support/FakeRuntime.ts"
import { fakeServer, tool } from "../support/FakeServer.ts"

const TOKEN = "tok-0123456789abcdef"
const remote = (more: Partial<RemoteEndpoint> = {}): RemoteEndpoint => ({
  _tag: "remote",
  transport: "streamable_http",
  url: "https://mcp.example.test/mcp",
  headers: {},
  envHeaders: {},
  clientCapabilities: [],
  ...more
})

/** What a person writes so that servers of this machine may be called. */
const loopbackWeb = {
  ...defaultSettings.web,
  allowedPrivateHosts: ["localhost", "127.0.0.1", "::1"],
  allowedPrivateCidrs: ["127.0.0.0/8", "::1/128"]
}

interface Circumstances {
  readonly variables?: { readonly [name: string]: string }
  readonly settings?: Partial<Settings>
  readonly declaration?: Partial<ServerDeclaration>
  readonly approved?: boolean
  readonly forms?: boolean
  readonly looking?: boolean
}

/** Admits and explains one remote server. */
const judged = (endpoint: Partial<RemoteEndpoint>, given: Circumstances = {}) => {
  const entry = declared("r", { endpoint: remote(endpoint), ...given.declaration })
  const fake = {
    servers: {},
    entries: [entry],
    variables: given.variables ?? {},
    snapshot: { settings: { ...defaultSettings, web: loopbackWeb, ...given.settings } }
  }
  return Effect.gen(function* () {
    const admission = yield* Admission
    const snapshot = yield* Effect.flatMap(Configuration, ({ load }) => load)
    const facts = { snapshot, networkApproved: given.approved ?? false }
    const verdicts = yield* admission.explain(entry, facts)
    return { verdicts, outcome: yield* Effect.either(admission.admit(entry, facts)) }
  }).pipe(
    Effect.provide(
      layer(fake).pipe(
        Layer.provide(
          Layer.succeed(ClientFeatures, {
            forms: given.forms ?? false,
            urls: false,
            ...(given.looking === undefined ? {} : { looking: given.looking })
          })
        )
      )
    )
  )
}

const admitted = (endpoint: Partial<RemoteEndpoint>, given?: Circumstances) =>
  Effect.map(judged(endpoint, given), ({ outcome, verdicts }) => {
    if (outcome._tag === "Left") return assert.fail(outcome.left.text)
    const { plan } = outcome.right
    if (plan._tag !== "remote") return assert.fail("the plan of a process")
    return { ...outcome.right, plan, verdicts }
  })

/** Where and why it was refused. */
const refused = (endpoint: Partial<RemoteEndpoint>, given?: Circumstances) =>
  Effect.map(judged(endpoint, given), ({ outcome, verdicts }) => {
    if (outcome._tag === "Right") return assert.fail("admitted")
    const { code, fix, reason, text, where } = outcome.left
    const gate = verdicts.find(({ verdict }) => verdict === "refuse")
    assert.equal(gate?.why, text)
    return { gate: gate?.gate, code, reason, text, fix, field: where?.field }
  })

const whyOf = (verdicts: ReadonlyArray<Verdict>, gate: Verdict["gate"]) =>
  verdicts.find((verdict) => verdict.gate === gate)?.why

describe("headers of a remote server", () => {
  it.effect("come from the entry and from variables, and only credentials are secrets", () =>
    Effect.gen(function* () {
      const { grants, plan, secrets } = yield* admitted(
        {
          headers: { "X-Client": "sigil", "X-Tenant": "${TENANT}" },
          envHeaders: { "X-Api-Key": "KEY" },
          bearerTokenEnvVar: "TOKEN"
        },
        { variables: { TENANT: "tenant-17", KEY: "key-0123456789", TOKEN } }
      )
      assert.deepEqual(
        plan.headers.map(({ credential, name, value }) => [name, Redacted.value(value), credential]),
        [
          ["X-Client", "sigil", false],
          ["X-Tenant", "tenant-17", true],
          ["X-Api-Key", "key-0123456789", true],
          ["Authorization", `Bearer ${TOKEN}`, true]
        ]
      )
      assert.deepEqual(grants, ["KEY", "TOKEN"])
      assert.sameMembers([...secrets], ["tenant-17", "key-0123456789", TOKEN, `Bearer ${TOKEN}`])
    })
  )

  it.effect("are never printed with their values", () =>
    Effect.gen(function* () {
      const { plan, verdicts } = yield* admitted(
        { url: "https://mcp.example.test/${TOKEN}/mcp?key=${TOKEN}", headers: { Authorization: "Bearer ${TOKEN}" } },
        { variables: { TOKEN } }
      )
      assert.include(plan.url, TOKEN)
      assert.notInclude(JSON.stringify([verdicts, plan.headers]), TOKEN)
      assert.equal(
        whyOf(verdicts, "executable"),
        "streamable_http to https://mcp.example.test, with the headers Authorization"
      )
      assert.equal(whyOf(verdicts, "credential"), "sent in Authorization")
    })
  )

  it.effect("name a host that a variable holds by the variable", () =>
    Effect.gen(function* () {
      const where = (url: string) =>
        Effect.map(admitted({ url }, { variables: { HOST: TOKEN, BASE: `https://${TOKEN}/x` } }), ({ verdicts }) =>
          whyOf(verdicts, "executable")
        )
      assert.equal(yield* where("https://${HOST}:8443/mcp"), "streamable_http to https://${HOST}:8443")
      assert.equal(yield* where("${BASE}/mcp"), "streamable_http to the address in BASE")
    })
  )

  const faults: ReadonlyArray<
    readonly [
      what: string,
      endpoint: Partial<RemoteEndpoint>,
      variables: { readonly [name: string]: string },
      code: string,
      reason: string,
      field: string,
      said: string
    ]
  > = [
    [
      "a bearer variable that is not set",
      { bearerTokenEnvVar: "T" },
      {},
      "SIGIL_MISSING_GRANT",
      "authentication_required",
      "bearer_token_env_var",
      "T (bearer_token_env_var)"
    ],
    [
      "a sensitive header without its variable",
      { envHeaders: { "X-Auth_Token": "T" } },
      {},
      "SIGIL_MISSING_GRANT",
      "authentication_required",
      "env_http_headers.X-Auth_Token",
      "T (env_http_headers.X-Auth_Token)"
    ],
    [
      "another header without its variable",
      { envHeaders: { "X-Tenant": "T" } },
      {},
      "SIGIL_MISSING_GRANT",
      "configuration_invalid",
      "env_http_headers.X-Tenant",
      "T (env_http_headers.X-Tenant)"
    ],
    [
      "several missing ones, all named",
      { envHeaders: { "X-Tenant": "A", "X-Secret": "B" }, bearerTokenEnvVar: "C" },
      {},
      "SIGIL_MISSING_GRANT",
      "authentication_required",
      "env_http_headers.X-Tenant",
      "A (env_http_headers.X-Tenant), B (env_http_headers.X-Secret), C (bearer_token_env_var)"
    ],
    [
      "an empty value",
      { envHeaders: { "X-Tenant": "T" } },
      { T: "" },
      "SIGIL_CONFIG_INVALID",
      "configuration_invalid",
      "env_http_headers.X-Tenant",
      "the value is empty (from T)"
    ],
    [
      "an empty token",
      { bearerTokenEnvVar: "T" },
      { T: " " },
      "SIGIL_CONFIG_INVALID",
      "configuration_invalid",
      "bearer_token_env_var",
      "the value is empty (from T)"
    ],
    [
      "an empty literal",
      { headers: { "X-Tenant": "" } },
      {},
      "SIGIL_CONFIG_INVALID",
      "configuration_invalid",
      "headers.X-Tenant",
      "the value is empty"
    ],
    [
      "a line break that smuggles a header",
      { bearerTokenEnvVar: "T" },
      { T: "a\r\nX-Evil: 1" },
      "SIGIL_CONFIG_INVALID",
      "configuration_invalid",
      "bearer_token_env_var",
      "a line break or another control character (from T)"
    ],
    [
      "a tab",
      { envHeaders: { "X-Tenant": "T" } },
      { T: "a\tb" },
      "SIGIL_CONFIG_INVALID",
      "configuration_invalid",
      "env_http_headers.X-Tenant",
      "control character"
    ],
    [
      "what no header can carry",
      { envHeaders: { "X-Tenant": "T" } },
      { T: "a→b" },
      "SIGIL_CONFIG_INVALID",
      "configuration_invalid",
      "env_http_headers.X-Tenant",
      "a character that a header cannot carry (from T)"
    ],
    [
      "too much together",
      { envHeaders: { "X-A": "T", "X-B": "T" } },
      { T: "a".repeat(17_000) },
      "SIGIL_CONFIG_INVALID",
      "configuration_invalid",
      "env_http_headers.X-A",
      "34006 bytes together"
    ],
    ...[
      "Cookie",
      "Proxy-Authorization",
      "Origin",
      "User-Agent",
      "Referer",
      "Last-Event-ID",
      "Transfer-Encoding",
      "Mcp-Method",
      "Mcp-Param-Region",
      "Sec-WebSocket-Key"
    ].map(
      (name) =>
        [
          `the transport's own ${name}`,
          { envHeaders: { [name]: "T" } },
          { T: "a" },
          "SIGIL_CONFIG_INVALID",
          "configuration_invalid",
          `env_http_headers.${name}`,
          "sigil sets or withholds this header itself"
        ] as const
    )
  ]
  for (const [what, endpoint, variables, code, reason, field, said] of faults)
    it.effect(`refuse ${what}`, () =>
      Effect.gen(function* () {
        const refusal = yield* refused(endpoint, { variables })
        assert.deepEqual(
          { gate: refusal.gate, code: refusal.code, reason: refusal.reason, field: refusal.field },
          { gate: "grants", code, reason, field }
        )
        assert.include(refusal.text, said)
        for (const value of Object.values(variables))
          if (value.length > 3) assert.notInclude(JSON.stringify(refusal), value)
      })
    )

  it.effect("are not sent as templates where they are credentials, whatever missing_env says", () =>
    Effect.gen(function* () {
      const mcp = { missingEnv: "literal" } as const
      const { code, reason } = yield* refused({ headers: { "X-Api-Key": "${K}" } }, { settings: { mcp } })
      assert.deepEqual([code, reason], ["SIGIL_MISSING_GRANT", "authentication_required"])
      const { plan } = yield* admitted({ headers: { "X-Tenant": "${K}" } }, { settings: { mcp } })
      assert.deepEqual(
        plan.headers.map(({ value }) => Redacted.value(value)),
        ["${K}"]
      )
    })
  )

  it.effect("bind the server to their variables as they are now", () =>
    Effect.gen(function* () {
      const variables: { [name: string]: string } = { TOKEN, TENANT: "tenant-17" }
      const { environment } = yield* admitted(
        { headers: { "X-Tenant": "${TENANT}" }, bearerTokenEnvVar: "TOKEN" },
        {
          get variables() {
            return variables
          }
        }
      )
      assert.isUndefined(environment.changed())
      variables["TENANT"] = "tenant-18"
      assert.equal(environment.changed(), "TENANT")
      variables["TENANT"] = "tenant-17"
      delete variables["TOKEN"]
      assert.equal(environment.changed(), "TOKEN")
    })
  )
})

describe("the address of a remote server", () => {
  it.effect("goes into the plan with the rules of [web]", () =>
    Effect.gen(function* () {
      const web = {
        ...defaultSettings.web,
        enabled: false,
        proxyMode: "direct" as const,
        connectTimeoutSecs: 7,
        allowedPrivateHosts: ["127.0.0.1"],
        allowedPrivateCidrs: ["127.0.0.0/8"],
        blockedDomains: ["bad.test"],
        allowedDomains: ["good.test", "127.0.0.1"]
      }
      const { coverage, plan, verdicts } = yield* admitted(
        { url: "ws://127.0.0.1:4000/x?y=1", transport: "ws" },
        { settings: { web } }
      )
      assert.deepEqual(plan, {
        _tag: "remote",
        transport: "ws",
        url: "ws://127.0.0.1:4000/x?y=1",
        shown: "ws://127.0.0.1:4000",
        headers: [],
        rules: {
          allowedPrivateHosts: ["127.0.0.1"],
          allowedPrivateCidrs: ["127.0.0.0/8"],
          blockedDomains: ["bad.test"],
          allowedDomains: ["good.test", "127.0.0.1"]
        },
        proxyMode: "direct",
        connectTimeoutMs: 7_000
      })
      assert.equal(coverage?.label, "external MCP; local sandbox does not apply")
      assert.equal(whyOf(verdicts, "executable"), "ws to ws://127.0.0.1:4000")
      assert.equal(whyOf(verdicts, "credential"), "no credential is needed")
    })
  )

  for (const url of [
    "http://localhost:1/m",
    "http://LOCALHOST/m",
    "http://127.0.0.1/m",
    "http://127.1/m",
    "http://[::1]:9/m"
  ])
    it.effect(`may be this machine without encryption: ${url}`, () => Effect.asVoid(admitted({ url })))

  for (const url of [
    "http://mcp.example.test/m",
    "http://10.0.0.1/m",
    "http://localhost.example.test/m",
    "http://app.localhost/m",
    "http://127.0.0.1.example.test/m",
    "http://0.0.0.0/m",
    "http://[::ffff:127.0.0.1]/m"
  ])
    it.effect(`may be no other one without encryption: ${url}`, () =>
      Effect.gen(function* () {
        const { code, field, gate, reason } = yield* refused({ url })
        assert.deepEqual([gate, code, reason, field], ["executable", "SIGIL_NETWORK_REFUSED", "not_encrypted", "url"])
      })
    )

  const credentials: ReadonlyArray<readonly [what: string, endpoint: Partial<RemoteEndpoint>]> = [
    ["a token", { bearerTokenEnvVar: "TOKEN" }],
    ["any header from a variable", { envHeaders: { "X-Tenant": "TOKEN" } }],
    ["a template in a header", { headers: { "X-Tenant": "${TOKEN}" } }],
    ["a literal under a sensitive name", { headers: { "X-Service-Credential": "abc" } }],
    ["a token in the URL", { url: "http://127.0.0.1/mcp?key=${TOKEN}" }],
    ["any variable behind host and port", { url: "http://127.0.0.1/${TENANT}/mcp" }]
  ]
  for (const [what, endpoint] of credentials)
    it.effect(`never takes ${what} without encryption, not even on this machine`, () =>
      Effect.gen(function* () {
        const { code, fix, gate, reason, text } = yield* refused(
          { url: "http://127.0.0.1/mcp", ...endpoint },
          { variables: { TOKEN, TENANT: TOKEN } }
        )
        assert.deepEqual([gate, code, reason], ["executable", "SIGIL_CONFIG_INVALID", "configuration_invalid"])
        assert.notInclude(`${text}${fix}`, TOKEN)
      })
    )

  it.effect("is refused with the lines that would admit it, before anything is dialled", () =>
    Effect.gen(function* () {
      const refusal = yield* refused({ url: "http://localhost:1/m" }, { settings: { web: defaultSettings.web } })
      assert.deepEqual([refusal.gate, refusal.code], ["executable", "SIGIL_NETWORK_REFUSED"])
      assert.include(refusal.fix, 'allowed_private_hosts = ["localhost"]')
      assert.include(refusal.fix, "allowed_private_cidrs")
    })
  )

  it.effect("is shown without what variables put into its host, whatever letters it is written in", () =>
    Effect.gen(function* () {
      const variables = { TENANT: "Lower-Sekret-0123456789" }
      const { declaration, plan } = yield* admitted({ url: "https://${TENANT}.example.test/mcp" }, { variables })
      assert.equal(plan.url, "https://Lower-Sekret-0123456789.example.test/mcp")
      assert.equal(plan.shown, "https://${TENANT}.example.test")
      const hidden = secretsOf(declaration, { get: (name) => (name === "TENANT" ? variables.TENANT : undefined) })
      assert.deepEqual(hidden, ["Lower-Sekret-0123456789", "lower-sekret-0123456789"])
    })
  )

  it.effect("may have a variable for its port without encryption", () =>
    Effect.map(admitted({ url: "http://127.0.0.1:${PORT}/mcp" }, { variables: { PORT: "4000" } }), ({ plan }) =>
      assert.equal(plan.url, "http://127.0.0.1:4000/mcp")
    )
  )
})

describe("the network policy and a remote server", () => {
  const modes: ReadonlyArray<readonly [Settings["networkMode"], approved: boolean, reason: string | undefined]> = [
    ["allow", false, undefined],
    ["ask", false, "network_approval_required"],
    ["ask", true, undefined],
    ["deny", false, "network_denied"],
    ["deny", true, "network_denied"]
  ]
  for (const [networkMode, approved, reason] of modes)
    it.effect(`${networkMode}, ${approved ? "approved" : "not approved"}: ${reason ?? "passes"}`, () =>
      Effect.gen(function* () {
        const given = { settings: { networkMode }, approved }
        if (reason === undefined) return yield* Effect.asVoid(admitted({}, given))
        const refusal = yield* refused({}, given)
        assert.deepEqual([refusal.gate, refusal.code, refusal.reason], ["network", "SIGIL_NETWORK_REFUSED", reason])
      })
    )
})

describe("a remote server that may ask for input", () => {
  it.effect("is refused where nobody can answer", () =>
    Effect.gen(function* () {
      const { code, field, fix, gate, reason } = yield* refused({ clientCapabilities: ["elicitation"] })
      assert.deepEqual(
        [gate, code, reason, field],
        ["credential", "SIGIL_INPUT_REQUIRED", "elicitation_unavailable", "client_capabilities"]
      )
      assert.match(fix ?? "", /--answers FILE.*terminal/)
    })
  )
  it.effect("passes where nothing is called", () =>
    Effect.asVoid(admitted({ clientCapabilities: ["elicitation"] }, { looking: true }))
  )
  it.effect("passes where somebody can, and one that asks for roots only passes anywhere", () =>
    Effect.zipRight(
      admitted({ clientCapabilities: ["elicitation"] }, { forms: true }),
      Effect.asVoid(admitted({ clientCapabilities: ["roots"] }))
    )
  )
})

describe("a remote server that a program declares", () => {
  const entry: RemoteEntry = {
    url: "https://mcp.example.test/mcp",
    transport: "sse",
    headers: { "X-Tenant": "${TENANT}" },
    envHttpHeaders: { "X-Api-Key": "KEY" },
    bearerTokenEnvVar: "TOKEN",
    clientCapabilities: ["roots"],
    onTimeout: "close"
  }
  const wanted = {
    transport: "sse",
    url: "https://mcp.example.test/mcp",
    headers: { "X-Tenant": "${TENANT}" },
    envHeaders: { "X-Api-Key": "KEY" },
    bearerTokenEnvVar: "TOKEN",
    clientCapabilities: ["roots"]
  }
  it.effect("is what its keys say, at the start and later", () =>
    Effect.gen(function* () {
      const registry = yield* Registry
      yield* registry.declare("later", entry)
      for (const name of ["first", "later"]) {
        const found = yield* registry.find(name)
        if (found._tag === "Broken") return assert.fail(found.broken.error.text)
        const { endpoint, onTimeout, scope } = found.declaration
        assert.deepInclude(
          { ...endpoint, headers: { ...(endpoint._tag === "remote" ? endpoint.headers : {}) } },
          wanted
        )
        assert.deepEqual([scope, onTimeout], ["dynamic", "close"])
      }
      const refusal = yield* Effect.flip(registry.activate("later"))
      assert.deepEqual([refusal.code, refusal.reason], ["SIGIL_MISSING_VARIABLE", "missing_variable"])
    }).pipe(Effect.provide(Library.layerTest({ servers: { first: entry } })))
  )
})

describe("what doctor says of a remote server", () => {
  it.effect("its transport and variables; forms are no matter of a run that only looks", () =>
    Effect.gen(function* () {
      const of = (endpoint: Partial<RemoteEndpoint>) =>
        Effect.map(judged(endpoint, { variables: { TOKEN }, looking: true }), ({ verdicts }) =>
          checkServer(declared("r", { endpoint: remote(endpoint) }), verdicts)
        )
      const [fine] = yield* of({ bearerTokenEnvVar: "TOKEN" })
      assert.match(fine?.message ?? "", /^transport=streamable_http, .*grants=TOKEN$/)
      const [forms] = yield* of({ clientCapabilities: ["elicitation"] })
      assert.deepEqual([forms?.code, forms?.status], ["mcp:server", "ok"])
    })
  )
})

describe("the pin of a remote server", () => {
  const pinned = (transportFingerprint: string) => ({
    trust: {
      trustClass: "self_hosted" as const,
      approvalDefault: "allow" as const,
      egressLogging: true,
      allowSecrets: false,
      pinVersion: true,
      pinned: { transportFingerprint, protocolVersion: "2025-11-25", serverName: "fake", serverVersion: "1.0.0" }
    }
  })
  const variables = { TOKEN, OTHER: TOKEN }
  const base = {
    url: "https://mcp.example.test:443/mcp",
    headers: { "X-Client": "sigil" },
    envHeaders: { "X-Tenant": "TOKEN" },
    bearerTokenEnvVar: "TOKEN"
  }
  /** What `mcp pin` would find. */
  const observed = (endpoint: Partial<RemoteEndpoint>, given: { readonly [name: string]: string } = variables) =>
    withFakes({
      servers: { r: fakeServer({ tools: [tool("t")] }) },
      entries: [declared("r", { endpoint: remote(endpoint) })],
      variables: given
    })(
      Effect.flatMap(Registry, (registry) => registry.activate("r", { observePin: true })).pipe(
        Effect.map(({ launchFingerprint }) => launchFingerprint)
      )
    )

  it.effect("is found by starting it once, and counts from then on", () =>
    Effect.gen(function* () {
      const fingerprint = (yield* observed(base)) ?? ""
      assert.match(fingerprint, /^sha256:[0-9a-f]{64}$/)
      const { verdicts } = yield* admitted(base, { variables, declaration: pinned(fingerprint) })
      assert.equal(whyOf(verdicts, "pin_and_lock"), `launch is as pinned: ${fingerprint}`)
      const { code, gate, reason, text } = yield* refused(
        { ...base, url: "https://mcp.example.test/other" },
        { variables, declaration: pinned(fingerprint) }
      )
      assert.deepEqual([gate, code, reason], ["pin_and_lock", "SIGIL_PIN_MISMATCH", "launch_pin"])
      assert.match(text, /sha256:/)
    })
  )

  it.effect("covers what the entry says and no value of a variable", () =>
    Effect.gen(function* () {
      const fingerprint = yield* observed(base)
      assert.equal(yield* observed(base, { TOKEN: "another-0123456789" }), fingerprint)
      assert.equal(yield* observed({ ...base, url: "https://MCP.example.test/mcp" }), fingerprint)
      const others: ReadonlyArray<Partial<RemoteEndpoint>> = [
        { transport: "sse" },
        { url: "https://mcp.example.test/mcp/" },
        { headers: { "X-Client": "other" } },
        { headers: {} },
        { envHeaders: { "X-Tenant": "OTHER" } },
        { bearerTokenEnvVar: "OTHER" },
        { clientCapabilities: ["roots"] }
      ]
      const all = yield* Effect.forEach(others, (more) => observed({ ...base, ...more }))
      assert.equal(new Set([fingerprint, ...all]).size, others.length + 1)
    })
  )
})

describe("a start of a remote server", () => {
  it.effect("is put on record as one, and hands the plan to the transport", () =>
    Effect.gen(function* () {
      const records: Array<AuditRecord> = []
      const opened: Array<MemoryLink> = []
      yield* withFakes({
        servers: {
          r: (link) => {
            opened.push(link)
            return fakeServer({ tools: [tool("t")] })(link)
          }
        },
        entries: [declared("r", { endpoint: remote({ bearerTokenEnvVar: "TOKEN" }) })],
        variables: { TOKEN },
        records
      })(Effect.flatMap(Registry, (registry) => registry.activate("r")))
      assert.equal(opened[0]?.request.plan._tag, "remote")
      const lifecycle = JSON.stringify(records.filter(({ kind }) => kind === "extension_process_lifecycle_recorded"))
      assert.include(lifecycle, '"process_kind":"mcp_remote"')
      assert.include(lifecycle, '"mcp_environment_grant_names":"TOKEN"')
      assert.notInclude(JSON.stringify(records), TOKEN)
    })
  )

  it.effect("resolves nothing and opens no socket before it is admitted", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const hook = createHook({
        init: (_, type) => {
          if (/TCP|UDP|TLS|PIPE|GETADDRINFO|GETNAMEINFO|QUERY/.test(type)) seen.push(type)
        }
      })
      yield* Effect.acquireUseRelease(
        Effect.sync(() => hook.enable()),
        () =>
          Effect.gen(function* () {
            yield* admitted({ url: "https://localhost:1/mcp", bearerTokenEnvVar: "TOKEN" }, { variables: { TOKEN } })
            yield* admitted({ url: "https://mcp.example.test/mcp" })
            yield* admitted({ url: "http://127.0.0.1:1/mcp" })
            assert.deepEqual(seen, [])
            // The hook does see such a thing.
            yield* Effect.promise(() => dns.promises.lookup("127.0.0.1").catch(() => undefined))
            yield* Effect.promise(() => dns.promises.lookup("localhost").catch(() => undefined))
            assert.notDeepEqual(seen, [])
          }),
        () => Effect.sync(() => hook.disable())
      )
    })
  )
})

import { assert, describe, it } from "vitest"
import { broken, json, jsonEntry, toml, tomlEntry, valid } from "./Support.ts"

/** TOML bodies after `[[mcp_servers]]` and `name = "s"`, with the field, line and column of the first fault. */
const tomlFaults: ReadonlyArray<readonly [lines: ReadonlyArray<string>, field: string, line: number, column: number]> =
  [
    [[], "mcp_servers[0].transport", 1, 1],
    [['transport = "pipe"'], "mcp_servers[0].transport", 3, 13],
    [['transport = "stdio"'], "mcp_servers[0].command", 1, 1],
    [['transport = "stdio"', 'command = " "'], "mcp_servers[0].command", 4, 11],
    [['transport = "stdio"', 'command = "x"', "args = 1"], "mcp_servers[0].args", 5, 8],
    [['transport = "stdio"', 'command = "x"', 'args = ["a", 2]'], "mcp_servers[0].args[1]", 5, 14],
    [['transport = "stdio"', 'command = "x"', 'inherit_env = ["OK", "1BAD"]'], "mcp_servers[0].inherit_env[1]", 5, 22],
    [['transport = "stdio"', 'command = "x"', 'url = "https://h/"'], "mcp_servers[0].url", 5, 1],
    [['transport = "stdio"', 'command = "x"', "colour = 1"], "mcp_servers[0].colour", 5, 1],
    [
      ['transport = "stdio"', 'command = "x"', "startup_timeout_secs = 0"],
      "mcp_servers[0].startup_timeout_secs",
      5,
      24
    ],
    [
      ['transport = "stdio"', 'command = "x"', "startup_timeout_secs = 1.5"],
      "mcp_servers[0].startup_timeout_secs",
      5,
      24
    ],
    [['transport = "stdio"', 'command = "x"', 'startup = "later"'], "mcp_servers[0].startup", 5, 11],
    [['transport = "stdio"', 'command = "x"', "required = 1"], "mcp_servers[0].required", 5, 12],
    [['transport = "stdio"', 'command = "x"', "shutdown_grace_ms = 10001"], "mcp_servers[0].shutdown_grace_ms", 5, 21],
    [['transport = "stdio"', 'command = "x"', "retries = -1"], "mcp_servers[0].retries", 5, 11],
    [['transport = "stdio"', 'command = "x"', 'protocol = "2020-01-01"'], "mcp_servers[0].protocol", 5, 12],
    [['transport = "stdio"', 'command = "x"', 'env = { "A B" = "x" }'], 'mcp_servers[0].env["A B"]', 5, 9],
    [['transport = "stdio"', 'command = "x"', "env = { A = 1 }"], "mcp_servers[0].env.A", 5, 13],
    [
      ['transport = "stdio"', 'command = "x"', 'env = { SIGIL_GENERATION = "x" }'],
      "mcp_servers[0].env.SIGIL_GENERATION",
      5,
      9
    ],
    [['transport = "stdio"', 'command = "x"', "tool_timeouts = { t = true }"], "mcp_servers[0].tool_timeouts.t", 5, 23],
    [
      ['transport = "stdio"', 'command = "x"', "[mcp_servers.trust]", 'trust_class = "mine"'],
      "mcp_servers[0].trust.trust_class",
      6,
      15
    ],
    [
      ['transport = "stdio"', 'command = "x"', "[mcp_servers.trust]", "pin_version = true"],
      "mcp_servers[0].trust.pinned",
      5,
      1
    ],
    [
      ['transport = "stdio"', 'command = "x"', "[mcp_servers.trust]", 'color = "x"'],
      "mcp_servers[0].trust.color",
      6,
      1
    ],
    [
      [
        'transport = "stdio"',
        'command = "x"',
        "[mcp_servers.trust]",
        "pin_version = true",
        "[mcp_servers.trust.pinned]",
        'command_fingerprint = "sha256:0"'
      ],
      "mcp_servers[0].trust.pinned.transport_fingerprint",
      7,
      1
    ],
    [['transport = "streamable_http"'], "mcp_servers[0].url", 1, 1],
    [['transport = "streamable_http"', 'url = "ftp://h/"'], "mcp_servers[0].url", 4, 7],
    [['transport = "streamable_http"', 'url = "https://u:p@h/"'], "mcp_servers[0].url", 4, 7],
    [['transport = "streamable_http"', 'url = "https://h/#x"'], "mcp_servers[0].url", 4, 7],
    [['transport = "streamable_http"', 'url = "https://h/"', 'command = "x"'], "mcp_servers[0].command", 5, 1],
    [
      ['transport = "streamable_http"', 'url = "https://h/"', 'http_headers = { Host = "x" }'],
      "mcp_servers[0].http_headers.Host",
      5,
      18
    ],
    [
      ['transport = "streamable_http"', 'url = "https://h/"', 'http_headers = { X-Api-Key = "abc" }'],
      "mcp_servers[0].http_headers.X-Api-Key",
      5,
      18
    ],
    [
      [
        'transport = "streamable_http"',
        'url = "https://h/"',
        'bearer_token_env_var = "T"',
        'env_http_headers = { authorization = "T" }'
      ],
      "mcp_servers[0].env_http_headers.authorization",
      6,
      22
    ],
    [['transport = "streamable_http"', 'url = "http://h/"', 'bearer_token_env_var = "T"'], "mcp_servers[0].url", 4, 7],
    [
      ['transport = "streamable_http"', 'url = "https://h/"', 'client_capabilities = ["roots", "roots"]'],
      "mcp_servers[0].client_capabilities[1]",
      5,
      33
    ],
    [
      ['transport = "streamable_http"', 'url = "https://h/"', 'bearer_token_env_var = "T"', "[mcp_servers.oauth]"],
      "mcp_servers[0].oauth",
      6,
      1
    ]
  ]

/** Bodies of `{"mcpServers":{"s":BODY}}`; the body starts at column 20. */
const jsonFaults: ReadonlyArray<readonly [body: string, field: string, column: number]> = [
  ["[]", "mcpServers.s", 20],
  ["{}", "mcpServers.s", 20],
  ['{"transport":"pipe"}', "mcpServers.s.transport", 33],
  ['{"type":"pipe"}', "mcpServers.s.type", 28],
  ['{"command":7}', "mcpServers.s.command", 31],
  ['{"command":"x","args":"-y"}', "mcpServers.s.args", 42],
  ['{"command":"x","timeout":"5"}', "mcpServers.s.timeout", 45],
  ['{"command":"x","env":{"A":1}}', "mcpServers.s.env.A", 46],
  ['{"command":"x","auth":"sid-backend"}', "mcpServers.s.auth", 35],
  ['{"command":"x","command":"y"}', "mcpServers.s.command", 35],
  ['{"command":"x","inheritEnv":["A"],"inherit_env":["B"]}', "mcpServers.s.inherit_env", 54],
  ['{"command":"x","env":{"A":"1","A":"2"}}', "mcpServers.s.env.A", 50],
  ['{"transport":"sse"}', "mcpServers.s.url", 20]
]

describe("faults of TOML entries", () => {
  it.each(tomlFaults)("%j", (lines, field, line, column) => {
    const { error } = broken(tomlEntry(...lines))
    assert.deepEqual(error.where, { file: "/f/sigil.toml", line, column, field, server: "s" })
    assert.isTrue(error.text.startsWith(field), error.text)
  })

  it("reports every fault, not only the first", () => {
    const { error } = broken(tomlEntry('transport = "stdio"', 'command = "x"', "args = 1", "nope = 2"))
    assert.deepEqual(error.details?.["further"], [
      { field: "mcp_servers[0].nope", line: 6, column: 1, text: "a server entry has no key of this name" }
    ])
  })

  it("an entry without a usable name becomes a problem", () => {
    const { entries, problems } = toml(
      '[[mcp_servers]]\ntransport = "stdio"\ncommand = "x"\n[[mcp_servers]]\nname = 1\n'
    )
    assert.deepEqual(entries, [])
    assert.deepEqual(
      problems.map(({ where }) => [where?.field, where?.line]),
      [
        ["mcp_servers[0].name", 1],
        ["mcp_servers[1].name", 5]
      ]
    )
  })

  it.each(["", " ", " a", "a ", "builtin:x", "a\\nb"])("refuses the name %j", (name) => {
    const decoded = toml(`[[mcp_servers]]\nname = "${name}"\ntransport = "stdio"\ncommand = "x"\n`)
    assert.strictEqual(broken(decoded.entries[0]).error.where?.field, "mcp_servers[0].name")
  })
})

describe("faults of JSON entries", () => {
  it.each(jsonFaults)("%s", (body, field, column) => {
    const { error } = broken(jsonEntry(body))
    assert.deepEqual(error.where, { file: "/p/.mcp.json", line: 1, column, field, server: "s" })
  })

  it("settings.json needs the transport and says which", () => {
    assert.include(broken(jsonEntry('{"command":"x"}', "user", false)).error.text, '"transport": "stdio"')
    assert.include(broken(jsonEntry('{"url":"https://h/"}', "user", false)).error.text, '"transport": "http"')
    assert.include(broken(jsonEntry('{"url":"wss://h/"}', "user", false)).error.text, '"transport": "ws"')
    assert.include(
      broken(toml('[[mcp_servers]]\nname = "s"\nurl = "wss://h/"\n').entries[0]).error.text,
      'transport = "ws"'
    )
    assert.include(
      broken(jsonEntry('{"type":"sse","url":"https://h/"}', "user", false)).error.text,
      '"transport": "sse"'
    )
    valid(jsonEntry('{"transport":"stdio","command":"x"}', "user", false))
  })

  it("one broken entry of five costs one", () => {
    const { entries, problems } = json(
      '{"mcpServers":{"a":{"command":"a"},"b":{"command":"b"},"c":{"command":false},"d":{"command":"d"},"e":{"url":"https://h/"}}}',
      "local"
    )
    assert.deepEqual(problems, [])
    assert.deepEqual(
      entries.map(({ _tag }) => _tag),
      ["Valid", "Valid", "Broken", "Valid", "Valid"]
    )
  })

  it("a name that is written twice in one object is refused, the others run", () => {
    const { entries } = json('{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"},"a":{"command":"z"}}}', "local")
    assert.deepEqual(
      entries.map(({ _tag }) => _tag),
      ["Broken", "Valid"]
    )
    assert.strictEqual(broken(entries[0]).error.code, "SIGIL_DUPLICATE_NAME")
  })

  it("never repeats a value that looks like a secret", () => {
    for (const body of [
      '{"command":"x","startup":"ghp_abcdefghijklmnopqrstuvwxyz0123456789"}',
      '{"url":"https://user:hunter2@h/"}',
      '{"url":"https://h/","headers":{"X-A":"line\\nghp_abcdefghijklmnopqrstuvwxyz0123456789"}}'
    ]) {
      const { error } = broken(jsonEntry(body))
      assert.notMatch(JSON.stringify([error.text, error.details]), /ghp_|hunter2/)
    }
  })

  it.each(['{"mcpServers":[]}', "[1]", '{"mcpServers":{},"mcp_servers":{}}'])("the file %s has a problem", (text) => {
    const { entries, problems } = json(text)
    assert.deepEqual(entries, [])
    assert.lengthOf(problems, 1)
  })
})

describe("what entries decode to", () => {
  it("takes the three shapes of a JSON file", () => {
    for (const text of [
      '{"mcpServers":{"a":{"command":"x"}}}',
      '{"mcp_servers":{"a":{"command":"x"}}}',
      '{"a":{"command":"x"}}'
    ])
      assert.strictEqual(valid(json(text).entries[0]).name, "a")
  })

  it.each([
    ['{"command":"x"}', "stdio"],
    ['{"url":"https://h/"}', "streamable_http"],
    ['{"type":"streamable-http","url":"https://h/"}', "streamable_http"],
    ['{"type":"sse","url":"https://h/"}', "sse"],
    ['{"transport":"ws","type":"sse","url":"wss://h/"}', "ws"],
    ['{"transport":"","url":"https://h/"}', "streamable_http"],
    ['{"url":"wss://h/"}', "ws"],
    ['{"url":"WS://localhost:1/"}', "ws"],
    ['{"url":"${ANY}"}', "streamable_http"],
    ['{"transport":"http-json","url":"https://h/"}', "http-json"]
  ])("infers the transport of %s", (body, transport) => {
    const { endpoint } = valid(jsonEntry(body))
    assert.strictEqual(endpoint._tag === "stdio" ? "stdio" : endpoint.transport, transport)
  })

  it("fills in the defaults of both formats", () => {
    const fromToml = valid(tomlEntry('transport = "stdio"', 'command = "x"'))
    const fromJson = valid(jsonEntry('{"command":"x"}'))
    const pick = (d: typeof fromToml) => [
      d.startupTimeoutMs,
      d.toolTimeoutMs,
      d.toolTimeoutMaxMs,
      d.required,
      d.startup,
      d.retries
    ]
    assert.deepEqual(pick(fromToml), [10_000, 30_000, undefined, true, "eager", 2])
    assert.deepEqual(pick(fromJson), [30_000, 120_000, undefined, false, "eager", 2])
    for (const d of [fromToml, fromJson]) {
      assert.deepEqual(d.trust, {
        trustClass: "self_hosted",
        approvalDefault: "ask",
        egressLogging: true,
        allowSecrets: false,
        pinVersion: false
      })
      assert.deepEqual(
        [
          d.enabled,
          d.onTimeout,
          d.restart,
          d.refresh,
          d.shutdownGraceMs,
          d.stdoutNoise,
          d.protocol,
          d.isolation,
          d.share,
          d.envMode
        ],
        [true, "close", "on_failure", "overlap", 500, "refuse", "auto", "none", "all", "isolated"]
      )
      assert.deepEqual(d.unsupported, [])
    }
  })

  it.each([
    ['{"command":"npx"}', 60_000, 120_000],
    ['{"command":"/usr/bin/uvx"}', 60_000, 120_000],
    ['{"command":"C:\\\\n\\\\npx.cmd"}', 60_000, 120_000],
    ['{"command":"npx","startupTimeoutSecs":5}', 5_000, 120_000],
    ['{"command":"npx","timeout":7000}', 7_000, 7_000],
    ['{"command":"x","timeout":0}', 30_000, 30_000],
    ['{"command":"x","timeout":-5}', 30_000, 30_000],
    ['{"command":"x","timeout":7000,"tool_timeout_secs":9}', 7_000, 9_000],
    ['{"command":"x","timeout":1e12}', 86_400_000, 86_400_000],
    ['{"command":"x","tool_timeout_secs":0}', 30_000, 30_000]
  ])("counts the deadlines of %s", (body, startup, call) => {
    const declaration = valid(jsonEntry(body))
    assert.deepEqual([declaration.startupTimeoutMs, declaration.toolTimeoutMs], [startup, call])
  })

  it("counts deadlines of single tools in the unit of the file", () => {
    const names = (d: { readonly toolTimeoutsMs: object }) => Object.entries(d.toolTimeoutsMs)
    assert.deepEqual(
      names(valid(tomlEntry('transport = "stdio"', 'command = "x"', "tool_timeouts = { slow = 90, none = 0 }"))),
      [
        ["slow", 90_000],
        ["none", 30_000]
      ]
    )
    const fromJson = valid(jsonEntry('{"command":"x","toolTimeouts":{"slow":9000,"constructor":90}}'))
    assert.deepEqual(names(fromJson), [
      ["slow", 9_000],
      ["constructor", 90]
    ])
    assert.lengthOf(fromJson.warnings, 1)
    assert.strictEqual(fromJson.toolTimeoutsMs["toString"], undefined)
  })

  it("sorts grants and drops repeats", () => {
    const { endpoint } = valid(jsonEntry('{"command":"x","inheritEnv":["B","A","B"],"publicEnv":["P"]}'))
    if (endpoint._tag !== "stdio") assert.fail()
    assert.deepEqual([endpoint.inheritEnv, endpoint.publicEnv], [["A", "B"], ["P"]])
  })

  it("takes prototype names as servers, variables and tools", () => {
    const entries = json(
      '{"mcpServers":{"__proto__":{"command":"x","env":{"__proto__":"1"}},"constructor":{"command":"y"}}}',
      "local"
    ).entries
    assert.deepEqual(
      entries.map((entry) => valid(entry).name),
      ["__proto__", "constructor"]
    )
    const { endpoint } = valid(entries[0])
    if (endpoint._tag !== "stdio") assert.fail()
    assert.deepEqual(Object.entries(endpoint.env), [["__proto__", "1"]])
    assert.strictEqual(
      valid(toml('[[mcp_servers]]\nname = "__proto__"\ntransport = "stdio"\ncommand = "x"\n').entries[0]).name,
      "__proto__"
    )
  })

  it("keeps unknown JSON keys, says so once, and reads foreign ones", () => {
    const declaration = valid(
      jsonEntry('{"command":"x","disabled":true,"alwaysAllow":["a"],"autoApprove":[],"x":1,"y":2}')
    )
    assert.isFalse(declaration.enabled)
    assert.lengthOf(declaration.warnings, 3)
    assert.include(declaration.warnings[2], '"x", "y"')
    assert.deepEqual(Object.keys(declaration.raw), ["command", "disabled", "alwaysAllow", "autoApprove", "x", "y"])
  })

  it("a field of the other kind is a warning in JSON, a fault in TOML", () => {
    assert.lengthOf(valid(jsonEntry('{"command":"x","headers":{}}')).warnings, 1)
    broken(tomlEntry('transport = "stdio"', 'command = "x"', "[mcp_servers.http_headers]"))
  })

  it("a call deadline closes a process and keeps a remote server, unless an entry says otherwise", () => {
    assert.deepEqual(
      ['{"command":"x"}', '{"url":"https://h/"}', '{"url":"https://h/","on_timeout":"close"}'].map(
        (body) => valid(jsonEntry(body)).onTimeout
      ),
      ["close", "keep", "close"]
    )
  })

  it.each([
    ['{"url":"https://h/"}', []],
    ['{"url":"https://h/","oauth":{}}', ["oauth"]],
    ['{"url":"https://h/","auth":"backend"}', ["auth"]],
    ['{"command":"x","isolation":"pidns"}', []],
    ['{"command":"x","share":"per_client"}', ["share"]],
    ['{"command":"x","protocol":"2026-07-28"}', []],
    ['{"command":"x","timeoutMode":"idle"}', []],
    ['{"command":"x","restart":"on_failure"}', []],
    ['{"command":"x","restart":"never"}', []],
    ['{"command":"x","refresh":"exclusive"}', []],
    ['{"command":"x","env_mode":"inherit_all"}', ["env_mode"]],
    ['{"command":"x","on_timeout":"keep","stdout_noise":"skip","cwd":"sub","retries":0}', []]
  ])("says what %s needs that is missing", (body, fields) => {
    assert.deepEqual(
      valid(jsonEntry(body)).unsupported.map(({ field }) => field),
      fields
    )
  })

  it("a literal credential in a header: fault in shared files, warning in one's own", () => {
    const body = '{"url":"https://h/","headers":{"Authorization":"Bearer abc"}}'
    assert.strictEqual(
      broken(json(`{"s":${body}}`, "project", { more: { projectRemote: true } }).entries[0]).error.code,
      "SIGIL_LITERAL_CREDENTIAL"
    )
    assert.lengthOf(valid(jsonEntry(body)).warnings, 1)
    assert.lengthOf(valid(jsonEntry('{"url":"https://h/","headers":{"Authorization":"Bearer ${T}"}}')).warnings, 0)
  })
})

describe("what a repository may not do", () => {
  it.each(["inheritEnv", "inherit_env", "publicEnv", "env_mode", "restart", "on_timeout", "stdout_noise", "protocol"])(
    "%s refuses the entry, even when it is empty",
    (key) => {
      const { error } = broken(jsonEntry(`{"command":"x","${key}":[]}`, "project"))
      assert.strictEqual(error.code, "SIGIL_SCOPE_REFUSED")
      assert.include(error.fix ?? "", "/home/u/.sigil/sigil.toml")
      assert.strictEqual(error.where?.field, `mcpServers.s.${key}`)
    }
  )

  it("a remote server needs the user's permission", () => {
    assert.strictEqual(broken(jsonEntry('{"url":"https://h/"}', "project")).error.code, "SIGIL_SCOPE_REFUSED")
    valid(json('{"s":{"url":"https://h/"}}', "project", { more: { projectRemote: true } }).entries[0])
    valid(jsonEntry('{"url":"https://h/"}', "local"))
  })

  it("looser trust is ignored and flagged, tighter trust counts", () => {
    const loose = valid(
      jsonEntry(
        '{"command":"x","trust":{"trust_class":"official","approval_default":"allow","allow_secrets":true,"egress_logging":false}}',
        "project"
      )
    )
    assert.isTrue(loose.looserTrust)
    assert.deepEqual(loose.trust, {
      trustClass: "self_hosted",
      approvalDefault: "ask",
      egressLogging: true,
      allowSecrets: false,
      pinVersion: false
    })
    assert.lengthOf(loose.warnings, 4)
    const tight = valid(
      jsonEntry('{"command":"x","trust":{"trustClass":"third_party","approvalDefault":"deny"}}', "project")
    )
    assert.isUndefined(tight.looserTrust)
    assert.deepEqual([tight.trust.trustClass, tight.trust.approvalDefault], ["third_party", "deny"])
    assert.strictEqual(
      valid(jsonEntry('{"command":"x","trust":{"approval_default":"allow"}}', "local")).trust.approvalDefault,
      "allow"
    )
  })

  it("a working directory must lie in the workspace", () => {
    const inside = { more: { insideWorkspace: (cwd: string) => !cwd.startsWith("..") } }
    assert.strictEqual(
      broken(json('{"s":{"command":"x","cwd":"../y"}}', "project", inside).entries[0]).error.code,
      "SIGIL_SCOPE_REFUSED"
    )
    valid(json('{"s":{"command":"x","cwd":"y"}}', "project", inside).entries[0])
    valid(json('{"s":{"command":"x","cwd":"../y"}}', "cli", inside).entries[0])
  })
})

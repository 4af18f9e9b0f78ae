import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { type DocumentName, type DocumentOf, documents } from "../../src/cli/Documents.ts"

const error = {
  code: "SIGIL_CONFIG_INVALID",
  reason: "configuration_invalid",
  message: "command: expected a string",
  fix: "Correct the field.",
  exit: 2,
  where: { file: "/w/.mcp.json", line: 3, column: 7, field: "command" },
  candidates: [],
  details: {}
}

const server = {
  name: "fs",
  scope: "project",
  source: { file: "/w/.mcp.json", line: 2 },
  transport: "stdio",
  command: ["npx", "-y", "pkg"],
  enabled: true,
  startup: "eager",
  required: false,
  trust_class: "third_party",
  approval_default: "ask",
  state: "pending",
  reason: { code: "SIGIL_PENDING_APPROVAL", message: "Not approved." }
} as const

const bounds = {
  truncated: false,
  limit_bytes: 32_768,
  limit_lines: 2_000,
  limit_tokens: 25_000,
  returned_bytes: 2,
  total_bytes: 2,
  details: {
    mcp: {
      server: "docs",
      trust_class: "third_party",
      kind: "resource",
      operation: "resources/read",
      server_identity: { name: "docs", version: "1" },
      generation: "7f0c"
    }
  },
  duration_ms: 4,
  warnings: []
} as const

/** One sample of every document, written by hand from section 1a of the contract. */
const samples: { readonly [Name in DocumentName]: DocumentOf<Name> } = {
  error: { schema: "sigil.error/1", error },
  list: {
    schema: "sigil.mcp.list/1",
    workspace: "/w",
    servers: [
      server,
      {
        ...server,
        state: "stale tools",
        status: {
          tools: 3,
          protocol_version: "2025-11-25",
          server: { name: "fs", version: "1" },
          generation: "7f0c",
          pid: 12,
          ready_ms: 80,
          noise_lines: 0,
          odd_messages: 0
        }
      },
      { name: "broken", scope: "user", source: { file: "/h/sigil.toml", line: 9 }, state: "invalid" }
    ],
    shadowed: [
      {
        name: "fs",
        scope: "plugin",
        source: { file: "/p/plugin.toml", line: 1 },
        by: { name: "fs", scope: "project" },
        why: "name"
      }
    ],
    problems: [error]
  },
  get: {
    schema: "sigil.mcp.get/1",
    server,
    declaration: { command: "npx", args: ["-y", "pkg"], env: { TOKEN: "[hidden]" } },
    effective: {
      startup_timeout_secs: 30,
      tool_timeout_secs: 120,
      on_timeout: "close",
      restart: "on_failure",
      shutdown_grace_ms: 500
    },
    grants: ["HOME"],
    header_names: [],
    fingerprints: { approval: "sha256:1", launch: "sha256:2" },
    pin: "off"
  },
  tools: {
    schema: "sigil.mcp.tools/1",
    servers: [
      {
        server: "fs",
        state: "ready",
        tokens: 90,
        tools: [
          {
            name: "read",
            visible_name: "mcp__fs__read",
            description: "Reads.",
            input_schema: { type: "object" },
            tokens: 90,
            status: "quarantined",
            reason: { code: "SIGIL_TOOL_QUARANTINED", path: "/properties/x", message: "Too deep." }
          }
        ],
        warnings: []
      },
      { server: "slow", state: "failed", error, tokens: 0, tools: [], warnings: [] }
    ]
  },
  tools_for: {
    schema: "sigil.mcp.tools_for/1",
    provider: "openai",
    tools: [{ type: "function" }],
    left_out: [{ server: "fs", name: "read", reason: "Too deep." }]
  },
  call: {
    schema: "sigil.mcp.call/1",
    server: "fs",
    tool: "read",
    is_error: false,
    content: [{ type: "text", text: "hi" }],
    truncated: false,
    limit_bytes: 32_768,
    limit_lines: 2_000,
    limit_tokens: 25_000,
    returned_bytes: 2,
    total_bytes: 2,
    artifact: { handle: "abc", path: "/s/abc", bytes: 2 },
    details: {
      mcp: {
        server: "fs",
        tool: "read",
        trust_class: "third_party",
        kind: "mcp_tool",
        operation: "tools/call",
        server_identity: { name: "fs", version: "1" },
        generation: "7f0c"
      }
    },
    duration_ms: 4,
    warnings: []
  },
  pending: {
    schema: "sigil.mcp.pending/1",
    project: "/w",
    pending: [
      {
        name: "fs",
        source: { file: "/w/.mcp.json", line: 2 },
        transport: "stdio",
        command: ["npx"],
        variables: ["TOKEN"],
        fingerprint: "sha256:1",
        change: { fields: ["args"], diff: "- a\n+ b" }
      }
    ]
  },
  decision: {
    schema: "sigil.mcp.decision/1",
    action: "approve",
    decided: ["fs"],
    skipped: [{ name: "web", why: "It is remote." }]
  },
  change: {
    schema: "sigil.mcp.change/1",
    action: "add",
    name: "fs",
    scope: "project",
    file: "/w/.mcp.json",
    effective: "next_start",
    notes: []
  },
  explain: {
    schema: "sigil.mcp.explain/1",
    name: "fs",
    gates: [
      { gate: "approval", verdict: "refuse", why: "Not approved.", where: { file: "/w/.mcp.json", line: 2 } },
      { gate: "enabled", verdict: "not_reached", why: "An earlier gate refused." }
    ]
  },
  logs: { schema: "sigil.mcp.logs/1", server: "fs", lines: ["started"] },
  doctor: {
    schema: "sigil.doctor/1",
    ok: false,
    summary: { ok: 1, warn: 0, error: 1 },
    checks: [
      { code: "config:load", subject: "/w/.mcp.json", status: "error", message: "Not JSON.", fix: "Mend it." },
      { code: "state", subject: "/s", status: "ok", message: "Writable." }
    ]
  },
  errors: {
    schema: "sigil.errors/1",
    errors: [{ code: "SIGIL_USAGE", exit: 2, summary: "It does not fit.", fix: "Run with --help." }]
  },
  read: {
    schema: "sigil.mcp.read/1",
    server: "docs",
    uri: "docs://a",
    contents: [{ uri: "docs://a", text: "hi" }],
    ...bounds
  },
  prompt: {
    schema: "sigil.mcp.prompt/1",
    server: "docs",
    prompt: "p",
    messages: [{ role: "user", content: { type: "text", text: "hi" } }],
    ...bounds
  },
  resources: {
    schema: "sigil.mcp.resources/1",
    server: "docs",
    items: [{ uri: "docs://a" }],
    complete: true,
    warnings: []
  },
  templates: { schema: "sigil.mcp.templates/1", server: "docs", items: [], complete: true, warnings: [] },
  prompts: { schema: "sigil.mcp.prompts/1", server: "docs", items: [{ name: "p" }], complete: true, warnings: [] },
  complete: { schema: "sigil.mcp.complete/1", server: "docs", items: ["a"], complete: false, warnings: [] },
  search: {
    schema: "sigil.mcp.search/1",
    query: "read",
    matches: [{ server: "fs", name: "read", visible_name: "mcp__fs__read", score: 12, description: "Reads." }],
    not_searched: [{ server: "lazy", state: "deferred" }]
  },
  artifacts: {
    schema: "sigil.artifacts/1",
    artifacts: [{ handle: "abc", path: "/s/abc", bytes: 2, time: "2026-01-01T00:00:00.000Z" }]
  },
  artifact: { schema: "sigil.artifact/1", handle: "abc", path: "/s/abc", bytes: 2, text: "hi" },
  artifacts_removed: { schema: "sigil.artifacts.removed/1", removed: ["abc"] },
  audit: {
    schema: "sigil.audit/1",
    workspace: "/w",
    file: "/s/audit.jsonl",
    next: 2,
    records: [
      {
        seq: 1,
        time: "2026-01-01T00:00:00.000Z",
        kind: "tool_execution_started",
        run: "r",
        call: "c",
        server: "fs",
        prev: `sha256:${"0".repeat(64)}`,
        payload: {},
        hash: `sha256:${"1".repeat(64)}`
      }
    ]
  },
  audit_verify: {
    schema: "sigil.audit.verify/1",
    ok: false,
    records: 1,
    head: { count: 1, hash: `sha256:${"1".repeat(64)}` },
    faults: [{ file: "f", line: 1, why: "w" }],
    more_faults: 1
  },
  completions: { schema: "sigil.completions/1", shell: "bash", script: "complete" }
}

// Each schema has its own type; here only that it decodes without services matters.
const decoder = (name: DocumentName) => Schema.decodeUnknownEither(documents[name] as Schema.Schema<unknown, unknown>)

const names = Object.keys(documents) as ReadonlyArray<DocumentName> // the keys of a const object

describe("Documents", () => {
  for (const name of names) {
    it(`decodes a sample of '${name}' as it comes out of JSON`, () => {
      const text = JSON.stringify(samples[name])
      const result = decoder(name)(JSON.parse(text))
      if (Either.isLeft(result)) return assert.fail(String(result.left))
      assert.deepEqual(JSON.parse(JSON.stringify(result.right)), JSON.parse(text))
    })

    it(`lets '${name}' gain fields, and misses those that every reader may count on`, () => {
      assert.isTrue(Either.isRight(decoder(name)({ ...samples[name], a_later_field: 1 })))
      for (const key of Object.keys(samples[name])) {
        const { [key]: _, ...less } = JSON.parse(JSON.stringify(samples[name]))
        const optional =
          (name === "call" && key === "artifact") ||
          (name === "artifact" && key === "text") ||
          (name === "audit" && key === "next") ||
          (name === "audit_verify" && (key === "head" || key === "more_faults"))
        assert.equal(Either.isLeft(decoder(name)(less)), !optional, `${name} without ${key}`)
      }
    })
  }

  it("knows no other state of a server", () => {
    const list = { ...samples.list, servers: [{ ...server, state: "sleeping" }] }
    assert.isTrue(Either.isLeft(decoder("list")(list)))
  })
})

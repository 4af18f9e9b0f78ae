/**
 * The JSON documents of `--json` (spec section 1a): one schema per document, and its type.
 *
 * sigil's own keys are snake_case, objects of MCP stay as on the wire. Fields are only ever added, so readers
 * ignore unknown ones, as these schemas do. An absent field is not known. At run time only the types are used:
 * nothing here is loaded by a command.
 */
import * as Schema from "effect/Schema"
import { Where } from "../base/Failure.ts"
import { scopes } from "../config/ServerDeclaration.ts"

const optional = Schema.optional
const Strings = Schema.Array(Schema.String)
const Open = Schema.Record({ key: Schema.String, value: Schema.Unknown })
const Source = Schema.Struct({ file: Schema.String, line: Schema.Number })
const Scope = Schema.Literal(...scopes)
const Reason = Schema.Struct({ code: Schema.String, message: Schema.String })

/** States of a server (spec sections 1a and 7). */
export const ServerState = Schema.Union(
  Schema.Literal("configured", "pending", "rejected", "disabled", "denied", "invalid"),
  Schema.Literal("deferred", "activating", "refreshing", "restarting", "ready", "failed", "needs_auth"),
  Schema.TemplateLiteral("stale ", Schema.String)
)
/** A state of a server. */
export type ServerState = typeof ServerState.Type

/** What an error says; `exit` is the exit code that belongs to it. */
export const ErrorObject = Schema.Struct({
  code: Schema.String,
  reason: Schema.String,
  message: Schema.String,
  fix: Schema.String,
  exit: Schema.Number,
  where: Where,
  candidates: Strings,
  details: Open
})

/** One declaration. What a broken entry does not tell is absent. */
export const Server = Schema.Struct({
  name: Schema.String,
  scope: Scope,
  source: Source,
  transport: optional(Schema.String),
  command: optional(Strings),
  url: optional(Schema.String),
  enabled: optional(Schema.Boolean),
  startup: optional(Schema.Literal("eager", "lazy")),
  required: optional(Schema.Boolean),
  trust_class: optional(Schema.Literal("official", "self_hosted", "third_party")),
  approval_default: optional(Schema.Literal("allow", "ask", "deny")),
  state: ServerState,
  queued: optional(Schema.Boolean),
  reason: optional(Reason),
  status: optional(
    Schema.Struct({
      tools: optional(Schema.Number),
      resources: optional(Schema.Number),
      prompts: optional(Schema.Number),
      protocol_version: Schema.String,
      server: Schema.Struct({ name: Schema.String, version: Schema.String }),
      generation: Schema.String,
      pid: optional(Schema.Number),
      ready_ms: Schema.Number,
      noise_lines: Schema.Number,
      odd_messages: Schema.Number,
      idle_messages: optional(Schema.Number)
    })
  )
})

const Artifact = Schema.Struct({ handle: Schema.String, path: Schema.String, bytes: Schema.Number })

/** Whose result it is, for records and models. */
const provenance = {
  server: Schema.String,
  trust_class: Schema.String,
  kind: Schema.String,
  operation: Schema.String,
  server_identity: Schema.Unknown,
  generation: Schema.String
}

/** What a bounded result says of its bounds. */
const bounds = {
  truncated: Schema.Boolean,
  limit_bytes: Schema.Number,
  limit_lines: Schema.Number,
  limit_tokens: Schema.Number,
  returned_bytes: Schema.Number,
  total_bytes: Schema.Number,
  artifact: optional(Artifact),
  details: Schema.Struct({ mcp: Schema.Struct(provenance) }, Open),
  duration_ms: Schema.Number,
  warnings: Strings
}

/** A list of a server as on the wire. */
const listOf = <Name extends string>(name: Name) =>
  Schema.Struct({
    schema: Schema.Literal(name),
    server: Schema.String,
    items: Schema.Array(Schema.Unknown),
    complete: Schema.Boolean,
    warnings: Strings
  })

const Verdict = Schema.Literal("allow", "ask", "deny")
const Ground = Schema.Struct({ verdict: Verdict, kind: Schema.String, by: Schema.String, where: optional(Where) })
const Facets = Schema.Struct({ local: Ground, network: Ground, source: Ground })

/** Every document by its name. */
export const documents = {
  error: Schema.Struct({ schema: Schema.Literal("sigil.error/1"), error: ErrorObject }),
  list: Schema.Struct({
    schema: Schema.Literal("sigil.mcp.list/1"),
    workspace: Schema.String,
    servers: Schema.Array(Server),
    shadowed: Schema.Array(
      Schema.Struct({
        name: Schema.String,
        scope: Scope,
        source: Source,
        by: Schema.Struct({ name: Schema.String, scope: Scope }),
        why: Schema.Literal("name", "signature")
      })
    ),
    problems: Schema.Array(ErrorObject)
  }),
  get: Schema.Struct({
    schema: Schema.Literal("sigil.mcp.get/1"),
    server: Server,
    /** The entry as written, secrets hidden. */
    declaration: Open,
    effective: Schema.Struct(
      {
        startup_timeout_secs: Schema.Number,
        tool_timeout_secs: Schema.Number,
        on_timeout: Schema.Literal("close", "keep"),
        restart: Schema.Literal("on_failure", "never")
      },
      Open
    ),
    grants: Strings,
    header_names: Strings,
    fingerprints: Schema.Struct({
      approval: optional(Schema.String),
      launch: optional(Schema.String),
      environment: optional(Schema.String)
    }),
    pin: Schema.Literal("off", "pinned", "missing")
  }),
  tools: Schema.Struct({
    schema: Schema.Literal("sigil.mcp.tools/1"),
    servers: Schema.Array(
      Schema.Struct({
        server: Schema.String,
        state: ServerState,
        error: optional(ErrorObject),
        tokens: Schema.Number,
        tools: Schema.Array(
          Schema.Struct({
            name: Schema.String,
            visible_name: Schema.String,
            title: optional(Schema.String),
            description: Schema.String,
            input_schema: Schema.Unknown,
            output_schema: optional(Schema.Unknown),
            annotations: optional(Schema.Unknown),
            tokens: Schema.Number,
            status: Schema.Literal("available", "quarantined", "filtered", "held"),
            reason: optional(Schema.Struct({ code: Schema.String, path: Schema.String, message: Schema.String }))
          })
        ),
        warnings: Strings
      })
    )
  }),
  tools_for: Schema.Struct({
    schema: Schema.Literal("sigil.mcp.tools_for/1"),
    provider: Schema.Literal("openai", "anthropic", "gemini"),
    /** As the provider gets them. */
    tools: Schema.Array(Schema.Unknown),
    left_out: Schema.Array(Schema.Struct({ server: Schema.String, name: Schema.String, reason: Schema.String }))
  }),
  call: Schema.Struct({
    schema: Schema.Literal("sigil.mcp.call/1"),
    server: Schema.String,
    tool: Schema.String,
    is_error: Schema.Boolean,
    content: Schema.Array(Open),
    structured_content: optional(Schema.Unknown),
    ...bounds,
    details: Schema.Struct({ mcp: Schema.Struct({ ...provenance, tool: Schema.String }) }, Open)
  }),
  read: Schema.Struct({
    schema: Schema.Literal("sigil.mcp.read/1"),
    server: Schema.String,
    uri: Schema.String,
    contents: Schema.Array(Open),
    ...bounds
  }),
  prompt: Schema.Struct({
    schema: Schema.Literal("sigil.mcp.prompt/1"),
    server: Schema.String,
    prompt: Schema.String,
    description: optional(Schema.String),
    messages: Schema.Array(Schema.Struct({ role: Schema.String, content: Open })),
    ...bounds
  }),
  resources: listOf("sigil.mcp.resources/1"),
  templates: listOf("sigil.mcp.templates/1"),
  prompts: listOf("sigil.mcp.prompts/1"),
  complete: listOf("sigil.mcp.complete/1"),
  search: Schema.Struct({
    schema: Schema.Literal("sigil.mcp.search/1"),
    query: Schema.String,
    matches: Schema.Array(
      Schema.Struct({
        server: Schema.String,
        name: Schema.String,
        visible_name: Schema.String,
        score: Schema.Number,
        description: Schema.String
      })
    ),
    not_searched: Schema.Array(Schema.Struct({ server: Schema.String, state: ServerState }))
  }),
  artifacts: Schema.Struct({
    schema: Schema.Literal("sigil.artifacts/1"),
    artifacts: Schema.Array(
      Schema.Struct({ handle: Schema.String, path: Schema.String, bytes: Schema.Number, time: Schema.String })
    )
  }),
  artifact: Schema.Struct({
    schema: Schema.Literal("sigil.artifact/1"),
    handle: Schema.String,
    path: Schema.String,
    bytes: Schema.Number,
    /** Absent for binary content, and when it was saved. */
    text: optional(Schema.String)
  }),
  completions: Schema.Struct({
    schema: Schema.Literal("sigil.completions/1"),
    shell: Schema.String,
    script: Schema.String
  }),
  artifacts_removed: Schema.Struct({ schema: Schema.Literal("sigil.artifacts.removed/1"), removed: Strings }),
  pending: Schema.Struct({
    schema: Schema.Literal("sigil.mcp.pending/1"),
    project: Schema.String,
    pending: Schema.Array(
      Schema.Struct({
        name: Schema.String,
        source: Source,
        transport: Schema.String,
        command: optional(Strings),
        url: optional(Schema.String),
        /** Literal values that the entry sets; credentials as a digest. */
        env: optional(Schema.Record({ key: Schema.String, value: Schema.String })),
        variables: Strings,
        fingerprint: Schema.String,
        change: optional(Schema.Struct({ fields: Strings, diff: Schema.String }))
      })
    )
  }),
  decision: Schema.Struct({
    schema: Schema.Literal("sigil.mcp.decision/1"),
    action: Schema.Literal("approve", "reject"),
    decided: Strings,
    skipped: Schema.Array(Schema.Struct({ name: Schema.String, why: Schema.String }))
  }),
  change: Schema.Struct({
    schema: Schema.Literal("sigil.mcp.change/1"),
    action: Schema.Literal("add", "remove", "enable", "disable", "pin"),
    name: Schema.String,
    scope: Scope,
    file: Schema.String,
    effective: Schema.Literal("next_start"),
    notes: Strings
  }),
  explain: Schema.Struct({
    schema: Schema.Literal("sigil.mcp.explain/1"),
    name: Schema.String,
    gates: Schema.Array(
      Schema.Struct({
        gate: Schema.String,
        verdict: Schema.Literal("pass", "refuse", "not_reached"),
        why: Schema.String,
        where: optional(Where)
      })
    ),
    /** Of a call: the facets of its permission. */
    permission: optional(Schema.Struct({ decision: Verdict, facets: Facets }))
  }),
  logs: Schema.Struct({
    schema: Schema.Literal("sigil.mcp.logs/1"),
    server: Schema.String,
    generation: optional(Schema.String),
    lines: Strings
  }),
  doctor: Schema.Struct({
    schema: Schema.Literal("sigil.doctor/1"),
    ok: Schema.Boolean,
    summary: Schema.Struct({ ok: Schema.Number, warn: Schema.Number, error: Schema.Number }),
    checks: Schema.Array(
      Schema.Struct({
        code: Schema.String,
        subject: Schema.String,
        status: Schema.Literal("ok", "warn", "error"),
        message: Schema.String,
        fix: optional(Schema.String),
        where: optional(Where)
      })
    )
  }),
  audit: Schema.Struct({
    schema: Schema.Literal("sigil.audit/1"),
    workspace: Schema.String,
    file: Schema.String,
    records: Schema.Array(
      Schema.Struct({
        seq: Schema.Number,
        time: Schema.String,
        kind: Schema.String,
        run: Schema.String,
        call: optional(Schema.String),
        server: optional(Schema.String),
        prev: Schema.String,
        payload: Open,
        hash: Schema.String
      })
    ),
    /** `--since` of the next page. */
    next: optional(Schema.Number)
  }),
  audit_verify: Schema.Struct({
    schema: Schema.Literal("sigil.audit.verify/1"),
    ok: Schema.Boolean,
    records: Schema.Number,
    /** What `audit.head` says. */
    head: optional(Schema.Struct({ count: Schema.Number, hash: Schema.String })),
    faults: Schema.Array(Schema.Struct({ file: Schema.String, line: Schema.Number, why: Schema.String })),
    /** Faults that are not told one by one. */
    more_faults: optional(Schema.Number)
  }),
  errors: Schema.Struct({
    schema: Schema.Literal("sigil.errors/1"),
    errors: Schema.Array(
      Schema.Struct({ code: Schema.String, exit: Schema.Number, summary: Schema.String, fix: Schema.String })
    )
  })
} as const

/** Name of a document. */
export type DocumentName = keyof typeof documents

/** The value of a document. */
export type DocumentOf<Name extends DocumentName> = Schema.Schema.Type<(typeof documents)[Name]>

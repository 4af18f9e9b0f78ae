/**
 * The entries that sigil records, one builder per kind, with the payload fields of R section 12.
 *
 * A builder only shapes: texts that come from servers, users or arguments are redacted by the caller, and no
 * field takes the value of an argument or a result. Keys are written in order, which spares the log a sort.
 */
import type { Code } from "../base/Codes.ts"
import type { JsonObject } from "../base/Json.ts"
import type { AuditEntry } from "./AuditRecord.ts"
import { metadataText } from "./SafeProjection.ts"

/** A call, a server, or both. */
interface About {
  /** Id of the call. */
  readonly call: string
  /** Exact server name. */
  readonly server: string
}

const optional = (key: string, value: JsonObject[string]): JsonObject => (value === undefined ? {} : { [key]: value })

/** A gate of admission refused a server (spec section 3). */
export const admissionRefused = (facts: {
  readonly server: string
  /** Name of the gate, e.g. `approval`. */
  readonly gate: string
  readonly code: Code
  readonly reason: string
  /** The refusal's text, redacted. */
  readonly message: string
}): AuditEntry => ({
  kind: "admission_refused",
  server: facts.server,
  payload: { code: facts.code, gate: facts.gate, ...metadataText("message", facts.message), reason: facts.reason }
})

/** A server's process before and after its start (R section 12.4). */
export const processLifecycle = (facts: {
  readonly server: string
  readonly phase: "pre_spawn" | "post_spawn" | "closed"
  readonly status: "registered" | "startup_failed" | "tools_list_failed" | "closed" | "cleanup_incomplete"
  /** `mcp_process_class`, `mcp_environment_grant_names` and so on; no command, arguments, directory or values. */
  readonly safeMetadata: { readonly [key: string]: string }
  readonly generation?: string
  readonly code?: Code | undefined
  readonly processKind?: "mcp_stdio" | "mcp_remote"
  /** The projection of `SafeProjection.ts`. */
  readonly declaration?: JsonObject
}): AuditEntry => ({
  kind: "extension_process_lifecycle_recorded",
  server: facts.server,
  payload: {
    ...optional("code", facts.code),
    ...optional("declaration", facts.declaration),
    ...optional("generation", facts.generation),
    phase: facts.phase,
    process_kind: facts.processKind ?? "mcp_stdio",
    safe_metadata: facts.safeMetadata,
    status: facts.status,
    subject: facts.server
  }
})

/** A verdict of permission. */
export type PolicyVerdict = "allow" | "ask" | "deny"

/** What permission said, whom it asked and what was answered (R section 12.3). A person's answer is on the disk. */
export const approvalResolved = (
  facts: About & {
    readonly action: "policy_evaluated" | "requested" | "resolved" | "preview_failed"
    readonly toolName: string
    readonly operation: string
    readonly subjects: ReadonlyArray<string>
    readonly local: PolicyVerdict
    readonly network: PolicyVerdict
    readonly source: PolicyVerdict
    /** The strictest of the three. */
    readonly decision: PolicyVerdict
    readonly access?: string
    readonly networkEffect?: string
    readonly risk?: string
    /** Who or what answered. */
    readonly userDecision?: "approved" | "approved_for_session" | "denied" | undefined
    /** Which rule, default or grant decided, redacted. */
    readonly reason?: string | undefined
    /** The same for each facet. */
    readonly reasons?: { readonly local: string; readonly network: string; readonly source: string }
    /** `rule`, `session_grant`, `yes`, `default` and so on. */
    readonly allowSource?: string | undefined
    /** The call whose grant allowed this one. */
    readonly grantCall?: string | undefined
  }
): AuditEntry => ({
  kind: "approval_resolved",
  call: facts.call,
  server: facts.server,
  durable: facts.userDecision !== undefined,
  payload: {
    ...optional("access", facts.access),
    action: facts.action,
    ...optional("allow_source", facts.allowSource),
    call_id: facts.call,
    ...optional("grant_call_id", facts.grantCall),
    local_policy_decision: facts.local,
    ...optional("network_effect", facts.networkEffect),
    network_policy_decision: facts.network,
    operation: facts.operation,
    policy_decision: facts.decision,
    ...optional("reason", facts.reason),
    ...optional("reasons", facts.reasons),
    ...optional("risk", facts.risk),
    source_policy_decision: facts.source,
    subjects: facts.subjects,
    tool_name: facts.toolName,
    ...optional("user_decision", facts.userDecision)
  }
})

/** What may leave, to whom, in which shape (R section 7.6, spec section 9). Written before anything is sent. */
export const egressDecision = (
  facts: About & {
    /** Name that the caller used. */
    readonly toolName: string
    /** `tools/call`, `resources/read`, `server/activate` and so on. */
    readonly operation: string
    readonly subjects: ReadonlyArray<string>
    readonly trustClass: string
    readonly providerTool: string
    /** The exact remote tool, or the resource or prompt operation. */
    readonly target:
      | { readonly remote_tool: string }
      | { readonly resource_operation: string }
      | { readonly prompt_operation: string }
    readonly allowSecrets: boolean
    readonly secretDetected: boolean
    /** Whether it is sent after this record, or was refused. */
    readonly sent: boolean
    /** `argumentShape` of the arguments. */
    readonly arguments: JsonObject
    /** `identityProjection` of the server; absent before it said who it is. */
    readonly serverIdentity?: JsonObject
    /** Whether anything in this record was hidden. */
    readonly redacted: boolean
  }
): AuditEntry => ({
  kind: "egress_decision_recorded",
  call: facts.call,
  server: facts.server,
  payload: {
    call_id: facts.call,
    ...metadataText("destination", `mcp:${facts.server}`),
    operation: facts.operation,
    payload: {
      allow_secrets: facts.allowSecrets,
      arguments: facts.arguments,
      provider_tool: facts.providerTool,
      ...facts.target,
      secret_detected: facts.secretDetected,
      ...metadataText("server", facts.server),
      ...optional("server_identity", facts.serverIdentity),
      trust_class: facts.trustClass
    },
    redacted: facts.redacted,
    sent: facts.sent,
    subjects: facts.subjects,
    tool_name: facts.toolName
  }
})

/** A call is on its way. */
export const toolStarted = (
  facts: About & { readonly toolName: string; readonly operation: string; readonly generation?: string }
): AuditEntry => ({
  kind: "tool_execution_started",
  call: facts.call,
  server: facts.server,
  payload: {
    call_id: facts.call,
    ...optional("generation", facts.generation),
    operation: facts.operation,
    tool_name: facts.toolName
  }
})

/** How a call ended. Sizes, never content. */
export const toolFinished = (
  facts: About & {
    readonly toolName: string
    readonly operation: string
    readonly status: "succeeded" | "tool_error" | "failed" | "refused" | "cancelled"
    /** Code of the failure. */
    readonly code?: Code | undefined
    readonly reason?: string | undefined
    readonly durationMs: number
    readonly resultBytes?: number | undefined
    readonly truncated?: boolean | undefined
    /** Handle of the stored artifact. */
    readonly artifact?: string | undefined
  }
): AuditEntry => ({
  kind: "tool_execution_finished",
  call: facts.call,
  server: facts.server,
  payload: {
    ...optional("artifact", facts.artifact),
    call_id: facts.call,
    ...optional("code", facts.code),
    duration_ms: facts.durationMs,
    operation: facts.operation,
    ...optional("reason", facts.reason),
    ...optional("result_bytes", facts.resultBytes),
    status: facts.status,
    tool_name: facts.toolName,
    ...optional("truncated", facts.truncated)
  }
})

/** Somebody approved, rejected or switched a server of a project (spec section 4). Always on the disk. */
export const projectDecision = (facts: {
  readonly action: "approve" | "reject" | "approve_all" | "enable" | "disable"
  readonly server: string
  /** Project identity. */
  readonly project: string
  /** Approval fingerprint of the entry. */
  readonly fingerprint?: string | undefined
}): AuditEntry => ({
  kind: "project_decision",
  server: facts.server,
  payload: {
    action: facts.action,
    ...optional("fingerprint", facts.fingerprint),
    name: facts.server,
    project: facts.project
  }
})

/** A pin or an accepted lock entry was written (spec section 12). Always on the disk. */
export const pinRecorded = (facts: {
  readonly server: string
  readonly action: "pin" | "unpin" | "lock_accept"
  readonly fingerprints: { readonly [name: string]: string }
}): AuditEntry => ({
  kind: "pin_recorded",
  server: facts.server,
  payload: { action: facts.action, fingerprints: facts.fingerprints, name: facts.server }
})

/** One message to a remote server may be dialled (R section 12.6). Always on the disk. */
export const transportAuthorization = (facts: {
  readonly server: string
  readonly call?: string | undefined
  readonly record: {
    readonly record_id: string
    readonly root_run_id: string
    readonly authorization_id: string
    readonly disclosure_id: string
    readonly binding_origin: string
    readonly route_fingerprint: string
    readonly profile_config_proxy_fingerprint: string
    readonly route: "direct" | "proxy_remote"
    readonly safe_logical_destination: string
    readonly safe_transport_destination: string
  }
}): AuditEntry => ({
  kind: "mcp_transport_authorization",
  server: facts.server,
  call: facts.call,
  payload: { ...facts.record }
})

/** A destination was shown to the user (R section 12.6). */
export const disclosurePresented = (facts: {
  readonly server: string
  readonly call?: string | undefined
  readonly record: {
    readonly record_id: string
    readonly kind: string
    readonly correlation_id?: string
    readonly disclosure_id: string
    readonly route_fingerprint: string
    readonly profile_config_proxy_fingerprint: string
    readonly safe_logical_destination: string
    readonly safe_transport_destination: string
    readonly route: "direct" | "proxy_remote"
    readonly disclosure_content_sha256: string
    readonly sink_fingerprint: string
  }
}): AuditEntry => ({
  kind: "egress_disclosure_presented",
  server: facts.server,
  call: facts.call,
  payload: { ...facts.record }
})

/** A form of a server was answered (R section 12.5). Field names, never values. */
export const elicitationResolved = (facts: {
  readonly server: string
  readonly call?: string | undefined
  /** At most 160 characters, redacted. */
  readonly messagePreview: string
  readonly messageHash: string
  readonly requestedSchemaHash: string
  readonly requestedFieldNames: ReadonlyArray<string>
  readonly requiredFieldNames: ReadonlyArray<string>
  readonly action: "accepted" | "declined" | "cancelled"
  readonly contentFieldNames: ReadonlyArray<string>
}): AuditEntry => ({
  kind: "session_entry_recorded",
  server: facts.server,
  call: facts.call,
  payload: {
    action: facts.action,
    content_field_names: facts.contentFieldNames,
    content_redacted: facts.action === "accepted",
    entry: "elicitation",
    message_hash: facts.messageHash,
    message_preview: facts.messagePreview,
    requested_field_names: facts.requestedFieldNames,
    requested_schema_hash: facts.requestedSchemaHash,
    required_field_names: facts.requiredFieldNames,
    server_name: facts.server
  }
})

/** The start of a server changed files of the workspace (R section 5.13). Paths relative to the workspace. */
export const workspaceMutation = (facts: {
  readonly server: string
  readonly created: ReadonlyArray<string>
  readonly changed: ReadonlyArray<string>
  readonly removed: ReadonlyArray<string>
}): AuditEntry => ({
  kind: "workspace_mutation_detected",
  server: facts.server,
  payload: {
    changed: facts.changed,
    created: facts.created,
    removed: facts.removed,
    tool_name: `mcp_server:${facts.server}`
  }
})

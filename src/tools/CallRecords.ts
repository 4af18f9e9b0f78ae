/**
 * What calls leave on record: what may go out before it goes, and how it ended (spec sections 9 and 13, R 7.6).
 *
 * The record of what leaves is handed to the log before the request is sent; a log that cannot take it refuses the
 * call. How a call ended follows with the next write: nothing waits for it, and a log that cannot take it refuses
 * the next call. Shapes and names are recorded, never values.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { Code } from "../base/Codes.ts"
import type { Failure } from "../base/Failure.ts"
import type { JsonObject } from "../base/Json.ts"
import { argumentShape } from "../audit/ArgumentShape.ts"
import * as Entries from "../audit/AuditEntries.ts"
import type { AuditError } from "../audit/AuditError.ts"
import { AuditLog } from "../audit/AuditLog.ts"
import type { AuditEntry } from "../audit/AuditRecord.ts"
import { canonicalText } from "../audit/AuditRecord.ts"
import { identityProjection } from "../audit/SafeProjection.ts"
import { Random } from "../platform/Random.ts"
import { Secrets } from "../policy/Secrets.ts"
import type { Decision, Ground } from "../policy/Permission.ts"
import type { Generation } from "../server/Generation.ts"
import type { Subject } from "./Gates.ts"

/** One call under way. */
export interface CallRecord {
  readonly id: string
  readonly subject: Subject
  /** `tools/call`, `resources/read` and so on. */
  readonly operation: string
  /** ms of the Clock. */
  readonly begun: number
}

/** How a call ended. */
export interface End {
  readonly status: "succeeded" | "tool_error" | "failed" | "refused" | "cancelled"
  readonly code?: Code | undefined
  readonly reason?: string | undefined
}

/** Records of calls. */
export class CallRecords extends Context.Tag("sigil/tools/CallRecords")<
  CallRecords,
  {
    readonly open: (subject: Subject, operation: string) => CallRecord
    /** Hands over what is about to leave, or what a secret kept from leaving; the call may go on when it succeeds. */
    readonly leaving: (
      record: CallRecord,
      generation: Generation,
      args: JsonObject,
      verdict: { readonly secretDetected: boolean; readonly sent: boolean }
    ) => Effect.Effect<void, AuditError>
    /** What permission asked and what was answered; a person's answer is on the disk when it succeeds. */
    readonly asked: (
      record: CallRecord,
      decision: Decision,
      answer: "approved" | "approved_for_session" | "denied" | undefined,
      allowSource: string | undefined
    ) => Effect.Effect<void, AuditError>
    /** How the call ended; returns at once. */
    readonly ended: (record: CallRecord, end: End) => void
  }
>() {}

const empty: JsonObject = {}

/** What decided, with its file and line. */
const reasonOf = ({ by, where }: Ground): string =>
  where?.file === undefined ? by : `${by} (${where.file}:${where.line ?? 1})`

const targetOf = (subject: Subject) => {
  if (subject.operation === "tool") return { remote_tool: subject.tool }
  return subject.operation === "resource" ? { resource_operation: subject.tool } : { prompt_operation: subject.tool }
}

const make = Effect.gen(function* () {
  const audit = yield* AuditLog
  const secrets = yield* Secrets
  const random = yield* Random
  const clock = yield* Effect.clock
  // One random part per runtime and a counter: unique, and cheap enough for every call.
  const prefix = random.uuid().slice(0, 8)
  let count = 0
  const identities = new WeakMap<Generation, JsonObject>()
  const identityOf = (generation: Generation): JsonObject => {
    const known = identities.get(generation)
    if (known !== undefined) return known
    const identity = identityProjection({
      protocolVersion: generation.revision.version,
      name: generation.info.name,
      version: generation.info.version
    })
    identities.set(generation, identity)
    return identity
  }
  /** What of a subject is the same in each of its records, known values hidden. */
  interface Fixed {
    readonly tool: string
    /** `tool` as JSON. */
    readonly toolText: string
    readonly visible: string
    readonly subjects: ReadonlyArray<string>
    readonly target: ReturnType<typeof targetOf>
  }
  const fixed = new WeakMap<Subject, Fixed>()
  // Values are registered before a server exists, so what is hidden in its names does not change later.
  const fixedOf = (subject: Subject): Fixed => {
    const known = fixed.get(subject)
    if (known !== undefined) return known
    const tool = secrets.redactText(subject.tool)
    const visible = secrets.redactText(subject.visibleName)
    const made: Fixed = {
      tool,
      toolText: JSON.stringify(tool),
      visible,
      subjects: [visible],
      target: targetOf({ ...subject, tool })
    }
    fixed.set(subject, made)
    return made
  }

  const egress = (
    record: Pick<CallRecord, "id" | "subject" | "operation">,
    generation: Generation,
    shape: JsonObject,
    verdict: { readonly secretDetected: boolean; readonly sent: boolean; readonly redacted: boolean }
  ) => {
    const { subject, operation } = record
    const { tool, visible, subjects, target } = fixedOf(subject)
    const { trust } = generation.declaration
    return Entries.egressDecision({
      call: record.id,
      server: subject.server,
      toolName: tool,
      operation,
      subjects: [...subjects, `mcp_trust_class:${trust.trustClass}`],
      trustClass: trust.trustClass,
      providerTool: visible,
      target,
      allowSecrets: trust.allowSecrets,
      arguments: shape,
      serverIdentity: identityOf(generation),
      ...verdict
    })
  }

  /** The egress payload of the common case, cut where the call's id and the arguments' shape go. */
  const templates = new WeakMap<Generation, Map<Subject, readonly [string, string, string]>>()
  const templateOf = (
    generation: Generation,
    subject: Subject,
    operation: string
  ): readonly [string, string, string] => {
    const known = templates.get(generation)?.get(subject)
    if (known !== undefined) return known
    // Marks that no JSON text holds outside of these two places: a random part that nobody has seen.
    const mark = random.uuid()
    const entry = egress(
      { id: `${mark}-id`, subject, operation },
      generation,
      { mark },
      { secretDetected: false, sent: true, redacted: false }
    )
    const [first = "", rest = ""] = canonicalText(entry.payload).split(`"${mark}-id"`)
    const [second = "", third = ""] = rest.split(JSON.stringify({ mark }))
    const made = [first, second, third] as const
    const bySubject = templates.get(generation) ?? new Map<Subject, readonly [string, string, string]>()
    bySubject.set(subject, made)
    templates.set(generation, bySubject)
    return made
  }

  return CallRecords.of({
    open: (subject, operation) => {
      count += 1
      return { id: `${prefix}-${count}`, subject, operation, begun: clock.unsafeCurrentTimeMillis() }
    },
    leaving: (record, generation, args, { secretDetected, sent }) => {
      const { subject, operation } = record
      const { tool } = fixedOf(subject)
      const about = { call: record.id, server: subject.server, toolName: tool, operation }
      const { endpoint, trust } = generation.declaration
      // Each message to a remote server is authorised by a record of its own, on the disk before anything is dialled.
      // This one goes in front of it in the same write: one wait instead of two, and nothing leaves before either.
      const hand =
        sent && endpoint._tag === "remote" && endpoint.transport !== "ws"
          ? (entry: AuditEntry) => Effect.sync(() => audit.note(entry))
          : audit.append
      if (!trust.egressLogging) return hand(Entries.toolStarted({ ...about, generation: generation.id }))
      let redacted = secretDetected
      const shape = argumentShape(args, (text) => {
        const safe = secrets.redactText(text)
        if (safe !== text) redacted = true
        return safe
      })
      const common = sent && !secretDetected && !redacted
      if (common) {
        const [first, second, third] = templateOf(generation, subject, operation)
        const payloadText = `${first}"${record.id}"${second}${JSON.stringify(shape)}${third}`
        return hand({
          kind: "egress_decision_recorded",
          call: record.id,
          server: subject.server,
          payload: empty,
          payloadText
        })
      }
      return hand(egress(record, generation, shape, { secretDetected, sent, redacted }))
    },
    asked: (record, decision, answer, allowSource) =>
      audit.append(
        Entries.approvalResolved({
          call: record.id,
          server: record.subject.server,
          action: answer === undefined ? "policy_evaluated" : "resolved",
          toolName: fixedOf(record.subject).tool,
          operation: "network_request",
          subjects: fixedOf(record.subject).subjects,
          allowSource,
          local: decision.facets.local,
          network: decision.facets.network,
          source: decision.facets.source,
          decision: decision.decision,
          userDecision: answer,
          reason: secrets.redactText(reasonOf(decision.ground)),
          reasons: {
            local: secrets.redactText(reasonOf(decision.grounds.local)),
            network: secrets.redactText(reasonOf(decision.grounds.network)),
            source: secrets.redactText(reasonOf(decision.grounds.source))
          },
          access: decision.effects.access,
          networkEffect: decision.effects.network
        })
      ),
    ended: (record, { status, code, reason }) => {
      const { subject, operation } = record
      if (code === undefined && reason === undefined) {
        const durationMs = Math.round(clock.unsafeCurrentTimeMillis() - record.begun)
        const { toolText } = fixedOf(subject)
        // Keys in the order of RFC 8785; the form of `toolFinished`.
        const payloadText = `{"call_id":"${record.id}","duration_ms":${durationMs},"operation":"${operation}","status":"${status}","tool_name":${toolText}}`
        audit.note({
          kind: "tool_execution_finished",
          call: record.id,
          server: subject.server,
          payload: empty,
          payloadText
        })
        return
      }
      const entry = Entries.toolFinished({
        call: record.id,
        server: record.subject.server,
        toolName: fixedOf(record.subject).tool,
        operation: record.operation,
        status,
        code,
        reason,
        durationMs: Math.round(clock.unsafeCurrentTimeMillis() - record.begun)
      })
      audit.note(entry)
    }
  })
})

/** Records in the audit log. */
export const layer: Layer.Layer<CallRecords, never, AuditLog | Secrets | Random> = Layer.effect(CallRecords, make)

const sentOff = new Set<string>(["ConnectionError", "RemoteError"])

/** How a call ended, from its exit. What failed before anything was sent counts as refused. */
export const endOf = <A, E extends Failure>(exit: Exit.Exit<A, E>, isError: (value: A) => boolean): End => {
  if (Exit.isSuccess(exit)) return { status: isError(exit.value) ? "tool_error" : "succeeded" }
  const failure = Option.getOrUndefined(Cause.failureOption(exit.cause))
  if (failure === undefined)
    return Cause.isInterrupted(exit.cause) ? { status: "cancelled" } : { status: "failed", code: "SIGIL_INTERNAL" }
  return { status: sentOff.has(failure._tag) ? "failed" : "refused", code: failure.code, reason: failure.reason }
}

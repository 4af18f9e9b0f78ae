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
import * as Runtime from "effect/Runtime"
import type { Code } from "../base/Codes.ts"
import type { Failure } from "../base/Failure.ts"
import type { JsonObject } from "../base/Json.ts"
import { argumentShape } from "../audit/ArgumentShape.ts"
import * as Entries from "../audit/AuditEntries.ts"
import type { AuditError } from "../audit/AuditError.ts"
import { AuditLog } from "../audit/AuditLog.ts"
import { identityProjection } from "../audit/SafeProjection.ts"
import { Random } from "../platform/Random.ts"
import { PLACEHOLDER, Secrets } from "../policy/Secrets.ts"
import type { Decision } from "../policy/Permission.ts"
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

const targetOf = (subject: Subject) => {
  if (subject.operation === "tool") return { remote_tool: subject.tool }
  return subject.operation === "resource" ? { resource_operation: subject.tool } : { prompt_operation: subject.tool }
}

const make = Effect.gen(function* () {
  const audit = yield* AuditLog
  const secrets = yield* Secrets
  const random = yield* Random
  const clock = yield* Effect.clock
  const runtime = yield* Effect.runtime<never>()
  const fork = Runtime.runFork(runtime)
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
  const hidden = (text: string): string => secrets.redactText(text)

  return CallRecords.of({
    open: (subject, operation) => {
      count += 1
      return { id: `${prefix}-${count}`, subject, operation, begun: clock.unsafeCurrentTimeMillis() }
    },
    leaving: (record, generation, args, { secretDetected, sent }) => {
      const { subject, operation } = record
      const about = { call: record.id, server: subject.server, toolName: hidden(subject.tool), operation }
      const { trust } = generation.declaration
      if (!trust.egressLogging) return audit.append(Entries.toolStarted({ ...about, generation: generation.id }))
      const shape = argumentShape(args, hidden)
      return audit.append(
        Entries.egressDecision({
          ...about,
          subjects: [hidden(subject.visibleName), `mcp_trust_class:${trust.trustClass}`],
          trustClass: trust.trustClass,
          providerTool: hidden(subject.visibleName),
          target: targetOf({ ...subject, tool: hidden(subject.tool) }),
          allowSecrets: trust.allowSecrets,
          secretDetected,
          sent,
          arguments: shape,
          serverIdentity: identityOf(generation),
          redacted: secretDetected || JSON.stringify(shape).includes(PLACEHOLDER)
        })
      )
    },
    asked: (record, decision, answer, allowSource) =>
      audit.append(
        Entries.approvalResolved({
          call: record.id,
          server: record.subject.server,
          action: answer === undefined ? "policy_evaluated" : "resolved",
          toolName: hidden(record.subject.tool),
          operation: "network_request",
          subjects: [hidden(record.subject.visibleName)],
          local: decision.facets.local,
          network: decision.facets.network,
          source: decision.facets.source,
          decision: decision.decision,
          userDecision: answer,
          reason: hidden(decision.decidedBy),
          allowSource
        })
      ),
    ended: (record, { status, code, reason }) => {
      const entry = Entries.toolFinished({
        call: record.id,
        server: record.subject.server,
        toolName: hidden(record.subject.tool),
        operation: record.operation,
        status,
        code,
        reason,
        durationMs: Math.round(clock.unsafeCurrentTimeMillis() - record.begun)
      })
      fork(Effect.ignore(audit.append(entry)))
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
  if (failure === undefined) return Cause.isInterrupted(exit.cause) ? { status: "cancelled" } : { status: "failed", code: "SIGIL_INTERNAL" }
  return { status: sentOff.has(failure._tag) ? "failed" : "refused", code: failure.code, reason: failure.reason }
}

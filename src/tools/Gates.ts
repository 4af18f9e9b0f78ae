/**
 * The two gates that every request passes before it is sent: permission and secrets (spec section 9).
 *
 * Tools, resources, prompts and completion go through the same gates with the same session grants, so that no
 * surface is a way around another.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { AuditError } from "../audit/AuditError.ts"
import type { JsonObject } from "../base/Json.ts"
import * as Permission from "../policy/Permission.ts"
import { remedyOf } from "../policy/permission/Remedy.ts"
import * as SecretEgress from "../policy/SecretEgress.ts"
import { Secrets } from "../policy/Secrets.ts"
import type { Generation } from "../server/Generation.ts"
import { Registry } from "../server/Registry.ts"
import type { Answer } from "./Approver.ts"
import type { Caller } from "./Caller.ts"
import { type CallRecord, CallRecords } from "./CallRecords.ts"
import { CallRefused } from "./CallRefused.ts"
import * as Judge from "./Judge.ts"
import * as StartConsent from "./StartConsent.ts"

/** What is asked for: one tool, or one surface operation of a server. */
export interface Subject {
  /** Exact server name. */
  readonly server: string
  /** Exact tool name, or the surface's part such as `resources_read` (R section 2). */
  readonly tool: string
  readonly visibleName: string
  /** Every name it can be shown under; absent where those follow from the exact names. */
  readonly possibleNames?: ReadonlyArray<string>
  readonly description: string
  /** The server marks it as destructive. */
  readonly destructive: boolean
  readonly operation: "tool" | "resource" | "prompt"
}

/** Permission and secrets. */
export class Gates extends Context.Tag("sigil/tools/Gates")<
  Gates,
  {
    /** What permission says to this caller's call; asks nobody. */
    readonly decide: (caller: Caller, subject: Subject, generation: Generation, args: JsonObject) => Permission.Decision
    /** Asks whether a server may be started, where the network policy asks; for `networkApproved` of its start. */
    readonly consentToStart: StartConsent.StartConsent
    /** Asks where a rule or default asks; fails unless the request may be made. */
    readonly permit: (
      caller: Caller,
      record: CallRecord,
      generation: Generation,
      args: JsonObject
    ) => Effect.Effect<void, CallRefused | AuditError>
    /** Whether the arguments may leave as far as secrets go. */
    readonly isClean: (generation: Generation, args: JsonObject) => boolean
    /** Fails when a secret would leave to a server that may not have it. */
    readonly secrets: (subject: Subject, generation: Generation, args: JsonObject) => Effect.Effect<void, CallRefused>
  }
>() {}

const make = Effect.gen(function* () {
  const registry = yield* Registry
  const secrets = yield* Secrets
  const records = yield* CallRecords
  const { callOf, decide, forget, grant, policyFor } = Judge.make(() => registry.snapshot)
  /** How often a server became another one. */
  const replaced = new Map<string, number>()
  registry.onReplaced((servers) => {
    for (const name of servers) replaced.set(name, (replaced.get(name) ?? 0) + 1)
    // A grant was given to the server as it was declared then.
    forget(servers)
  })

  const permit = (caller: Caller, record: CallRecord, generation: Generation, args: JsonObject) =>
    Effect.gen(function* () {
      const { subject } = record
      const decided = decide(caller, subject, generation, args)
      if (decided.decision === "allow") return
      const where = { ...decided.ground.where, server: subject.server, tool: subject.tool, operation: "permission" }
      const details = { decision: decided.decision, grounds: decided.grounds }
      const name = `'${subject.tool}' on server '${subject.server}'`
      if (decided.decision === "deny") {
        yield* records.asked(record, decided, undefined, undefined)
        return yield* new CallRefused({
          code: "SIGIL_DENIED",
          reason: decided.error ?? "permission_denied",
          text:
            decided.error === undefined
              ? `The call of ${name} is denied by ${decided.decidedBy}.`
              : `The call of ${name} is refused: ${decided.decidedBy} has a subject_glob, and the call has no subject.`,
          where,
          details
        })
      }
      const network = decided.facets.network === "ask"
      if (caller.yes && !network) return yield* records.asked(record, decided, "approved", "yes")
      const call = callOf(subject, generation, args)
      const remedy = remedyOf(policyFor(caller), call, decided)
      const grantable = decided.grantable
      const asking = Permission.facetNames.filter((facet) => decided.facets[facet] === "ask")
      const shown = secrets.redactJson(args, "arguments")
      const before = replaced.get(subject.server)
      const given = yield* caller.approver.ask({
        server: subject.server,
        tool: subject.tool,
        visibleName: subject.visibleName,
        trustClass: generation.declaration.trust.trustClass,
        description: secrets.redactText(subject.description),
        destructive: subject.destructive,
        // Redaction keeps shapes: an object stays one.
        args: shown as JsonObject,
        facets: asking,
        // Each of them, or it would seem that answering one is all there is to it.
        why: [...new Set(asking.map((facet) => decided.grounds[facet].by))].join(" and "),
        grantable,
        ...(remedy.rule === undefined ? {} : { rule: remedy.rule })
      })
      // An answer that was not offered is a yes to what was: this one call.
      const offered = { session: grantable, always: remedy.rule !== undefined }
      const answer: Answer | "unavailable" =
        (given === "session" || given === "always") && !offered[given] ? "once" : given
      switch (answer) {
        case "once":
          return yield* records.asked(record, decided, "approved", answer)
        case "session":
        case "always":
          yield* records.asked(record, decided, answer === "session" ? "approved_for_session" : "approved", answer)
          // The rule that `always` wrote is read at the next start; until then the grant stands in for it.
          // Whoever was asked about an earlier declaration has said nothing about this one.
          if (grantable && call.grantKey !== undefined && replaced.get(subject.server) === before) grant(call.grantKey)
          return
        case "deny":
          yield* records.asked(record, decided, "denied", undefined)
          return yield* new CallRefused({
            code: "SIGIL_DENIED",
            reason: "denied_by_user",
            text: `The call of ${name} was denied.`,
            fix: "Nothing was sent. Call again to be asked again.",
            where
          })
        case "unavailable":
          yield* records.asked(record, decided, undefined, undefined)
          return yield* new CallRefused({
            code: "SIGIL_APPROVAL_REQUIRED",
            reason: "approval_required",
            text: `The call of ${name} needs consent (${decided.decidedBy}), and nobody can be asked here.`,
            fix: network ? remedy.text : `Answer this one call with --yes. ${remedy.text.replaceAll("\n", "\n  ")}`,
            where,
            details: {
              ...details,
              facets: decided.facets,
              ...(remedy.rule === undefined ? {} : { rule: remedy.rule }),
              ...(remedy.toml === undefined ? {} : { toml: remedy.toml })
            }
          })
      }
    })

  return Gates.of({
    decide,
    permit,
    consentToStart: StartConsent.make(registry, records, policyFor),
    isClean: (generation, args) =>
      SecretEgress.keeps(secrets, generation.declaration.trust.allowSecrets, args) === undefined,
    secrets: (subject, generation, args) =>
      Effect.suspend(() => {
        const kept = SecretEgress.keeps(secrets, generation.declaration.trust.allowSecrets, args)
        if (kept === undefined) return Effect.void
        if (kept.why === "placeholder") {
          return new CallRefused({
            code: "SIGIL_REDACTED_WRITEBACK",
            reason: "redacted_writeback",
            text: `The arguments hold, at ${kept.path || "/"}, a placeholder that sigil put in place of a hidden value. Sending it would overwrite the real value. Nothing was sent.`,
            where: { server: subject.server, tool: subject.tool, operation: "secret_gate" }
          })
        }
        return new CallRefused({
          code: "SIGIL_SECRET_BLOCKED",
          reason: "permission_denied",
          text: `The arguments hold a secret at ${kept.path || "/"}, and server '${subject.server}' may not receive secrets. Nothing was sent.`,
          where: { server: subject.server, tool: subject.tool, operation: "secret_gate" }
        })
      })
  })
})

/** Gates over the settings and secrets of the runtime. */
export const layer: Layer.Layer<Gates, never, Registry | Secrets | CallRecords> = Layer.effect(Gates, make)

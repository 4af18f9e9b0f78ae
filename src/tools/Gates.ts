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
import { Secrets } from "../policy/Secrets.ts"
import type { Generation } from "../server/Generation.ts"
import { Registry } from "../server/Registry.ts"
import type { Caller } from "./Caller.ts"
import { type CallRecord, CallRecords } from "./CallRecords.ts"
import { CallRefused } from "./CallRefused.ts"
import { sanitise } from "./Naming.ts"

/** What is asked for: one tool, or one surface operation of a server. */
export interface Subject {
  /** Exact server name. */
  readonly server: string
  /** Exact tool name, or the surface's part such as `resources_read` (R section 2). */
  readonly tool: string
  readonly visibleName: string
  readonly description: string
  /** The server marks it as destructive. */
  readonly destructive: boolean
  readonly operation: "tool" | "resource" | "prompt"
}

/** Permission and secrets. */
export class Gates extends Context.Tag("sigil/tools/Gates")<
  Gates,
  {
    /** What permission says; asks nobody. The same subject object is judged once. */
    readonly decide: (subject: Subject, generation: Generation) => Permission.Decision
    /** Asks where a rule or default asks; fails unless the request may be made. */
    readonly permit: (
      caller: Caller,
      record: CallRecord,
      generation: Generation,
      args: JsonObject
    ) => Effect.Effect<void, CallRefused | AuditError>
    /** Whether the arguments may leave as far as known secrets go. */
    readonly isClean: (generation: Generation, args: JsonObject) => boolean
    /** Fails when a known secret would leave to a server that may not have it. */
    readonly secrets: (subject: Subject, generation: Generation, args: JsonObject) => Effect.Effect<void, CallRefused>
  }
>() {}

const make = Effect.gen(function* () {
  const registry = yield* Registry
  const secrets = yield* Secrets
  const records = yield* CallRecords
  const sessionGrants = new Set<string>()
  const judged = new WeakMap<Subject, { readonly grants: number; readonly decision: Permission.Decision }>()

  const judge = (subject: Subject, generation: Generation): Permission.Decision => {
    const { permission, networkMode } = registry.snapshot.settings
    const { trust } = generation.declaration
    return Permission.decide({
      mode: permission.mode,
      tools: permission.tools,
      rules: permission.rules,
      approvalDefault: trust.approvalDefault,
      trustClass: trust.trustClass,
      server: subject.server,
      tool: subject.tool,
      serverPart: sanitise(subject.server),
      toolPart: sanitise(subject.tool),
      visibleName: subject.visibleName,
      destructiveHint: subject.destructive,
      networkMode,
      sessionGrants,
      operation: subject.operation
    })
  }
  /** Depends on the run's settings, the subject and the session's grants, of which only the last can change. */
  const decide = (subject: Subject, generation: Generation): Permission.Decision => {
    const known = judged.get(subject)
    if (known !== undefined && known.grants === sessionGrants.size) return known.decision
    const decision = judge(subject, generation)
    judged.set(subject, { grants: sessionGrants.size, decision })
    return decision
  }

  const permit = (caller: Caller, record: CallRecord, generation: Generation, args: JsonObject) =>
    Effect.gen(function* () {
      const { subject } = record
      const decided = decide(subject, generation)
      if (decided.decision === "allow") return
      const where = { server: subject.server, tool: subject.tool, operation: "permission" }
      const name = `'${subject.tool}' on server '${subject.server}'`
      if (decided.decision === "deny") {
        yield* records.asked(record, decided, undefined, undefined)
        return yield* new CallRefused({
          code: "SIGIL_DENIED",
          reason: "permission_denied",
          text: `The call of ${name} is denied by ${decided.decidedBy}.`,
          where
        })
      }
      const network = decided.facets.network === "ask"
      if (caller.yes && !network) return yield* records.asked(record, decided, "approved", "yes")
      const asking = Object.entries(decided.facets).flatMap(([facet, verdict]) => (verdict === "ask" ? [facet] : []))
      const shown = secrets.redactJson(args, "result")
      const answer = yield* caller.approver.ask({
        server: subject.server,
        tool: subject.tool,
        visibleName: subject.visibleName,
        trustClass: generation.declaration.trust.trustClass,
        description: secrets.redactText(subject.description),
        destructive: subject.destructive,
        // Redaction keeps shapes: an object stays one.
        args: shown as JsonObject,
        facets: asking,
        why: decided.decidedBy,
        grantable: !network
      })
      switch (answer) {
        case "once":
        case "always":
          return yield* records.asked(record, decided, "approved", answer)
        case "session":
          yield* records.asked(record, decided, "approved_for_session", answer)
          sessionGrants.add(Permission.grantKey(subject.server, subject.tool))
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
            fix: network
              ? 'The network policy asks: set [web] network_mode = "allow" in sigil.toml.'
              : `Add --yes to this call, or this rule to sigil.toml:\n  [[permission.rules]]\n  tool_name = "${subject.visibleName}"\n  mode = "allow"`,
            where,
            details: { rule: { tool_name: subject.visibleName, mode: "allow" }, facets: decided.facets }
          })
      }
    })

  return Gates.of({
    decide,
    permit,
    isClean: (generation, args) =>
      secrets.containsPlaceholder(args) === undefined &&
      (generation.declaration.trust.allowSecrets || secrets.containsSecret(args) === undefined),
    secrets: (subject, generation, args) =>
      Effect.suspend(() => {
        const placeholder = secrets.containsPlaceholder(args)
        if (placeholder !== undefined) {
          return new CallRefused({
            code: "SIGIL_REDACTED_WRITEBACK",
            reason: "redacted_writeback",
            text: `The arguments hold, at ${placeholder.path || "/"}, a placeholder that sigil put in place of a hidden value. Sending it would overwrite the real value. Nothing was sent.`,
            where: { server: subject.server, tool: subject.tool, operation: "secret_gate" }
          })
        }
        const found = generation.declaration.trust.allowSecrets ? undefined : secrets.containsSecret(args)
        return found === undefined
          ? Effect.void
          : new CallRefused({
              code: "SIGIL_SECRET_BLOCKED",
              reason: "permission_denied",
              text: `The arguments hold a known secret at ${found.path || "/"}, and server '${subject.server}' may not receive secrets. Nothing was sent.`,
              where: { server: subject.server, tool: subject.tool, operation: "secret_gate" }
            })
      })
  })
})

/** Gates over the settings and secrets of the runtime. */
export const layer: Layer.Layer<Gates, never, Registry | Secrets | CallRecords> = Layer.effect(Gates, make)

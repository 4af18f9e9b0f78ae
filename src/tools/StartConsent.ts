/**
 * Consent to the start of a server under a network policy that asks (spec section 8, R section 6.6).
 *
 * A process can always reach the network, so such a policy lets none start by itself. The yes is given for this very
 * start: it covers no later one, and none of the calls, which are asked for by themselves. Nobody is asked about a
 * server that another gate refuses anyway. Where nobody can be asked the network gate refuses with its own words.
 */
import * as Effect from "effect/Effect"
import type { AuditError } from "../audit/AuditError.ts"
import type { ConfigSnapshot } from "../config/Configuration.ts"
import * as Permission from "../policy/Permission.ts"
import { ACTIVATION_TOOL } from "../policy/permission/Call.ts"
import type { Registry } from "../server/Registry.ts"
import type { Approver } from "./Approver.ts"
import type { Caller } from "./Caller.ts"
import type { CallRecords } from "./CallRecords.ts"
import { CallRefused } from "./CallRefused.ts"

/** Whether somebody said yes to the network ask of the next start; fails when they said no. */
export type StartConsent = (caller: Caller, server: string) => Effect.Effect<boolean, CallRefused | AuditError>

/** The network facet alone: who calls a server wants it started, and says so by calling. */
const startDecision = (policy: Permission.Policy, server: string, trustClass: string): Permission.Decision =>
  Permission.decide(
    { ...Permission.defaultPolicy, networkMode: policy.networkMode, ...where(policy) },
    {
      ...Permission.mcpActivation({ server, trustClass, approvalDefault: "allow" }),
      access: "read"
    },
    new Set()
  )

const where = ({ networkWhere }: Permission.Policy) => (networkWhere === undefined ? {} : { networkWhere })

const trustOf = (snapshot: ConfigSnapshot, server: string): string => {
  const entry = snapshot.servers.find((one) => one._tag === "Valid" && one.declaration.name === server)
  return entry?._tag === "Valid" ? entry.declaration.trust.trustClass : "third_party"
}

/** Asks the caller's approver. */
export const make = (
  registry: Registry["Type"],
  records: CallRecords["Type"],
  policyFor: (caller: Caller) => Permission.Policy
): StartConsent => {
  const asked = (caller: Caller, server: string) =>
    Effect.gen(function* () {
      const verdicts = yield* Effect.orElseSucceed(registry.explain(server), () => [])
      const refusal = verdicts.find(({ verdict }) => verdict === "refuse")?.refusal
      if (refusal?.reason !== "network_approval_required") return false
      const trustClass = trustOf(registry.snapshot, server)
      const decided = startDecision(policyFor(caller), server, trustClass)
      const about = `mcp_server:${server}`
      const question: Parameters<Approver["ask"]>[0] = {
        kind: "start",
        server,
        tool: ACTIVATION_TOOL,
        visibleName: ACTIVATION_TOOL,
        trustClass,
        description: "",
        destructive: false,
        args: { server_name: server },
        facets: ["network"],
        why: decided.decidedBy,
        grantable: false
      }
      const answer = yield* caller.approver.ask(question)
      if (answer === "unavailable") return false
      const record = records.open(
        { server, tool: ACTIVATION_TOOL, visibleName: about, description: "", destructive: false, operation: "tool" },
        "server/activate"
      )
      if (answer !== "deny") {
        yield* records.asked(record, decided, "approved", "once")
        return true
      }
      yield* records.asked(record, decided, "denied", undefined)
      return yield* new CallRefused({
        code: "SIGIL_DENIED",
        reason: "denied_by_user",
        text: `The start of server '${server}' was denied.`,
        fix: "Nothing was started. Call again to be asked again.",
        where: { server, operation: "permission" }
      })
    })
  return (caller, server) =>
    Effect.suspend(() =>
      registry.snapshot.settings.networkMode === "ask" && registry.status(server).generation === undefined
        ? asked(caller, server)
        : Effect.succeed(false)
    )
}

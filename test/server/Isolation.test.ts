/** The gate in front of `isolation = "pidns"`: with a launcher, or not at all. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Configuration } from "../../src/config/Configuration.ts"
import type { ServerDeclaration } from "../../src/config/ServerDeclaration.ts"
import type { Receipt } from "../../src/platform/PidNamespace.ts"
import { Admission } from "../../src/server/Admission.ts"
import type { Plan } from "../../src/transport/Transport.ts"
import { declared, withFakes } from "../support/FakeRuntime.ts"

const available: Receipt = {
  _tag: "Available",
  launcher: { file: "/usr/bin/unshare", args: ["--pid", "--"], ownProc: true, userNamespace: false }
}

/** Admits one server under an answer of the system. */
const admitted = (more: Partial<ServerDeclaration>, pidNamespace?: Receipt) => {
  const entry = declared("a", more)
  return Effect.gen(function* () {
    const admission = yield* Admission
    const snapshot = yield* Effect.flatMap(Configuration, ({ load }) => load)
    const facts = { snapshot, networkApproved: false }
    const verdicts = yield* admission.explain(entry, facts)
    const outcome = yield* Effect.either(admission.admit(entry, facts))
    return { outcome, verdict: verdicts.find(({ gate }) => gate === "executable") }
  }).pipe(withFakes({ servers: {}, entries: [entry], ...(pidNamespace === undefined ? {} : { pidNamespace }) }))
}

const launcherOf = (plan: Plan) => (plan._tag === "stdio" ? plan.launcher : undefined)

/** What a refusal says. */
const refusal = (more: Partial<ServerDeclaration>, pidNamespace?: Receipt) =>
  Effect.map(admitted(more, pidNamespace), ({ outcome, verdict }) => {
    assert.equal(verdict?.verdict, "refuse")
    if (outcome._tag === "Right") return assert.fail("admitted")
    const { code, reason, text, fix, where } = outcome.left
    return { code, reason, text, fix, field: where?.field }
  })

describe("the executable gate", () => {
  it.effect("puts the launcher into the plan and says so", () =>
    Effect.gen(function* () {
      const { outcome, verdict } = yield* admitted({ isolation: "pidns" }, available)
      if (outcome._tag === "Left") return assert.fail(outcome.left.text)
      assert.deepEqual(launcherOf(outcome.right.plan), available.launcher)
      assert.equal(verdict?.why, `${process.execPath}, in a PID namespace of its own`)
    })
  )

  it.effect("asks for none that is not declared", () =>
    Effect.gen(function* () {
      const { outcome, verdict } = yield* admitted({ isolation: "none" }, available)
      if (outcome._tag === "Left") return assert.fail(outcome.left.text)
      assert.isUndefined(launcherOf(outcome.right.plan))
      assert.equal(verdict?.why, process.execPath)
    })
  )

  it.effect("refuses what the system cannot do, with its reason and remedy", () =>
    Effect.gen(function* () {
      const none: Receipt = { _tag: "Unavailable", reason: "unshare_missing", text: "None here.", fix: "Install it." }
      assert.deepEqual(yield* refusal({ isolation: "pidns" }, none), {
        code: "SIGIL_ISOLATION_UNAVAILABLE",
        reason: "unshare_missing",
        text: `The server 'a' asks for isolation = "pidns", which it cannot have: None here.`,
        fix: `Install it. Or set isolation = "none" for 'a'.`,
        field: "isolation"
      })
    })
  )

  it.effect("refuses a server of this very process, which cannot be put elsewhere", () =>
    Effect.gen(function* () {
      const { code, reason } = yield* refusal({ isolation: "pidns", inProcess: true }, available)
      assert.deepEqual({ code, reason }, { code: "SIGIL_ISOLATION_UNAVAILABLE", reason: "in_process" })
    })
  )
})

/** `sigil doctor`: findings with a way to mend each; exit 1 when something is broken. */
import * as Effect from "effect/Effect"
import { fixOf } from "../../base/Failure.ts"
import { SECOND_MS } from "../../base/Units.ts"
import { Locations } from "../../config/Locations.ts"
import { nameOf } from "../../config/ServerDeclaration.ts"
import { type Finding, fine } from "../../doctor/Check.ts"
import { checkApprovals } from "../../doctor/ApprovalCheck.ts"
import { checkConfig } from "../../doctor/ConfigCheck.ts"
import { checkPolicy } from "../../doctor/PolicyCheck.ts"
import { checkPermission } from "../../doctor/PermissionCheck.ts"
import { checkSandbox } from "../../doctor/SandboxCheck.ts"
import { checkServer } from "../../doctor/ServerCheck.ts"
import { checkWorkspace } from "../../doctor/WorkspaceCheck.ts"
import * as Declarations from "../../runtime/Declarations.ts"
import * as Sigil from "../../runtime/Sigil.ts"
import { Admission } from "../../server/Admission.ts"
import { type ActivationError, Registry, type ServerStatus } from "../../server/Registry.ts"
import type { Input } from "../commands/Doctor.ts"
import { placeOf } from "../FailureText.ts"
import type { Handler } from "../Handler.ts"
import { dim, green, type Line, red, yellow } from "../Markup.ts"
import { Output } from "../Output.ts"
import { type Attempt, connectAll } from "../Probing.ts"
import { rows, runtimeOptions, snapshot } from "../Session.ts"

/** A few log messages by themselves are normal. */
const MANY_IDLE_MESSAGES = 100

const gather = Effect.gen(function* () {
  const facts = { snapshot: yield* snapshot, networkApproved: false }
  const admission = yield* Admission
  const servers = yield* Effect.forEach(facts.snapshot.servers, (entry) =>
    Effect.map(admission.explain(entry, facts), (verdicts) => checkServer(entry, verdicts))
  )
  const none =
    facts.snapshot.servers.length === 0
      ? [fine("mcp", "servers", "no servers configured; declare one with 'sigil mcp add NAME COMMAND…'")]
      : []
  return [
    ...checkConfig(facts.snapshot),
    ...checkPolicy(facts.snapshot),
    ...checkPermission(facts.snapshot),
    ...(yield* checkWorkspace(facts.snapshot, yield* Locations)),
    ...(yield* checkApprovals),
    checkSandbox(facts.snapshot.settings, yield* admission.sandbox(facts.snapshot)),
    ...servers.flat(),
    ...none
  ]
})

/** What one attempt to connect came to. */
const probed = (
  { name: subject, remote }: { readonly name: string; readonly remote: boolean },
  attempt: Attempt,
  now: ServerStatus,
  totalMs: number
): Finding => {
  const failed = (failure: ActivationError | undefined): Finding => ({
    code: "mcp:probe",
    subject,
    status: "error",
    message: failure?.text ?? "The start failed in an unexpected way.",
    ...(failure === undefined ? {} : { fix: fixOf(failure) }),
    ...(failure?.where === undefined ? {} : { where: failure.where })
  })
  if (attempt._tag === "Failed") return failed(attempt.failure)
  if (attempt._tag === "Queued") {
    return {
      code: "mcp:probe",
      subject,
      status: "warn",
      message: `Not tried: its turn to start did not come within ${totalMs} ms, because others held the places.`,
      fix: "Give --timeout SECS, or look at the servers that did not become ready."
    }
  }
  if (attempt._tag === "Late") {
    return {
      code: "mcp:probe",
      subject,
      status: "error",
      message: attempt.text,
      // A remote server leaves no log here.
      fix: remote ? "Give --timeout SECS." : `Give --timeout SECS, or see 'sigil mcp logs ${subject}'.`
    }
  }
  const { generation } = attempt
  if (now.generation !== generation) return failed(now.failure)
  const { connection, lists, readyMs, tools } = generation
  const { idleMessages, noiseLines, strayMessages } = connection.oddities
  const odd = [
    ...(noiseLines > 0 ? [`${noiseLines} noise line(s)`] : []),
    ...(strayMessages > 0 ? [`${strayMessages} odd message(s)`] : []),
    ...(idleMessages > MANY_IDLE_MESSAGES ? [`${idleMessages} messages while nothing was asked of it`] : []),
    ...lists.failures().values()
  ]
  return {
    code: "mcp:probe",
    subject,
    status: odd.length > 0 ? "warn" : "ok",
    message: [`ready in ${Math.round(readyMs)} ms with ${tools.length} tool(s)`, ...odd].join("; ")
  }
}

/** Connects to everything that could start, inside one total bound. */
const probe = (totalMs: number) =>
  Effect.gen(function* () {
    const registry = yield* Registry
    const startable = (yield* rows)
      .filter(({ state }) => state.state === "configured")
      .map(({ entry }) => ({
        name: nameOf(entry),
        remote: entry._tag === "Valid" && entry.declaration.endpoint._tag === "remote"
      }))
    const attempts = yield* connectAll(
      startable.map(({ name }) => name),
      totalMs
    )
    // Judged when all have had their time: an odd server is often odd a little later.
    const found = startable.flatMap((subject, index) => {
      const attempt = attempts[index]
      return attempt === undefined ? [] : [probed(subject, attempt, registry.status(subject.name), totalMs)]
    })
    const left = (yield* registry.closeAll).filter(({ report }) => !report.complete)
    return [
      ...found,
      ...left.map(({ server, report }): Finding => ({
        code: "mcp:cleanup",
        subject: server,
        status: "error",
        message: `Processes could not be confirmed gone: ${report.survivors.map(({ pid }) => pid).join(", ")}`,
        fix: "End these processes by their id."
      }))
    ]
  })

const marks = { ok: green("[ok]   "), warn: yellow("[warn] "), error: red("[error]") } as const

const linesOf = (finding: Finding): ReadonlyArray<Line> => {
  const place = finding.where === undefined ? undefined : placeOf(finding.where)
  const [first = "", ...more] = finding.message.split("\n")
  return [
    [marks[finding.status], ` ${finding.code} ${finding.subject} - ${first}`],
    ...more.map((line): Line => `          ${line}`),
    ...(place === undefined || finding.status === "ok" ? [] : [[dim(`          at ${place}`)]]),
    ...(finding.fix === undefined ? [] : [`          fix: ${finding.fix}`])
  ]
}

const print = (findings: ReadonlyArray<Finding>) =>
  Effect.gen(function* () {
    const output = yield* Output
    const count = (status: Finding["status"]): number => findings.filter((finding) => finding.status === status).length
    const summary = { ok: count("ok"), warn: count("warn"), error: count("error") }
    yield* output.document("doctor", {
      schema: "sigil.doctor/1",
      ok: summary.error === 0,
      summary,
      checks: findings
    })
    yield* output.text([
      "sigil doctor",
      ...findings.flatMap(linesOf),
      `summary: ${summary.ok} ok, ${summary.warn} warning(s), ${summary.error} error(s)`
    ])
    return summary.error === 0 ? 0 : 1
  })

/** The handler. */
export const handler: Handler<Input> = ({ options }) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    if (!options.probe) {
      return yield* Effect.flatMap(gather, print).pipe(Effect.provide(Declarations.layer(run)))
    }
    return yield* Effect.gen(function* () {
      const findings = yield* gather
      return yield* print([...findings, ...(yield* probe(options.timeout * SECOND_MS))])
    }).pipe(Effect.provide(Sigil.layer(run)))
  })

/** `sigil mcp approve` and `reject`: stores the user's answer about project servers; starts nothing. */
import * as Effect from "effect/Effect"
import { projectDecision } from "../audit/AuditEntries.ts"
import { AuditLog } from "../audit/AuditLog.ts"
import { declarationFingerprint } from "../config/Fingerprint.ts"
import { placeInProject } from "../config/ProjectIdentity.ts"
import { nameOf, type ServerDeclaration } from "../config/ServerDeclaration.ts"
import { ApprovalStore } from "../policy/ApprovalStore.ts"
import { keptOf } from "../policy/EntryDifference.ts"
import { leftOutOfAll, needsApproval } from "../policy/ProjectApproval.ts"
import { Output } from "./Output.ts"
import { noteLostFiles, rowOf, rows, snapshot } from "./Session.ts"
import { UsageError } from "./UsageError.ts"

/** On record before it is stored: a decision that nobody can look up later is not made. */
const onRecord = (
  action: "approve" | "reject" | "approve_all",
  subjects: ReadonlyArray<{ readonly identity: string; readonly name: string; readonly fingerprint: string }>
) =>
  Effect.flatMap(AuditLog, (audit) =>
    audit.appendAll(
      subjects.map(({ identity, name, fingerprint }) =>
        projectDecision({ action, server: name, project: identity, fingerprint })
      )
    )
  )

/** What stands for all entries of a project in a record. */
const EVERY = "*"

const answered = (declaration: ServerDeclaration, identity: string) => ({
  identity,
  name: declaration.name,
  fingerprint: declarationFingerprint(declaration),
  place: placeInProject(declaration.source.file),
  entry: keptOf(declaration)
})

const notForApproval = (name: string, { plugin, scope }: ServerDeclaration): UsageError =>
  new UsageError({
    code: "SIGIL_USAGE",
    reason: "needs_no_approval",
    text: `The server '${name}' comes from ${plugin === undefined ? `scope ${scope}` : "a plugin of your own"}, which needs no approval.`,
    fix: scope === "cli" ? "Just use it." : `Use 'sigil mcp disable ${name}' to keep it from starting.`,
    where: { server: name }
  })

const one = (name: string, action: "approve" | "reject") =>
  Effect.gen(function* () {
    const store = yield* ApprovalStore
    const { projectIdentity } = yield* snapshot
    const { entry } = yield* rowOf(name)
    // First of all: a decision that cannot be stored is not put on record either.
    yield* store.read
    if (entry._tag === "Broken") {
      if (action === "approve" || !needsApproval(entry.broken)) return yield* entry.broken.error
      // A rejection is by name, so it holds for an entry that cannot be read, too.
      const subject = { identity: projectIdentity, name, fingerprint: "", place: "" }
      yield* onRecord("reject", [subject])
      yield* store.decide([subject], "rejected")
      return { decided: [name], skipped: [] }
    }
    const { declaration } = entry
    if (!needsApproval(declaration)) return yield* notForApproval(name, declaration)
    yield* onRecord(action, [answered(declaration, projectIdentity)])
    yield* store.decide([answered(declaration, projectIdentity)], action === "approve" ? "approved" : "rejected")
    return { decided: [name], skipped: [] }
  })

const all = (action: "approve" | "reject") =>
  Effect.gen(function* () {
    const store = yield* ApprovalStore
    const { projectIdentity } = yield* snapshot
    const stored = yield* store.read
    if (action === "reject" && stored.approveAllProjects.includes(projectIdentity)) {
      // Whoever rejects everything does not want later entries to be covered; what only the flag covered is pending.
      yield* onRecord("reject", [{ identity: projectIdentity, name: EVERY, fingerprint: "" }])
      yield* store.approveAll(projectIdentity, false)
    }
    const pending = (yield* rows).filter(({ state }) => state.state === "pending")
    const declarations = pending.flatMap(({ entry }) => (entry._tag === "Valid" ? [entry.declaration] : []))
    const judged = declarations.map((declaration) => ({
      declaration,
      why: action === "approve" ? leftOutOfAll(declaration, projectIdentity) : undefined
    }))
    const chosen = judged.filter(({ why }) => why === undefined).map(({ declaration }) => declaration)
    yield* onRecord(action === "approve" ? "approve_all" : action, [
      ...chosen.map((declaration) => answered(declaration, projectIdentity)),
      // The flag covers entries that are not there yet, so it is on record by itself.
      ...(action === "approve" ? [{ identity: projectIdentity, name: EVERY, fingerprint: "" }] : [])
    ])
    yield* store.decide(
      chosen.map((declaration) => answered(declaration, projectIdentity)),
      action === "approve" ? "approved" : "rejected"
    )
    if (action === "approve") yield* store.approveAll(projectIdentity, true)
    return {
      decided: chosen.map(({ name }) => name),
      skipped: judged.flatMap(({ declaration, why }) => (why === undefined ? [] : [{ name: declaration.name, why }]))
    }
  })

/** Decides about one server or all pending ones, and prints what was decided. */
export const decide = (
  action: "approve" | "reject",
  input: { readonly name: string | undefined; readonly all: boolean }
) =>
  Effect.gen(function* () {
    const output = yield* Output
    const { servers } = yield* snapshot
    const outcome = input.name === undefined ? yield* all(action) : yield* one(input.name, action)
    yield* output.document("decision", { schema: "sigil.mcp.decision/1", action, ...outcome })
    const { decided, skipped } = outcome
    const states = new Map((yield* rows).map(({ entry, state }) => [nameOf(entry), state]))
    const verb = action === "approve" ? "Approved" : "Rejected"
    if (servers.filter((entry) => nameOf(entry) !== "").length === 0) yield* output.text(["No servers are declared."])
    else if (decided.length === 0 && skipped.length === 0) yield* output.text(["Nothing is pending."])
    if (decided.length === 0) yield* noteLostFiles
    if (decided.length > 0) {
      yield* output.text([
        `${verb} ${decided.length}: ${decided.join(", ")}`,
        action === "approve" ? "A server starts when it is used." : "It will not be asked about again."
      ])
    }
    for (const name of action === "approve" ? decided : []) {
      const reason = states.get(name)?.reason
      if (reason !== undefined) yield* output.text([`It still does not start: ${reason.message}`])
    }
    for (const { name, why } of skipped) {
      yield* output.text([`Left out: ${name}, because ${why}. Approve it by name: sigil mcp approve ${name}`])
    }
    if (input.all && action === "approve") {
      yield* output.note(
        "Later entries of this project count as approved too, but for remote ones, ones that read your environment, ones with looser trust and ones in files outside of it."
      )
    }
    return 0
  })

/** The decision of a person about an entry of a repository (spec section 4). */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { declarationFingerprint } from "../../config/Fingerprint.ts"
import { MANIFEST, manifestDigest } from "../../config/Plugins.ts"
import { placeInProject } from "../../config/ProjectIdentity.ts"
import type { ServerDeclaration } from "../../config/ServerDeclaration.ts"
import type { ApprovalStore } from "../../policy/ApprovalStore.ts"
import * as ProjectApproval from "../../policy/ProjectApproval.ts"
import { AdmissionError } from "../ServerError.ts"
import { type Gate, known, located } from "./Gate.ts"

/** The stored answers. An unreadable store counts as empty: everything is pending. */
export const stored = (
  approvals: Context.Tag.Service<typeof ApprovalStore>
): Effect.Effect<ProjectApproval.Approvals> =>
  approvals.read.pipe(Effect.orElseSucceed(() => ProjectApproval.emptyApprovals))

/** What they say of an entry as it is written now. */
export const decisionOf = (
  answers: ProjectApproval.Approvals,
  declaration: ServerDeclaration,
  identity: string
): ProjectApproval.Decision =>
  ProjectApproval.decide(answers, {
    identity,
    name: declaration.name,
    fingerprint: declarationFingerprint(declaration),
    place: placeInProject(declaration.source.file),
    coverable: ProjectApproval.leftOutOfAll(declaration, identity) === undefined
  })

/** Refuses what nobody approved as it is written now. */
export const approval =
  (approvals: Context.Tag.Service<typeof ApprovalStore>): Gate =>
  (state) =>
    Effect.gen(function* () {
      const declaration = yield* known(state.declaration, "approval")
      yield* unchangedManifest(declaration)
      if (!ProjectApproval.needsApproval(declaration))
        return declaration.plugin === undefined
          ? `scope ${declaration.scope} needs no approval`
          : "a plugin of your own needs no approval; its manifest is as it was read"
      const identity = state.facts.snapshot.projectIdentity
      const read = yield* Effect.either(approvals.read)
      const answers = Either.isRight(read) ? read.right : ProjectApproval.emptyApprovals
      const left = ProjectApproval.leftOutOfAll(declaration, identity)
      const decision = decisionOf(answers, declaration, identity)
      switch (decision._tag) {
        case "Approved":
          return decision.why
        case "Rejected":
          return yield* new AdmissionError({
            code: "SIGIL_REJECTED",
            reason: "rejected",
            text: `The server '${declaration.name}' was rejected for this project.`,
            fix: `Run 'sigil mcp approve ${declaration.name}' to change the decision.`,
            where: located(declaration, "approval")
          })
        case "Pending":
          return yield* new AdmissionError({
            code: "SIGIL_PENDING_APPROVAL",
            reason: Either.isLeft(read)
              ? "decisions_unusable"
              : decision.changed
                ? "changed_since_approval"
                : "never_decided",
            text: [
              Either.isLeft(read)
                ? `Whether the server '${declaration.name}' was approved is not known, so it is pending: ${read.left.text}`
                : decision.changed
                  ? `The server '${declaration.name}' changed since it was approved, so it is pending again.`
                  : `The server '${declaration.name}' is declared by ${declaredBy(declaration)} and has not been approved.`,
              ...(left !== undefined && answers.approveAllProjects.includes(identity)
                ? [`'approve --all' of this project does not cover it: ${left}.`]
                : [])
            ].join(" "),
            fix: Either.isLeft(read)
              ? read.left.fix
              : `Review it with 'sigil mcp pending ${declaration.name}', then run 'sigil mcp approve ${declaration.name}'.`,
            where: located(declaration, "approval")
          })
      }
    })

const declaredBy = ({ plugin, scope }: ServerDeclaration): string => {
  if (plugin !== undefined) return `the plugin '${plugin.id}' of the project`
  return scope === "imported" ? "what was imported" : "the project"
}

/**
 * A plugin counts as its manifest was read (R section 1.10): what stands there now may say something else, and nobody
 * has decided about that.
 */
const unchangedManifest = (declaration: ServerDeclaration): Effect.Effect<void, AdmissionError> =>
  Effect.suspend(() => {
    const { name, plugin } = declaration
    if (plugin === undefined || manifestDigest(plugin) === plugin.manifest) return Effect.void
    return new AdmissionError({
      code: "SIGIL_PLUGIN_CHANGED",
      reason: "plugin_origin_attestation_mismatch",
      text: `The ${MANIFEST} of the plugin '${plugin.id}' changed since it was read, so the server '${name}' is not started.`,
      fix: "Run the command again; in a session, reload first.",
      where: located(declaration, "approval")
    })
  })

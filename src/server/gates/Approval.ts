/** The decision of a person about an entry of a repository (spec section 4). */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { approvalFingerprint } from "../../config/Fingerprint.ts"
import { placeInProject } from "../../config/ProjectIdentity.ts"
import type { ApprovalStore } from "../../policy/ApprovalStore.ts"
import * as ProjectApproval from "../../policy/ProjectApproval.ts"
import { AdmissionError } from "../ServerError.ts"
import { type Gate, known, located } from "./Gate.ts"

/** Refuses what nobody approved as it is written now. An unreadable store counts as empty: everything is pending. */
export const approval =
  (approvals: Context.Tag.Service<typeof ApprovalStore>): Gate =>
  (state) =>
    Effect.gen(function* () {
      const declaration = yield* known(state.declaration, "approval")
      if (!ProjectApproval.needsApproval(declaration.scope)) return `scope ${declaration.scope} needs no approval`
      const identity = state.facts.snapshot.projectIdentity
      const stored = yield* approvals.read.pipe(Effect.orElseSucceed(() => ProjectApproval.emptyApprovals))
      const decision = ProjectApproval.decide(stored, {
        identity,
        name: declaration.name,
        fingerprint: approvalFingerprint(declaration.raw),
        place: placeInProject(declaration.source.file),
        coverable: ProjectApproval.leftOutOfAll(declaration) === undefined
      })
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
            reason: decision.changed ? "changed_since_approval" : "never_decided",
            text: decision.changed
              ? `The server '${declaration.name}' changed since it was approved, so it is pending again.`
              : `The server '${declaration.name}' is declared by the project and has not been approved.`,
            fix: `Review it with 'sigil mcp pending ${declaration.name}', then run 'sigil mcp approve ${declaration.name}'.`,
            where: located(declaration, "approval")
          })
      }
    })

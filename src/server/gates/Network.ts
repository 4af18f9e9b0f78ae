/** The network policy of the run where a process is spawned (R section 6.6) or a remote server dialled (R section 8.10). */
import * as Effect from "effect/Effect"
import type { ServerDeclaration } from "../../config/ServerDeclaration.ts"
import { describe } from "../../platform/Sandbox.ts"
import * as NetworkPolicy from "../../policy/NetworkPolicy.ts"
import { confinementOf } from "../ProcessCoverage.ts"
import { AdmissionError } from "../ServerError.ts"
import type { Confine } from "./Confine.ts"
import { type Gate, known, located, workingDirectory } from "./Gate.ts"

/** Refuses a process that could reach a network which the run may not use, and a remote server where it may use none. */
export const network =
  (confine: Confine): Gate =>
  (state) =>
    Effect.gen(function* () {
      const declaration = yield* known(state.declaration, "network")
      const expanded = yield* known(state.expanded, "network")
      // The spawn boundary has nothing to say where nothing is spawned; its calls still meet the network facet.
      if (declaration.inProcess === true) return "it lives in this process, so nothing is started"
      const { snapshot, networkApproved } = state.facts
      const { networkMode: mode, permission } = snapshot.settings
      // This mode answers every ask of the run, for the start of a server as for its calls; never a deny.
      const unasked = permission.mode === "danger-full-access"
      const { endpoint } = expanded
      const answered = mode === "ask" && unasked ? ', answered by permission.mode = "danger-full-access"' : ""
      if (endpoint._tag === "remote") {
        const verdict = NetworkPolicy.atDial(mode, unasked || networkApproved)
        if (verdict._tag === "Dial") return `network_mode is ${mode}${answered}`
        return yield* refused(declaration, mode, verdict)
      }
      const receipt = yield* confine(snapshot, workingDirectory(declaration, endpoint, snapshot))
      if (receipt !== undefined) state.sandbox = receipt
      const verdict = NetworkPolicy.atSpawn(mode, unasked || networkApproved, confinementOf(receipt))
      if (verdict._tag === "Spawn") {
        return verdict.effect === "none" && receipt?._tag === "Available"
          ? `network_mode is ${mode}; it has no network, ${describe(receipt)}`
          : `network_mode is ${mode}${answered}`
      }
      return yield* refused(declaration, mode, verdict)
    })

const refused = (
  declaration: ServerDeclaration,
  mode: "allow" | "ask" | "deny",
  verdict: { readonly reason: string; readonly why: string; readonly fix: string }
): AdmissionError =>
  new AdmissionError({
    code: "SIGIL_NETWORK_REFUSED",
    reason: verdict.reason,
    text: `The network policy of this run is '${mode}', and the server '${declaration.name}' cannot be started under it: ${verdict.why}`,
    fix: verdict.fix,
    where: { ...located(declaration, "network"), field: "web.network_mode" }
  })

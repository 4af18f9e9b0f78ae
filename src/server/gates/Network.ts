/** The network policy of the run at the spawn boundary (R section 6.6). */
import * as Effect from "effect/Effect"
import { describe } from "../../platform/Sandbox.ts"
import * as NetworkPolicy from "../../policy/NetworkPolicy.ts"
import { confinementOf } from "../ProcessCoverage.ts"
import { AdmissionError } from "../ServerError.ts"
import type { Confine } from "./Confine.ts"
import { type Gate, known, located, workingDirectory } from "./Gate.ts"

/** Refuses a process that could reach a network which the run may not use. */
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
      const receipt =
        endpoint._tag === "stdio"
          ? yield* confine(snapshot, workingDirectory(declaration, endpoint, snapshot))
          : undefined
      if (receipt !== undefined) state.sandbox = receipt
      const verdict = NetworkPolicy.atSpawn(mode, unasked || networkApproved, confinementOf(receipt))
      if (verdict._tag === "Spawn") {
        return verdict.effect === "none" && receipt?._tag === "Available"
          ? `network_mode is ${mode}; it has no network, ${describe(receipt)}`
          : `network_mode is ${mode}${mode === "ask" && unasked ? ', answered by permission.mode = "danger-full-access"' : ""}`
      }
      return yield* new AdmissionError({
        code: "SIGIL_NETWORK_REFUSED",
        reason: verdict.reason,
        text: `The network policy of this run is '${mode}', and the server '${declaration.name}' cannot be started under it: ${verdict.why}`,
        fix: verdict.fix,
        where: { ...located(declaration, "network"), field: "web.network_mode" }
      })
    })

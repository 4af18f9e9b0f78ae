/** The network policy of the run at the spawn boundary (R section 6.6). */
import * as Effect from "effect/Effect"
import * as NetworkPolicy from "../../policy/NetworkPolicy.ts"
import { AdmissionError } from "../ServerError.ts"
import { type Gate, known, located } from "./Gate.ts"

/** Refuses a process that could reach a network which the run may not use. */
export const network: Gate = (state) =>
  Effect.gen(function* () {
    const declaration = yield* known(state.declaration, "network")
    // The spawn boundary has nothing to say where nothing is spawned; its calls still meet the network facet.
    if (declaration.inProcess === true) return "it lives in this process, so nothing is started"
    const mode = state.facts.snapshot.settings.networkMode
    const verdict = NetworkPolicy.atSpawn(mode, state.facts.networkApproved)
    if (verdict._tag === "Spawn") return `network_mode is ${mode}`
    return yield* new AdmissionError({
      code: "SIGIL_NETWORK_REFUSED",
      reason: verdict.reason,
      text: `The network policy of this run is '${mode}', and the server '${declaration.name}' cannot be started under it: ${verdict.why}`,
      where: { ...located(declaration, "network"), field: "web.network_mode" }
    })
  })

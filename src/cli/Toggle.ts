/** `sigil mcp enable` and `disable`: a private switch of the user, for servers of every source. */
import * as Effect from "effect/Effect"
import { projectDecision } from "../audit/AuditEntries.ts"
import { AuditLog } from "../audit/AuditLog.ts"
import { Toggles } from "../policy/Toggles.ts"
import { Output } from "./Output.ts"
import { rowOf, snapshot } from "./Session.ts"

/** Switches a server for this project and prints where that is kept. */
export const toggle = (action: "enable" | "disable", name: string) =>
  Effect.gen(function* () {
    const output = yield* Output
    const toggles = yield* Toggles
    const { projectIdentity } = yield* snapshot
    const { entry, state } = yield* rowOf(name)
    const scope = entry._tag === "Valid" ? entry.declaration.scope : entry.broken.scope
    yield* Effect.flatMap(AuditLog, (audit) =>
      audit.append(projectDecision({ action, server: name, project: projectIdentity }))
    )
    const file = yield* toggles.set(projectIdentity, name, action === "enable")
    const notes =
      action === "enable" && (state.state === "pending" || state.state === "rejected" || state.state === "invalid")
        ? [`It still does not start: it is ${state.state}.`]
        : []
    yield* output.document("change", {
      schema: "sigil.mcp.change/1",
      action,
      name,
      scope,
      file,
      effective: "next_start",
      notes
    })
    yield* output.text([
      `${action === "enable" ? "Enabled" : "Disabled"} '${name}' for this project: ${file}`,
      ...notes,
      "It takes effect at the next start; the entry itself is unchanged."
    ])
    return 0
  })

/** `sigil audit show`: what was decided, sent and done in this workspace. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["audit", "show"],
  section: "Help and checks",
  summary: "Show records of the audit log.",
  description: [
    "Shows the newest records of this workspace. With --since it shows records from that number on, oldest first.",
    "Records hold no values of arguments or results; known secrets are hidden."
  ],
  examples: [
    { line: "sigil audit show", does: "the newest records" },
    { line: "sigil audit show --server fs --kind tool_execution_finished", does: "how calls of one server ended" },
    { line: "sigil audit show --since 1 --limit 100 --json", does: "the first page for a program" }
  ],
  args: [],
  options: {
    server: { kind: "text", value: "NAME", summary: "Only records about this server." },
    kind: { kind: "text", value: "KIND", summary: "Only records of this kind, e.g. egress_decision_recorded." },
    limit: { kind: "integer", value: "N", default: 50, summary: "Records at most." },
    since: { kind: "integer", value: "SEQ", summary: "Begin with this record." }
  }
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(
  shape,
  () => import("../handlers/AuditShow.ts"),
  ({ options }) =>
    options.limit < 1
      ? "--limit wants a number from 1 on."
      : options.since !== undefined && options.since < 1
        ? "--since wants a record number from 1 on."
        : undefined
)

/** `sigil audit verify`: whether the audit log is whole. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["audit", "verify"],
  section: "Help and checks",
  summary: "Check that no audit record was changed, removed or added.",
  description: [
    "Follows the chain of hashes through all files of this workspace's log, up to the record that audit.head names. Changes nothing.",
    "Exit code 1 when something does not fit."
  ],
  examples: [{ line: "sigil audit verify", does: "the log of this workspace" }],
  args: [],
  options: {}
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/AuditVerify.ts"))

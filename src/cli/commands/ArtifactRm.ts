/** `sigil artifact rm`. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["artifact", "rm"],
  section: "Tools",
  summary: "Remove a kept result.",
  description: ["Results that were cut, and binary content, are kept privately for seven days, 512 MiB at most."],
  examples: [{ line: "sigil artifact rm 0k3f…", does: "by its handle" }],
  args: [{ key: "handle", label: "HANDLE", summary: "As printed with the result.", optional: true }],
  options: { all: { kind: "flag", summary: "All of this workspace." } }
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/ArtifactRm.ts"))

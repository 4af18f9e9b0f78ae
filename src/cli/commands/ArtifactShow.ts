/** `sigil artifact show`. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["artifact", "show"],
  section: "Tools",
  summary: "Print a kept result.",
  description: ["Results that were cut, and binary content, are kept privately for seven days, 512 MiB at most."],
  examples: [{ line: "sigil artifact show 0k3f…", does: "by its handle" }],
  args: [{ key: "handle", label: "HANDLE", summary: "As printed with the result." }],
  options: { save: { kind: "text", value: "FILE", summary: "Write it to a file instead." } }
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/ArtifactShow.ts"))

/** `sigil artifact list`. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["artifact", "list"],
  section: "Tools",
  summary: "List the kept results of this workspace.",
  description: ["Results that were cut, and binary content, are kept privately for seven days, 512 MiB at most."],
  examples: [{ line: "sigil artifact list", does: "newest first" }],
  args: [],
  options: {}
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/ArtifactList.ts"))

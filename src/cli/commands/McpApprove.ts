/** `sigil mcp approve`: decide about the project's servers. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"
import { oneOrAll } from "./OneOrAll.ts"

const shape = shapeOf({
  path: ["mcp", "approve"],
  section: "Project approval",
  summary: "Approve a server of this project.",
  description: [
    "Approves the entry as it is now; a changed entry has to be approved again.",
    "With --all, later entries of this project count as approved too. Remote servers, entries that read your environment and entries with looser trust are left out and listed."
  ],
  examples: [{ line: "sigil mcp approve fs", does: "allow it to start" }],
  usage: ["NAME", "--all"],
  args: [{ key: "name", label: "NAME", summary: "The server.", optional: true }],
  options: { all: { kind: "flag", summary: "All that wait." } }
})

/** Input of the handler: a name, or `all`, never both. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpApprove.ts"), oneOrAll)

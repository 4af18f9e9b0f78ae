/** `sigil mcp reject`: decide about the project's servers. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"
import { oneOrAll } from "./OneOrAll.ts"

const shape = shapeOf({
  path: ["mcp", "reject"],
  section: "Project approval",
  summary: "Refuse a server of this project.",
  description: [
    "A rejected server never starts, whatever its entry says, until you approve it.",
    "With --all, every server that waits is rejected."
  ],
  examples: [{ line: "sigil mcp reject fs", does: "refuse it by name" }],
  usage: ["NAME", "--all"],
  args: [{ key: "name", label: "NAME", summary: "The server.", optional: true }],
  options: { all: { kind: "flag", summary: "All that wait." } }
})

/** Input of the handler: a name, or `all`, never both. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpReject.ts"), oneOrAll)

/** `sigil mcp disable`: the switch of one server. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["mcp", "disable"],
  section: "Servers",
  summary: "Keep a server from starting.",
  description: ["The entry stays where it is; the choice is kept for this project and holds from the next start on."],
  examples: [{ line: "sigil mcp disable fs", does: "from the next start on" }],
  args: [{ key: "name", label: "NAME", summary: "The server." }],
  options: {}
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpDisable.ts"))

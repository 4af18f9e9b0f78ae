/** `sigil mcp enable`: the switch of one server. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["mcp", "enable"],
  section: "Servers",
  summary: "Let a disabled server start again.",
  description: [
    "Undoes 'sigil mcp disable', and an entry that says enabled = false. The entry itself is not edited; the choice is kept for this project."
  ],
  examples: [{ line: "sigil mcp enable fs", does: "from the next start on" }],
  args: [{ key: "name", label: "NAME", summary: "The server." }],
  options: {}
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpEnable.ts"))

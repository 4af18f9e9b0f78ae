/** `sigil mcp pin`: remember which program and which server this is. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["mcp", "pin"],
  section: "Servers",
  summary: "Pin a server to what it is now.",
  description: [
    "Starts the server once, reads who it says it is, and writes that with the fingerprint of its launch into the entry.",
    "From then on a start that differs in any of it is refused. Run it again to accept a change that you expected.",
    "The launch is bound as it is written, not the program file; with a grant of variables the file's hash is bound too."
  ],
  examples: [{ line: "sigil mcp pin github", does: "writes trust.pin_version and trust.pinned" }],
  args: [{ key: "name", label: "NAME", summary: "The server." }],
  options: {}
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpPin.ts"))

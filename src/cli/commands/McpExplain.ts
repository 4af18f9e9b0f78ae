/** `sigil mcp explain`: each gate of admission. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["mcp", "explain"],
  section: "Servers",
  summary: "Explain why a server may or may not start.",
  description: ["Goes through every gate in order, with its verdict and the line that decided. Starts nothing."],
  examples: [{ line: "sigil mcp explain fs", does: "gate by gate" }],
  args: [{ key: "name", label: "NAME", summary: "The server." }],
  options: {}
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpExplain.ts"))

/** `sigil mcp logs`: the last words of a server. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["mcp", "logs"],
  section: "Servers",
  summary: "Show what a server last wrote to its log.",
  description: ["The kept part of its standard error, secrets hidden. Starts nothing."],
  examples: [{ line: "sigil mcp logs fs", does: "after a failed start" }],
  args: [{ key: "name", label: "NAME", summary: "The server." }],
  options: {}
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpLogs.ts"))

/** `sigil mcp get`: one declaration. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["mcp", "get"],
  section: "Servers",
  summary: "Show one server's declaration and effective settings.",
  description: ["Secrets are never shown. A server of the project that has not been approved is not shown either."],
  examples: [{ line: "sigil mcp get fs", does: "where it is declared and what applies" }],
  args: [{ key: "name", label: "NAME", summary: "The server." }],
  options: {}
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpGet.ts"))

/** `sigil mcp templates`: the resource templates of a server. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["mcp", "templates"],
  section: "Resources and prompts",
  summary: "List the resource templates of a server.",
  description: ["Starts the server, reads the whole list and stops the server."],
  examples: [{ line: "sigil mcp templates docs", does: "all of them" }],
  args: [{ key: "server", label: "SERVER", summary: "The server." }],
  options: {
    timeout: { kind: "number", value: "SECS", summary: "Deadline of the list." },
    yes: { kind: "flag", summary: "Say yes to this request's questions; never to a rule that denies." }
  }
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpTemplates.ts"))

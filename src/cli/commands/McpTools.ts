/** `sigil mcp tools`: what the servers offer. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["mcp", "tools"],
  section: "Tools",
  summary: "List the tools of a server, or of all.",
  description: [
    "Shows names, descriptions and what the definitions cost a model in tokens. A tool with a malformed definition is listed with the reason.",
    "A named server is started. Without a name, eager servers are started and lazy ones are only named."
  ],
  examples: [
    { line: "sigil mcp tools fs", does: "of one server" },
    { line: "sigil mcp tools fs --json", does: "with the input schemas" },
    { line: "sigil mcp tools --for anthropic", does: "as that provider gets them" }
  ],
  args: [{ key: "server", label: "SERVER", summary: "One server.", optional: true }],
  options: {
    all: { kind: "flag", summary: "Without a name: start lazy servers too." },
    for: {
      kind: "choice",
      choices: ["openai", "anthropic", "gemini"],
      summary: "The list exactly as this provider would get it."
    }
  }
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpTools.ts"))

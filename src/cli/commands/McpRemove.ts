/** `sigil mcp remove`: take a declaration out of its file. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["mcp", "remove"],
  aliases: ["rm", "delete"],
  section: "Servers",
  summary: "Remove a server's declaration.",
  description: ["Edits the file that declares the server; comments and other entries stay as they are."],
  examples: [{ line: "sigil mcp remove fs", does: "wherever it is declared" }],
  args: [{ key: "name", label: "NAME", summary: "The server." }],
  options: {
    scope: {
      kind: "choice",
      choices: ["project", "user", "local"],
      summary: "Remove it there and nowhere else."
    }
  }
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpRemove.ts"))

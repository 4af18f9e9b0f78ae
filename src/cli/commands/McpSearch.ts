/** `sigil mcp search`: find tools by words. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["mcp", "search"],
  section: "Tools",
  summary: "Find tools by words in their names, descriptions and parameters.",
  description: [
    "Eager servers are started and searched; lazy ones are named. A word with a plus must occur: +file. 'select:a,b' takes exact names."
  ],
  examples: [
    { line: "sigil mcp search read file", does: "best first" },
    { line: "sigil mcp search +github issue", does: "must hold 'github'" }
  ],
  args: [{ key: "query", label: "QUERY", summary: "Words.", repeated: true }],
  options: {
    all: { kind: "flag", summary: "Start lazy servers too." },
    limit: { kind: "integer", value: "N", default: 5, summary: "At most this many." }
  }
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpSearch.ts"))

/** `sigil mcp pending`: what the project wants to run. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["mcp", "pending"],
  section: "Project approval",
  summary: "Show the project's servers that wait for your approval.",
  description: [
    "A repository can declare servers, but none of them starts before you have approved it. This shows what would run, where the entry comes from, which variables it reads, and what changed since you last approved it."
  ],
  examples: [
    { line: "sigil mcp pending", does: "all of them" },
    { line: "sigil mcp pending fs", does: "one in full" }
  ],
  args: [{ key: "name", label: "NAME", summary: "One server.", optional: true }],
  options: {}
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpPending.ts"))

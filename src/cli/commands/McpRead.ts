/** `sigil mcp read`: one resource of a server. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["mcp", "read"],
  section: "Resources and prompts",
  summary: "Read a resource.",
  description: [
    "Prints the text of the resource, bounded like a tool's result. Binary content is kept as a file whose path is printed."
  ],
  examples: [{ line: "sigil mcp read docs docs://readme", does: "by its URI" }],
  args: [
    { key: "server", label: "SERVER", summary: "The server." },
    { key: "uri", label: "URI", summary: "The resource, as the list or a template names it." }
  ],
  options: {
    timeout: { kind: "number", value: "SECS", summary: "Deadline of this request." },
    yes: { kind: "flag", summary: "Say yes to this request's questions; never to a rule that denies." },
    answers: { kind: "text", value: "FILE", summary: "Answer the server's forms from a JSON file; nobody is asked." },
    full: { kind: "flag", summary: "Print the whole content instead of a bounded part." },
    save: { kind: "text", value: "FILE", summary: "Write the content to a file; binary content as bytes." }
  }
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpRead.ts"))

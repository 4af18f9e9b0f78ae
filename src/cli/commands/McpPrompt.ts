/** `sigil mcp prompt`: one prompt of a server, filled in. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["mcp", "prompt"],
  section: "Resources and prompts",
  summary: "Get a prompt with its arguments filled in.",
  description: ["Prints the prompt's messages. Arguments of prompts are always text."],
  examples: [{ line: "sigil mcp prompt docs summarise style=short", does: "key=value" }],
  usage: ["[options] SERVER NAME [key=value ...]"],
  args: [
    { key: "server", label: "SERVER", summary: "The server." },
    { key: "name", label: "NAME", summary: "The prompt." },
    { key: "words", label: "ARGUMENTS", summary: "The prompt's arguments.", optional: true, repeated: true }
  ],
  assignments: true,
  options: {
    timeout: { kind: "number", value: "SECS", summary: "Deadline of this request." },
    yes: { kind: "flag", summary: "Say yes to this request's questions; never to a rule that denies." },
    answers: { kind: "text", value: "FILE", summary: "Answer the server's forms from a JSON file; nobody is asked." },
    full: { kind: "flag", summary: "Print the whole result instead of a bounded part." }
  }
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpPrompt.ts"))

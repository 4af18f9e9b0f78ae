/** `sigil mcp complete`: what a server suggests for an argument. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["mcp", "complete"],
  section: "Resources and prompts",
  summary: "Ask a server to complete an argument.",
  description: ["REFERENCE is prompt:NAME, or a resource template as 'sigil mcp templates' prints it."],
  examples: [
    { line: "sigil mcp complete docs prompt:summarise style sh", does: "of a prompt" },
    { line: "sigil mcp complete docs 'docs://{section}' section in", does: "of a template" }
  ],
  args: [
    { key: "server", label: "SERVER", summary: "The server." },
    { key: "reference", label: "REFERENCE", summary: "prompt:NAME, or a resource template." },
    { key: "argument", label: "ARGUMENT", summary: "The argument to complete." },
    { key: "value", label: "VALUE", summary: "What has been typed of it." },
    {
      key: "known",
      label: "KNOWN",
      summary: "Other arguments that are known already, as key=value.",
      optional: true,
      repeated: true
    }
  ],
  assignments: true,
  options: {
    timeout: { kind: "number", value: "SECS", summary: "Deadline of this request." },
    yes: { kind: "flag", summary: "Say yes to this request's questions; never to a rule that denies." }
  }
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpComplete.ts"))

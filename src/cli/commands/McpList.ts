/** `sigil mcp list`: every declaration. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["mcp", "list"],
  aliases: ["ls"],
  section: "Servers",
  summary: "List the declared servers.",
  description: [
    "Shows each server with its scope, source, transport and state. Nothing is started unless --status is given."
  ],
  examples: [
    { line: "sigil mcp list", does: "what is declared" },
    { line: "sigil mcp list --status", does: "start each server and report how it is" }
  ],
  args: [],
  options: {
    all: { kind: "flag", summary: "Also show entries that another one of the same name or command hides." },
    status: { kind: "flag", summary: "Connect to every server." },
    timeout: { kind: "number", value: "SECS", default: 10, summary: "With --status: wait at most this long in all." }
  }
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpList.ts"))

/** `sigil mcp call`: one tool call through the pipeline. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["mcp", "call"],
  section: "Tools",
  summary: "Call a tool.",
  description: [
    "Starts the server, checks the arguments against the tool's schema, asks where a rule wants it, calls, prints the result and stops the server.",
    "Arguments: key=value is read as the schema wants it, key:=JSON as JSON, key=@FILE from a file. Or give them all as JSON with --args, or on standard input with '-'. Words after '--' are never options of sigil.",
    'A server may ask something before it answers. On a terminal you are asked field by field; --answers FILE answers instead: one JSON object from field to value for every form, or a list of them, one per form; {"action":"decline"} declines.'
  ],
  examples: [
    { line: "sigil mcp call fs list_directory path=/tmp", does: "key=value" },
    { line: 'sigil mcp call fs/read_file --args \'{"path":"/tmp/a.txt"}\'', does: "JSON" },
    { line: 'echo \'{"path":"/tmp"}\' | sigil mcp call fs list_directory -', does: "from standard input" },
    { line: "sigil mcp call shop order item=42 --answers answers.json", does: "with answers to its forms" }
  ],
  usage: ["[options] SERVER TOOL [key=value ...]", "[options] SERVER/TOOL [key=value ...]"],
  args: [
    { key: "target", label: "SERVER", summary: "The server, SERVER/TOOL, or the name a model sees." },
    { key: "words", label: "TOOL, ARGUMENTS", summary: "The tool and its arguments.", optional: true, repeated: true }
  ],
  assignments: true,
  options: {
    args: { kind: "text", value: "JSON|@FILE", summary: "All arguments as one JSON object." },
    timeout: { kind: "number", value: "SECS", summary: "Deadline of this call." },
    yes: { kind: "flag", summary: "Say yes to this call's questions; never to a rule that denies." },
    answers: { kind: "text", value: "FILE", summary: "Answer the server's forms from a JSON file; nobody is asked." },
    explain: { kind: "flag", summary: "Show what would be sent and which rules decide; send nothing." },
    full: { kind: "flag", summary: "Print the whole result instead of a bounded part." },
    save: { kind: "text", value: "FILE", summary: "Write the result to a file; binary content as bytes." },
    stderr: { kind: "flag", summary: "Show the server's log while it works." }
  }
})

/** Input of the handler. `args.words` still holds the tool's name unless `args.target` names it. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpCall.ts"))

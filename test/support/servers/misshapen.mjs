// A server whose answers are not what their methods answer with. Usage: node misshapen.mjs
import { createInterface } from "node:readline"

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} },
    serverInfo: { name: "misshapen", version: "1" }
  }),
  "tools/list": () => ({ tools: [{ name: "say", inputSchema: { type: "object" } }] }),
  "tools/call": () => ({ content: [{ type: "text", text: "ran" }], isError: "yes" }),
  "prompts/list": () => ({ prompts: [{ name: "p", arguments: [null, { name: "city" }] }] }),
  "prompts/get": () => ({ messages: [null] }),
  "resources/read": ({ uri }) =>
    uri.endsWith("no-list") ? { contents: "x" } : { contents: [uri.endsWith("empty") ? { uri } : { uri, text: {} }] },
  "completion/complete": ({ argument }) =>
    argument.value === "many"
      ? { completion: { values: Array.from({ length: 5_000 }, (_, index) => `value ${index}`) } }
      : { completion: { values: [1, null] } }
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  const answer = answers[method]?.(params)
  const body = answer === undefined ? { error: { code: -32601, message: "unknown" } } : { result: answer }
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...body })}\n`)
})

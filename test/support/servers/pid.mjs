// A well-behaved MCP server whose one tool answers with its own pid and the token it was given.
// usage: node pid.mjs FILE; FILE gets the pid of every process that is started.
import { appendFileSync } from "node:fs"

appendFileSync(process.argv[2], `${process.pid}\n`)
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "pid", version: "1.0.0" }
  }),
  "tools/list": () => ({ tools: [{ name: "pid", inputSchema: { type: "object" } }] }),
  "tools/call": ({ arguments: { token } }) => ({ content: [{ type: "text", text: `${process.pid} ${token}` }] })
}

let rest = ""
process.stdin.setEncoding("utf8")
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n")
  rest = lines.pop()
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line)
    if (id === undefined) continue
    if (answers[method] !== undefined) send({ id, result: answers[method](params ?? {}) })
    else send({ id, error: { code: -32601, message: "Method not found" } })
  }
})
process.stdin.on("end", () => process.exit(0))

// A minimal MCP server over stdio for measurements: no SDK, no work of its own.
let rest = ""
const answer = (id, result) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`)
process.stdin.setEncoding("utf8")
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n")
  rest = lines.pop()
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line)
    if (method === "initialize") {
      answer(id, {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "echo", version: "1.0.0" }
      })
    } else if (method === "tools/list") {
      answer(id, {
        tools: [
          {
            name: "echo",
            description: "Answers with its text.",
            inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] }
          }
        ]
      })
    } else if (method === "tools/call") answer(id, { content: [{ type: "text", text: params.arguments.text }] })
    else if (id !== undefined) answer(id, {})
  }
})
process.stdin.on("end", () => process.exit(0))

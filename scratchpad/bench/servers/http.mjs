// A minimal MCP server over Streamable HTTP for measurements: no SDK, no work of its own, one JSON body per answer.
// usage: node http.mjs legacy | modern      (prints `listening on PORT` to stderr; ends when stdin closes)
import { randomUUID } from "node:crypto"
import http from "node:http"

const modern = process.argv[2] === "modern"
const session = randomUUID()
const tools = [
  {
    name: "echo",
    description: "Answers with its text.",
    inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] }
  }
]
const serverInfo = { name: "echo", version: "1.0.0" }
const capabilities = { tools: {} }

const resultOf = ({ method, params }) => {
  if (method === "tools/call") return { content: [{ type: "text", text: params.arguments.text }] }
  if (method === "tools/list") return { tools }
  if (!modern && method === "initialize") return { protocolVersion: params.protocolVersion, capabilities, serverInfo }
  if (modern && method === "server/discover") return { supportedVersions: ["2026-07-28"], capabilities }
  return undefined
}
const more = modern
  ? {
      resultType: "complete",
      ttlMs: 0,
      cacheScope: "private",
      _meta: { "io.modelcontextprotocol/serverInfo": serverInfo }
    }
  : {}

const answer = (response, status, body, headers = {}) => {
  const text = body === undefined ? "" : JSON.stringify(body)
  response.writeHead(status, {
    ...(text === "" ? {} : { "content-type": "application/json" }),
    "content-length": Buffer.byteLength(text),
    ...headers
  })
  response.end(text)
}

const server = http.createServer((request, response) => {
  if (request.method !== "POST") return answer(response, request.method === "DELETE" && !modern ? 200 : 405)
  let body = ""
  request.setEncoding("utf8").on("data", (part) => (body += part))
  return request.on("end", () => {
    const message = JSON.parse(body)
    if (message.id === undefined || message.method === undefined) return answer(response, 202)
    const result = resultOf(message)
    const { id } = message
    if (result === undefined) {
      const error = { code: -32_601, message: "Method not found" }
      return answer(response, modern ? 404 : 400, { jsonrpc: "2.0", id, error })
    }
    const headers = message.method === "initialize" ? { "mcp-session-id": session } : {}
    return answer(response, 200, { jsonrpc: "2.0", id, result: { ...more, ...result } }, headers)
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, "127.0.0.1", () => process.stderr.write(`listening on ${server.address().port}\n`))
process.stdin.resume().once("close", () => process.exit(0))

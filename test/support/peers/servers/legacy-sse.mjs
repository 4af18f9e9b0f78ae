// The frozen HTTP+SSE transport of `server-legacy` under an SDK 2.x server. usage: node legacy-sse.mjs [PORT]
import { McpServer } from "@modelcontextprotocol/server"
import { SSEServerTransport } from "@modelcontextprotocol/server-legacy/sse"
import { jsonBody, listen, refuse } from "./listen.mjs"
import { options, register } from "./surface2.mjs"

const open = new Map()

listen(
  async (request, response) => {
    if (request.method === "GET") {
      const transport = new SSEServerTransport("/messages", response)
      open.set(transport.sessionId, transport)
      response.once("close", () => open.delete(transport.sessionId))
      const server = new McpServer({ name: "peer-legacy-sse", version: "2.0.0" }, options)
      register(server, { era: "legacy", grown: [] })
      return server.connect(transport)
    }
    const id = new URL(request.url, "http://peer").searchParams.get("sessionId")
    if (request.method !== "POST" || id === null) return refuse(response, 405, "Method not allowed")
    const transport = open.get(id)
    return transport === undefined
      ? refuse(response, 404, "Session not found")
      : transport.handlePostMessage(request, response, await jsonBody(request))
  },
  Number(process.argv[2] ?? 0)
)

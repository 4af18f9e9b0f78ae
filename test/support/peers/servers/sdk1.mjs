// The official SDK 1.x as a server of the older era. usage: node sdk1.mjs stdio | http [PORT] | sse [PORT]
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js"
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js"
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js"
import { listen, refuse } from "./listen.mjs"
import { sessions } from "./sessions.mjs"
import { options, register } from "./surface1.mjs"

const [kind, port = "0"] = process.argv.slice(2)

const connect = async (transport) => {
  const server = new McpServer({ name: "peer-sdk1", version: "1.0.0" }, options)
  register(server)
  await server.connect(transport)
  return transport
}

/** GET opens the stream and names the address for messages; POST brings one. */
const sse = () => {
  const open = new Map()
  return async (request, response) => {
    if (request.method === "GET") {
      const transport = new SSEServerTransport("/messages", response)
      open.set(transport.sessionId, transport)
      response.once("close", () => open.delete(transport.sessionId))
      return connect(transport)
    }
    const id = new URL(request.url, "http://peer").searchParams.get("sessionId")
    // The address of the stream itself takes no messages; a client that tries Streamable HTTP first sees this.
    if (request.method !== "POST" || id === null) return refuse(response, 405, "Method not allowed")
    const transport = open.get(id)
    return transport === undefined
      ? refuse(response, 404, "Session not found")
      : transport.handlePostMessage(request, response)
  }
}

if (kind === "stdio") await connect(new StdioServerTransport())
else if (kind === "http")
  listen(
    sessions((options) => connect(new StreamableHTTPServerTransport(options))),
    Number(port)
  )
else if (kind === "sse") listen(sse(), Number(port))
else throw new Error(`unknown kind: ${kind}`)

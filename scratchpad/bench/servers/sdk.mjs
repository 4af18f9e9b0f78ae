// The smallest server that the official SDK makes.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js"

const server = new McpServer({ name: "sdk", version: "1.0.0" })
server.registerTool("hello", { description: "Says hello." }, () => ({ content: [{ type: "text", text: "hello" }] }))
await server.connect(new StdioServerTransport())

// The official SDK 2.x as a server. usage: node sdk2.mjs stdio | http [PORT] [--modern | --stateless]
//
// Both eras on one address unless --modern; the older one has sessions unless --stateless, which is the SDK's default.
import { createMcpHandler, isLegacyRequest, McpServer } from "@modelcontextprotocol/server"
import { serveStdio } from "@modelcontextprotocol/server/stdio"
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from "@modelcontextprotocol/node"
import { listen } from "./listen.mjs"
import { sessions } from "./sessions.mjs"
import { options, register } from "./surface2.mjs"

const [kind, ...rest] = process.argv.slice(2)
const modern = rest.includes("--modern")
const stateless = rest.includes("--stateless")
const port = Number(rest.find((word) => !word.startsWith("--")) ?? 0)

/** Tools that were added, by whom the list is kept for: one process, or one session. */
const make = (facts) => {
  const server = new McpServer({ name: "peer-sdk2", version: "2.0.0" }, options)
  register(server, facts)
  return server
}

const http = () => {
  const grown = []
  const handler = createMcpHandler(
    ({ era }) =>
      make({
        era,
        grown,
        onGrown: () => handler.notify.toolsChanged(),
        onTouched: (uri) => handler.notify.resourceUpdated(uri)
      }),
    {
      legacy: stateless ? "stateless" : "reject"
    }
  )
  const whole = toNodeHandler(handler)
  if (modern || stateless) return whole
  const legacy = sessions(async (options) => {
    const transport = new NodeStreamableHTTPServerTransport(options)
    await make({ era: "legacy", grown: [] }).connect(transport)
    return transport
  })
  return async (request, response) => {
    // Whoever serves the request needs its body; the question takes a copy.
    const probe = await toWebRequest(request)
    const body = await probe.clone().text()
    const parsed = body === "" ? undefined : JSON.parse(body)
    if (!(await isLegacyRequest(probe))) return whole(request, response, parsed)
    return legacy(request, response, parsed)
  }
}

if (kind === "stdio") serveStdio(({ era }) => make({ era, grown: [] }), { legacy: modern ? "reject" : "serve" })
else if (kind === "http") listen(http(), port)
else throw new Error(`unknown kind: ${kind}`)

// A real MCP server over stdio that does one thing to its surroundings per call and says what came of it: "ok", what
// it read, or the system's error code.
import dns from "node:dns/promises"
import fs from "node:fs"
import net from "node:net"

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)

const acts = {
  connect: ({ port, path }) =>
    new Promise((resolve, reject) => {
      const socket = net.connect(path === undefined ? { host: "127.0.0.1", port: Number(port) } : { path })
      socket.once("connect", () => {
        socket.destroy()
        resolve("ok")
      })
      socket.once("error", reject)
    }),
  resolve: async ({ port }) => {
    const resolver = new dns.Resolver({ timeout: 500, tries: 1 })
    resolver.setServers([`127.0.0.1:${port}`])
    return (await resolver.resolve4("somewhere.test"))[0]
  },
  write: ({ path }) => {
    fs.writeFileSync(path, "by the server")
    return "ok"
  },
  read: ({ path }) => fs.readFileSync(path, "utf8"),
  list: ({ path }) => fs.readdirSync(path).join(","),
  rename: ({ path, to }) => {
    fs.renameSync(path, to)
    return "ok"
  },
  link: ({ path, to }) => {
    fs.symlinkSync(to, path)
    return "ok"
  },
  environment: () => JSON.stringify(process.env)
}

const open = { type: "object" }
let rest = ""
process.stdin.setEncoding("utf8")
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n")
  rest = lines.pop()
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line)
    if (method === "initialize")
      send({
        id,
        result: {
          protocolVersion: params.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: "prying", version: "1.0.0" }
        }
      })
    else if (method === "tools/list")
      send({ id, result: { tools: Object.keys(acts).map((name) => ({ name, inputSchema: open })) } })
    else if (method === "tools/call")
      Promise.resolve()
        .then(() => acts[params.name](params.arguments ?? {}))
        .catch((error) => error.code ?? String(error))
        .then((text) => send({ id, result: { content: [{ type: "text", text: String(text) }] } }))
    else if (id !== undefined) send({ id, error: { code: -32601, message: "Method not found" } })
  }
})
process.stdin.on("end", () => process.exit(0))

/** What a person reads of remote servers that cannot be used: code, exit, state, and where to look; never their words. */
import * as fs from "node:fs"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { WebSocketServer } from "ws"
import { makeProject } from "../support/Command.ts"

let project: ReturnType<typeof makeProject>
let server: http.Server | undefined
beforeEach(() => {
  project = makeProject()
})
afterEach(async () => {
  await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)))
  server = undefined
  project.dispose()
})

/** A server that answers everything with one status, and says words that nobody may repeat. */
const refusing = async (status: number, headers: http.OutgoingHttpHeaders = {}): Promise<string> => {
  server = http.createServer((_request, response) => {
    response.writeHead(status, { "content-type": "text/html", ...headers })
    response.end("<html>words of the server</html>")
  })
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve))
  // A listening TCP server has an address with a port.
  return `http://localhost:${(server.address() as AddressInfo).port}/mcp`
}
const declared = (url: string): void => {
  fs.mkdirSync(path.join(project.home, ".sigil"), { recursive: true })
  fs.writeFileSync(
    path.join(project.home, ".sigil", "sigil.toml"),
    `[[mcp_servers]]
name = "r"
transport = "streamable_http"
url = "${url}"

[web]
proxy_mode = "direct"
allowed_private_hosts = ["localhost"]
allowed_private_cidrs = ["127.0.0.0/8", "::1/128"]
`
  )
}
const sigil = (...args: ReadonlyArray<string>) => project.run(args)

describe("a remote server that", () => {
  const table: ReadonlyArray<
    readonly [
      what: string,
      status: number,
      headers: http.OutgoingHttpHeaders,
      exit: number,
      code: string,
      state: string
    ]
  > = [
    [
      "wants a sign-in",
      401,
      { "www-authenticate": 'Bearer realm="words of the server"' },
      6,
      "SIGIL_SIGN_IN_NEEDED",
      "needs_auth"
    ],
    ["refuses access", 403, {}, 3, "SIGIL_HTTP_STATUS", "failed"],
    ["is not there", 404, {}, 3, "SIGIL_HTTP_STATUS", "failed"],
    ["asks for patience", 429, { "retry-after": "7" }, 3, "SIGIL_HTTP_STATUS", "failed"],
    ["is broken", 502, {}, 3, "SIGIL_HTTP_STATUS", "failed"],
    ["answers with a page", 200, {}, 3, "SIGIL_PROTOCOL_FAULT", "failed"],
    [
      "leads elsewhere",
      307,
      { location: "https://elsewhere.example/path?words of the server" },
      3,
      "SIGIL_REDIRECT_REFUSED",
      "failed"
    ]
  ]
  for (const [what, status, headers, exit, code, state] of table)
    it(`${what} is told by code ${code}, exit ${exit} and state ${state}`, async () => {
      declared(await refusing(status, headers))
      const called = await sigil("--json", "mcp", "call", "r", "x", "--yes")
      assert.equal(called.code, exit, called.stdout)
      const { error } = JSON.parse(called.stdout)
      assert.equal(error.code, code)
      assert.equal(error.where.server, "r")
      if (status === 307) assert.include(error.message, "https://elsewhere.example")
      const listed = await sigil("--json", "mcp", "list", "--status")
      assert.equal(listed.code, 0)
      const [row] = JSON.parse(listed.stdout).servers
      assert.deepEqual([row.state, row.reason.code], [state, code])
      const probed = await sigil("doctor", "--probe")
      assert.equal(probed.code, 1)
      for (const { stdout, stderr } of [called, listed, probed]) {
        assert.notInclude(stdout + stderr, "words of the server")
        assert.notInclude(stdout + stderr, "by hand")
      }
    })

  it("recovers in time is waited for where the entry says so", async () => {
    let asked = 0
    server = http.createServer((request, response) => {
      asked += 1
      if (asked === 1) return response.writeHead(503).end()
      let body = ""
      request.on("data", (part: Buffer) => (body += part.toString()))
      return request.on("end", () => {
        const { id, method } = JSON.parse(body)
        const result =
          method === "server/discover"
            ? { supportedVersions: ["2026-07-28"], capabilities: { tools: {} } }
            : method === "tools/list"
              ? { tools: [{ name: "x", inputSchema: { type: "object" } }] }
              : { content: [{ type: "text", text: "back again" }] }
        response.writeHead(200, { "content-type": "application/json" })
        response.end(JSON.stringify({ jsonrpc: "2.0", id, result }))
      })
    })
    await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve))
    // A listening TCP server has an address with a port.
    const url = `http://localhost:${(server.address() as AddressInfo).port}/mcp`
    const entry = { url, retries: 1, trust: { approval_default: "allow" } }
    declared(url)
    const config = ["--mcp-config", JSON.stringify({ mcpServers: { patient: entry } })]
    const { code, stdout } = await sigil(...config, "mcp", "call", "patient", "x")
    assert.deepEqual([code, stdout.trim(), asked], [0, "back again", 4])
  })

  it("keeps a call waiting is told that nobody waits any more, before its session is ended", async () => {
    const seen: Array<string> = []
    server = http.createServer((request, response) => {
      if (request.method === "DELETE") seen.push("DELETE")
      if (request.method !== "POST") return response.writeHead(request.method === "DELETE" ? 200 : 405).end()
      let body = ""
      request.on("data", (part: Buffer) => (body += part.toString()))
      return request.on("end", () => {
        const { id, method } = JSON.parse(body)
        seen.push(method)
        if (id === undefined) return response.writeHead(202).end()
        if (method === "tools/call") return undefined
        if (method === "server/discover") return response.writeHead(400).end()
        const result =
          method === "initialize"
            ? {
                protocolVersion: "2025-11-25",
                capabilities: { tools: {} },
                serverInfo: { name: "slow", version: "1" }
              }
            : { tools: [{ name: "x", inputSchema: { type: "object" } }] }
        response.writeHead(200, { "content-type": "application/json", "mcp-session-id": "s1" })
        return response.end(JSON.stringify({ jsonrpc: "2.0", id, result }))
      })
    })
    await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve))
    // A listening TCP server has an address with a port.
    declared(`http://localhost:${(server.address() as AddressInfo).port}/mcp`)
    const { code, stderr } = await sigil("mcp", "call", "r", "x", "--yes", "--timeout", "1")
    assert.equal(code, 3)
    assert.include(stderr, "SIGIL_CALL_TIMEOUT")
    assert.deepEqual(seen.slice(-3), ["tools/call", "notifications/cancelled", "DELETE"])
  })

  it("does not listen is told with what to check", async () => {
    const url = await refusing(200)
    await new Promise((resolve) => server?.close(resolve))
    server = undefined
    declared(url)
    const { code, stderr } = await sigil("mcp", "call", "r", "x", "--yes")
    assert.equal(code, 3)
    assert.include(stderr, "nothing listens there")
    assert.include(stderr, "whether the URL of 'r' is right")
  })
})

it("a remote server that is lost in a call has no log to be looked at", async () => {
  const peer = new WebSocketServer({ host: "127.0.0.1", port: 0 })
  peer.on("connection", (socket) =>
    socket.on("message", (data: Buffer) => {
      const { id, method } = JSON.parse(data.toString("utf8"))
      const say = (result: object): void => socket.send(JSON.stringify({ jsonrpc: "2.0", id, result }))
      const info = { capabilities: { tools: {} }, serverInfo: { name: "ws", version: "1" } }
      if (method === "initialize") say({ protocolVersion: "2025-06-18", ...info })
      else if (method === "tools/list") say({ tools: [{ name: "t", inputSchema: { type: "object" } }] })
      else if (method === "tools/call") socket.terminate()
    })
  )
  try {
    await new Promise((resolve) => peer.once("listening", resolve))
    // A listening TCP server has an address with a port.
    const url = `ws://localhost:${(peer.address() as AddressInfo).port}/`
    declared("http://localhost:1/")
    const entry = { url, protocol: "2025-06-18", trust: { approval_default: "allow" } }
    const { code, document } = await project.document("error", [
      "--mcp-config",
      JSON.stringify({ mcpServers: { far: entry } }),
      "mcp",
      "call",
      "far",
      "t"
    ])
    assert.deepEqual([code, document.error.code], [3, "SIGIL_CONNECTION_LOST"], document.error.message)
    assert.notInclude(document.error.fix, "mcp logs")
    assert.include(document.error.fix, "can be reached")
  } finally {
    for (const socket of peer.clients) socket.terminate()
    await new Promise((resolve) => peer.close(resolve))
  }
})

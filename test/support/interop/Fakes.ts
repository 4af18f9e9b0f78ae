/**
 * Small servers of what the official ones do not offer: WebSocket, `http-json`, tasks of the stateless revision, and
 * addresses that answer nothing.
 */
import * as http from "node:http"
import * as net from "node:net"
import type { AddressInfo } from "node:net"
import { WebSocketServer } from "ws"

/** A server that listens on 127.0.0.1. */
export interface Fake {
  readonly url: string
  /** JSON-RPC methods in the order in which they came. */
  readonly said: ReadonlyArray<string>
  readonly close: () => Promise<void>
}

/** One message of a client. */
interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly params?: { readonly [key: string]: unknown }
  readonly result?: unknown
}

/** A port of a listener on 127.0.0.1, whose address is of this kind. */
const portOf = (server: net.Server): number => (server.address() as AddressInfo).port

/** What arrives is what sigil wrote: one JSON-RPC message. */
const read = (text: string): Message => JSON.parse(text) as Message

const body = async (request: http.IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString("utf8")
}

const echo = { name: "echo", inputSchema: { type: "object", properties: { text: { type: "string" } } } }
const text = (value: unknown): object => ({ content: [{ type: "text", text: String(value) }] })
const argument = ({ params }: Message): unknown =>
  (params?.["arguments"] as { readonly text?: unknown } | undefined)?.text

/** A server of a handshake revision with the tool `echo`; `undefined` for a method that it does not know. */
const handshake = (message: Message): object | undefined => {
  switch (message.method) {
    case "initialize":
      return {
        protocolVersion: "2025-11-25",
        capabilities: { tools: {} },
        serverInfo: { name: "fake", version: "1" }
      }
    case "tools/list":
      return { tools: [echo, ...["ask", "drop"].map((name) => ({ name, inputSchema: { type: "object" } }))] }
    case "tools/call":
      return text(argument(message))
    default:
      return undefined
  }
}

const answerTo = (message: Message, result: object | undefined): string =>
  JSON.stringify({
    jsonrpc: "2.0",
    id: message.id,
    ...(result === undefined ? { error: { code: -32601, message: "Method not found" } } : { result })
  })

const serve = async (
  handle: (message: Message, response: http.ServerResponse, request: http.IncomingMessage) => void
): Promise<Fake> => {
  const said: Array<string> = []
  const server = http.createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const whole = await body(request)
      const message: Message = request.method === "POST" ? read(whole) : {}
      said.push(message.method ?? request.method ?? "")
      handle(message, response, request)
    }
    void answer()
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${portOf(server)}/mcp`,
    said,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      await closed
    }
  }
}

/** `http-json`: every message is a POST, every answer one JSON text. */
export const httpJson = (): Promise<Fake> =>
  serve((message, response) => {
    if (message.id === undefined) return void response.writeHead(202).end()
    response.writeHead(200, { "content-type": "application/json" }).end(answerTo(message, handshake(message)))
  })

/** WebSocket; `ask` asks for a form before it answers, `drop` closes the connection instead. */
export const webSocket = async (
  /** `any`: selects what is offered; `mcp`: selects that, offered or not; `none`: selects nothing. */
  subprotocol: "any" | "mcp" | "none" = "any"
): Promise<Fake> => {
  const said: Array<string> = []
  const select = { mcp: () => "mcp", none: () => false as const }
  const server = new WebSocketServer({
    port: 0,
    host: "127.0.0.1",
    ...(subprotocol === "any" ? {} : { handleProtocols: select[subprotocol] })
  })
  await new Promise<void>((resolve) => server.once("listening", resolve))
  // The library asks for the selection only where something is offered; some servers select anyway.
  if (subprotocol === "mcp")
    server.on("headers", (headers) => {
      if (!headers.some((line) => line.startsWith("Sec-WebSocket-Protocol")))
        headers.push("Sec-WebSocket-Protocol: mcp")
    })
  server.on("connection", (socket) => {
    let asked: Message | undefined
    socket.on("message", (data: Buffer) => {
      const message = read(data.toString("utf8"))
      said.push(message.method ?? "answer")
      if (message.method === undefined && asked !== undefined) {
        const given = message.result as { readonly content?: { readonly name?: string } } | undefined
        socket.send(answerTo(asked, text(`hello ${given?.content?.name}`)))
        asked = undefined
      } else if (message.method === "tools/call" && message.params?.["name"] === "ask") {
        asked = message
        const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] }
        const params = { mode: "form", message: "Who?", requestedSchema }
        socket.send(JSON.stringify({ jsonrpc: "2.0", id: "form", method: "elicitation/create", params }))
      } else if (message.method === "tools/call" && message.params?.["name"] === "drop") socket.terminate()
      else if (message.id !== undefined) socket.send(answerTo(message, handshake(message)))
    })
  })
  // A WebSocket server that listens on a port has an address of this kind.
  const { port } = server.address() as AddressInfo
  return {
    url: `ws://127.0.0.1:${port}/`,
    said,
    close: () =>
      new Promise((resolve) => {
        for (const client of server.clients) client.terminate()
        server.close(() => resolve())
      })
  }
}

/** Tasks of the stateless revision: one call that works, asks for a form, and is completed, each told by a poll. */
export const tasks = (
  /** The task of the tool `endless` is never over, and this is called at each poll. */
  onEndless: () => void = () => undefined
): Promise<Fake> => {
  let name: unknown
  let polls = 0
  const task = (status: string, more: object = {}): object => ({
    resultType: "complete",
    taskId: "task-1",
    status,
    ttlMs: 60_000,
    pollIntervalMs: 50,
    createdAt: "2026-07-28T00:00:00Z",
    lastUpdatedAt: "2026-07-28T00:00:00Z",
    ...more
  })
  const form = {
    method: "elicitation/create",
    params: {
      mode: "form",
      message: "Who?",
      requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] }
    }
  }
  let endless = false
  const state = (): object => {
    polls += 1
    if (endless) {
      onEndless()
      return task("working")
    }
    if (polls === 1) return task("working")
    return name === undefined
      ? task("input_required", { inputRequests: { who: form } })
      : task("completed", { result: text(`hello ${String(name)}`) })
  }
  const resultOf = (message: Message): object | undefined => {
    switch (message.method) {
      case "server/discover":
        return {
          resultType: "complete",
          supportedVersions: ["2026-07-28"],
          capabilities: { tools: {}, extensions: { "io.modelcontextprotocol/tasks": {} } },
          _meta: { "io.modelcontextprotocol/serverInfo": { name: "fake", version: "1" } }
        }
      case "tools/list":
        return {
          resultType: "complete",
          tools: ["greet", "endless"].map((tool) => ({
            name: tool,
            inputSchema: { type: "object" },
            execution: { taskSupport: "optional" }
          }))
        }
      case "tools/call":
        endless = message.params?.["name"] === "endless"
        return { ...task("working"), resultType: "task" }
      case "tasks/cancel":
        return { resultType: "complete" }
      case "tasks/get":
        return state()
      case "tasks/update": {
        const answers = message.params?.["inputResponses"] as
          | { readonly who?: { readonly content?: { readonly name?: unknown } } }
          | undefined
        name = answers?.who?.content?.name
        return { resultType: "complete" }
      }
      default:
        return undefined
    }
  }
  return serve((message, response, request) => {
    const meta = message.params?.["_meta"] as { readonly [key: string]: unknown } | undefined
    const agrees =
      request.headers["mcp-method"] === message.method &&
      request.headers["mcp-protocol-version"] === meta?.["io.modelcontextprotocol/protocolVersion"] &&
      (message.method?.startsWith("tasks/") !== true || request.headers["mcp-name"] === "task-1")
    response
      .writeHead(agrees ? 200 : 400, { "content-type": "application/json" })
      .end(
        agrees
          ? answerTo(message, resultOf(message))
          : JSON.stringify({ jsonrpc: "2.0", id: message.id, error: { code: -32020, message: "Header mismatch" } })
      )
  })
}

/** Refuses every message with words of its own, and has no stream either. */
export const refusing = (): Promise<Fake> =>
  serve((message, response) => {
    const error = { code: -32600, message: "there is no such tenant" }
    if (message.id === undefined) return void response.writeHead(405).end()
    response
      .writeHead(400, { "content-type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", id: message.id, error }))
  })

/** Takes connections and never says a word. */
export const blackHole = async (): Promise<Fake> => {
  const sockets = new Set<net.Socket>()
  const server = net.createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => undefined)
    socket.resume()
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${portOf(server)}/mcp`,
    said: [],
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      })
  }
}

/** An address where nothing listens: its listener is gone. */
export const dead = async (): Promise<string> => {
  const { close, url } = await blackHole()
  await close()
  return url
}

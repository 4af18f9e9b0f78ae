/**
 * An MCP server over HTTP on 127.0.0.1 that behaves well but for what its script says (K sections 9.9 and 9.10).
 *
 * `node:http` parses the requests; the connections come from `node:net` below it, so that a fault may also strike
 * before the first byte. Everything that arrives is recorded, on its own address and on another origin that redirects
 * point to. Nothing is left after `close`.
 */
import { randomUUID } from "node:crypto"
import * as http from "node:http"
import * as net from "node:net"
import { type Answer, acknowledged, answerTo, type Message, notification } from "./Answers.ts"
import { chunk, chunked, event, head, SSE_TYPE } from "./Bytes.ts"
import type { Control, Exchange } from "./Exchange.ts"
import { type FaultName, faults } from "./Faults.ts"
import { type Era, type Step, stepOf } from "./Step.ts"

/** Pace or delay of a fault that names none, ms. */
const DEFAULT_MS = 20
const HOST = "127.0.0.1"

/** What can happen to a connection before any byte. */
export const connectFaults = ["none", "black hole", "refuse", "close before", "reset before", "not http"] as const

/** One fault at one moment. */
export interface Strike {
  readonly fault: FaultName
  /** How often it strikes before the server behaves well again; always when absent. */
  readonly times?: number
  /** Its pace or delay, ms. */
  readonly ms?: number
}

/** What goes wrong when. A `connect` strike may only be one of `connectFaults`. */
export type Script = { readonly [step in Step]?: FaultName | Strike }

/** How the server is made. */
export interface HostileOptions {
  readonly era: Era
  readonly script?: Script
  /** The port; any free one when absent. */
  readonly port?: number
  /** Whether it gives session ids (older era only); true when absent. */
  readonly sessions?: boolean
}

/** One request that arrived whole. */
export interface Seen {
  /** HTTP method. */
  readonly http: string
  readonly path: string
  /** Names in small letters. */
  readonly headers: http.IncomingHttpHeaders
  /** The body as it came. */
  readonly body: string
  /** The message in it, when it is one. */
  readonly message: Message
  /** The moment it belongs to, if it belongs to one. */
  readonly step: Step | undefined
  /** Number of its connection, from 0. */
  readonly connection: number
}

/** A running server. */
export interface Hostile {
  readonly url: string
  readonly port: number
  /** Requests in the order in which they arrived. */
  readonly seen: ReadonlyArray<Seen>
  /** What arrived at the origin that redirects point to. */
  readonly elsewhere: { readonly url: string; readonly seen: ReadonlyArray<Seen> }
  /** Connections that are open now, and that ever were. */
  readonly connections: () => { readonly open: number; readonly total: number }
  /** Settles when so many requests of this moment have arrived. */
  readonly arrived: (step: Step, count?: number) => Promise<void>
  /** Settles when no connection is open. */
  readonly idle: () => Promise<void>
  /** Settles when no request but those of streams is under way. */
  readonly quiet: () => Promise<void>
  /** Sends a notification on every open stream for what the server has to say. */
  readonly push: (method: string, params?: object) => void
  /** Whether it takes connections. */
  readonly isListening: () => boolean
  /** Changes what goes wrong from now on. */
  readonly become: (script: Script) => void
  /** Ends every connection and listens on the same port again, without its sessions. */
  readonly restart: () => Promise<void>
  readonly close: () => Promise<void>
}

const strikeOf = (given: FaultName | Strike | undefined): Strike | undefined =>
  typeof given === "string" ? { fault: given } : given

const messageOf = (body: string): Message => {
  try {
    const parsed: unknown = JSON.parse(body)
    // Looked at by known keys only; whatever else it is has none of them.
    return typeof parsed === "object" && parsed !== null ? (parsed as Message) : {}
  } catch {
    return {}
  }
}

const readBody = async (request: http.IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const part of request) chunks.push(Buffer.from(part))
  return Buffer.concat(chunks).toString("utf8")
}

const portOf = (server: net.Server): number => {
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
}

const listenOn = (server: net.Server, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once("error", reject)
    server.listen(port, HOST, () => {
      server.removeListener("error", reject)
      resolve()
    })
  })

const stopListening = (server: net.Server): Promise<void> =>
  new Promise((resolve) => {
    if (server.listening) server.close(() => resolve())
    else resolve()
  })

/** The origin that redirects point to: records and answers with nothing. */
const openElsewhere = async () => {
  const seen: Array<Seen> = []
  const record = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
    const body = await readBody(request)
    const { method = "", url = "", headers } = request
    seen.push({ http: method, path: url, headers, body, message: messageOf(body), step: undefined, connection: -1 })
    response.writeHead(404).end()
  }
  const server = http.createServer((request, response) => {
    record(request, response).catch(() => request.socket.destroy())
  })
  await listenOn(server, 0)
  return {
    url: `http://${HOST}:${portOf(server)}/mcp`,
    seen,
    close: () => {
      server.closeAllConnections()
      return stopListening(server)
    }
  }
}

/** Starts a hostile server. */
export const hostile = async (options: HostileOptions): Promise<Hostile> => {
  const { era } = options
  const elsewhere = await openElsewhere()
  const seen: Array<Seen> = []
  const numbers = new Map<net.Socket, number>()
  const timers = new Set<NodeJS.Timeout>()
  const sessions = new Set<string>()
  const open = new Set<Exchange>()
  const streams = new Map<net.Socket, Message["id"]>()
  const waiting: Array<() => boolean> = []
  let script: Script = options.script ?? {}
  let struck = new Map<Step, number>()
  let total = 0
  let calls = 0

  /** Lets everybody look whose condition may hold now. */
  const tell = (): void => {
    for (const [at, holds] of [...waiting.entries()].toReversed()) if (holds()) waiting.splice(at, 1)
  }
  const until = (condition: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      waiting.push(() => {
        if (condition()) resolve()
        return condition()
      })
      tell()
    })

  const strikeAt = (step: Step | undefined): Strike | undefined => {
    const strike = step === undefined ? undefined : strikeOf(script[step])
    if (step === undefined || strike === undefined) return undefined
    const times = struck.get(step) ?? 0
    struck.set(step, times + 1)
    return times < (strike.times ?? Number.POSITIVE_INFINITY) ? strike : undefined
  }

  const dropAll = (): void => {
    for (const socket of numbers.keys()) socket.destroy()
  }
  const refuse = async (): Promise<void> => {
    const closed = stopListening(front)
    dropAll()
    await closed
  }
  const restart = async (): Promise<void> => {
    await refuse()
    sessions.clear()
    await listenOn(front, port)
  }
  const control: Control = {
    elsewhere: elsewhere.url,
    get url() {
      return `http://${HOST}:${port}/mcp`
    },
    refuse,
    restart,
    forget: () => sessions.clear(),
    other: (than) =>
      [...open]
        .filter(({ step }) => step !== "stream")
        .map(({ message }) => message.id)
        .find((id) => id !== undefined && id !== than),
    later: (ms, act) => {
      const timer = setTimeout(() => {
        timers.delete(timer)
        act()
      }, ms)
      timers.add(timer)
    },
    every: (ms, socket, act) => {
      const timer = setInterval(() => (socket.writable ? act() : clearInterval(timer)), ms)
      timers.add(timer)
      socket.once("close", () => {
        clearInterval(timer)
        timers.delete(timer)
      })
    }
  }

  /** Opens the stream for what the server has to say and keeps it. */
  const openStream = (socket: net.Socket, first: string, listen: Message["id"]): void => {
    socket.write(head(200, chunked(SSE_TYPE)))
    socket.write(chunk(first))
    streams.set(socket, listen)
  }

  const behave = (exchange: Omit<Exchange, "behave" | "step">, method: string): void => {
    const { answer, headers, message, response, socket } = exchange
    if (era === "modern" && message.method === "subscriptions/listen")
      return openStream(socket, event(acknowledged(message)), message.id)
    if (method === "GET" && answer.status === 200) return openStream(socket, ": open\n\n", undefined)
    if (method === "DELETE") sessions.clear()
    const body = answer.message === undefined ? "" : JSON.stringify(answer.message)
    response.writeHead(answer.status, {
      ...headers,
      ...(body === "" ? {} : { "content-type": "application/json" }),
      "content-length": Buffer.byteLength(body)
    })
    return void response.end(body)
  }

  /** What is right, and the headers that go with it. */
  const rightFor = (request: http.IncomingMessage, message: Message): readonly [Answer, { [name: string]: string }] => {
    if (era === "modern") return [request.method === "POST" ? answerTo(era, message) : { status: 405 }, {}]
    const id = request.headers["mcp-session-id"]
    if (options.sessions !== false && message.method === "initialize") {
      const session = randomUUID()
      sessions.add(session)
      return [answerTo(era, message), { "mcp-session-id": session }]
    }
    if (typeof id === "string" && !sessions.has(id)) return [{ status: 404 }, {}]
    // What belongs to no session is refused, but for the question of which era this is.
    if (options.sessions !== false && id === undefined && message.method !== "server/discover")
      return [{ status: 400 }, {}]
    return [request.method === "POST" ? answerTo(era, message) : { status: 200 }, {}]
  }

  const handle = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
    const { socket } = request
    const body = await readBody(request)
    const message = messageOf(body)
    const { method: httpMethod = "", url = "", headers } = request
    const step = stepOf(era, { http: httpMethod, method: message.method, calls })
    if (step === "call" || step === "next") calls += 1
    seen.push({ http: httpMethod, path: url, headers, body, message, step, connection: numbers.get(socket) ?? -1 })
    const [answer, own] = rightFor(request, message)
    const strike = strikeAt(step)
    const rest = {
      era,
      message,
      answer,
      headers: own,
      socket,
      response,
      control,
      ms: strike?.ms ?? DEFAULT_MS
    }
    const exchange: Exchange = { ...rest, step: step ?? "next", behave: () => behave(rest, httpMethod) }
    open.add(exchange)
    const done = (): void => {
      open.delete(exchange)
      socket.removeListener("close", done)
      tell()
    }
    response.once("finish", done)
    socket.once("close", done)
    tell()
    if (strike === undefined) exchange.behave()
    else faults[strike.fault](exchange)
  }

  const parser = http.createServer({ requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 })
  parser.on("request", (request, response) => {
    // A client that goes away in the middle of its request is no fault of this server.
    handle(request, response).catch(() => request.socket.destroy())
  })

  const accept = (socket: net.Socket): void => {
    numbers.set(socket, total)
    total += 1
    socket.on("error", () => undefined)
    socket.once("close", () => {
      numbers.delete(socket)
      streams.delete(socket)
      tell()
    })
    const fault = strikeAt("connect")?.fault ?? "none"
    switch (fault) {
      case "none":
        return void parser.emit("connection", socket)
      case "black hole":
        // What comes is taken and forgotten; the end of the connection is noticed.
        socket.once("end", () => socket.end())
        return void socket.resume()
      case "refuse":
        return void refuse()
      case "close before":
        return void socket.resume().end()
      case "reset before":
        return void socket.resetAndDestroy()
      case "not http":
        return void socket.resume().end("SSH-2.0-hostile\r\n")
      default:
        throw new Error(`'${fault}' cannot happen to a connection`)
    }
  }
  const front = net.createServer({ allowHalfOpen: true }, accept)
  await listenOn(front, options.port ?? 0)
  const port = portOf(front)
  // A refused connection is one that nobody listens for.
  if (strikeOf(script.connect)?.fault === "refuse" && strikeAt("connect") !== undefined) await refuse()

  return {
    url: control.url,
    port,
    seen,
    elsewhere,
    connections: () => ({ open: numbers.size, total }),
    arrived: (step, count = 1) => until(() => seen.filter((one) => one.step === step).length >= count),
    idle: () => until(() => numbers.size === 0),
    quiet: () => until(() => [...open].every(({ step }) => step === "stream")),
    push: (method, params = {}) => {
      for (const [socket, listen] of streams) socket.write(chunk(event(notification(method, params, listen))))
    },
    isListening: () => front.listening,
    become: (next) => {
      script = next
      struck = new Map()
    },
    restart,
    close: async () => {
      for (const timer of timers) clearTimeout(timer)
      await refuse()
      await elsewhere.close()
    }
  }
}

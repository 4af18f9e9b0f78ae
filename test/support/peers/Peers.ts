/**
 * The official servers as processes with real sockets and pipes, for tests of sigil's remote side and its rivals.
 *
 * Every peer of the SDKs offers the same surface (`servers/surface1.mjs`, `surface2.mjs`): the tools `echo {text}`,
 * `add {a, b}` with an output schema, `progress {steps}`, `ask` (a form), `grow` (changes the tool list), `cut` (closes
 * the stream of its own call) and `seen` (era, session, headers); the resource `peer://note`, the template
 * `peer://items/{id}` and the prompt `greet {name}`. A peer ends with its parent, however that ends.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createRequire } from "node:module"
import * as path from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

/** Longest time for a peer to listen, ms; no measurement, a peer that needs it is broken. */
const START_MS = 20_000

const script = (name: string): string => fileURLToPath(new URL(`servers/${name}.mjs`, import.meta.url))
const everything = path.join(
  path.dirname(createRequire(import.meta.url).resolve("@modelcontextprotocol/server-everything/package.json")),
  "dist",
  "index.js"
)

/** A peer that listens on 127.0.0.1. */
export interface Peer {
  /** Where its MCP endpoint is. */
  readonly url: string
  readonly port: number
  /** What it has written to stderr. */
  readonly log: () => string
  /** Ends it at once, with every connection it has, and waits until it is gone. */
  readonly close: () => Promise<void>
}

/** A peer that is started by whoever calls it. */
export interface StdioPeer {
  readonly command: string
  readonly args: ReadonlyArray<string>
}

/** How a listening peer is started. */
export interface PeerOptions {
  /** The port; any free one when absent. */
  readonly port?: number
}

const stop = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, "exit")
  child.kill("SIGKILL")
  await gone
}

const start = async (
  args: ReadonlyArray<string>,
  at: string,
  environment: { readonly [name: string]: string } = {}
): Promise<Peer> => {
  const child = spawn(process.execPath, args, {
    stdio: ["pipe", "ignore", "pipe"],
    env: { ...process.env, ...environment }
  })
  let log = ""
  const port = await new Promise<number>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      reject(new Error(`the peer did not listen in time: ${log}`))
    }, START_MS)
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      log += chunk
      const listening = /^listening on (\d+)$/m.exec(log)
      if (listening === null) return
      clearTimeout(timer)
      resolve(Number(listening[1]))
    })
    child.once("exit", (code) => {
      clearTimeout(timer)
      reject(new Error(`the peer ended with ${code}: ${log}`))
    })
  })
  return { url: `http://127.0.0.1:${port}${at}`, port, log: () => log, close: () => stop(child) }
}

const listening =
  (name: string, args: ReadonlyArray<string>, at: string) =>
  ({ port = 0 }: PeerOptions = {}): Promise<Peer> =>
    start([script(name), ...args, String(port)], at)

const piped = (name: string, ...args: ReadonlyArray<string>): StdioPeer => ({
  command: process.execPath,
  args: [script(name), ...args]
})

const everythingOver =
  (transport: string, at: string) =>
  ({ port = 0 }: PeerOptions = {}): Promise<Peer> =>
    start(["--import", pathToFileURL(script("report-port")).href, everything, transport], at, { PORT: String(port) })

/** SDK 1.x over stdio: the older era. */
export const sdk1Stdio: StdioPeer = piped("sdk1", "stdio")
/** SDK 1.x over Streamable HTTP with sessions; cut streams can be resumed. */
export const sdk1Http = listening("sdk1", ["http"], "/mcp")
/** SDK 1.x over HTTP+SSE. */
export const sdk1Sse = listening("sdk1", ["sse"], "/sse")
/** SDK 2.x over stdio, both eras. */
export const sdk2Stdio: StdioPeer = piped("sdk2", "stdio")
/** SDK 2.x over stdio, 2026-07-28 only. */
export const sdk2ModernStdio: StdioPeer = piped("sdk2", "stdio", "--modern")
/** SDK 2.x over Streamable HTTP, both eras on one address; the older one with sessions. */
export const sdk2Http = listening("sdk2", ["http"], "/mcp")
/** SDK 2.x over Streamable HTTP, both eras, the older one without sessions: what the SDK does by itself. */
export const sdk2StatelessHttp = listening("sdk2", ["http", "--stateless"], "/mcp")
/** SDK 2.x over Streamable HTTP, 2026-07-28 only. */
export const sdk2ModernHttp = listening("sdk2", ["http", "--modern"], "/mcp")
/** `server-legacy`: the frozen HTTP+SSE transport. */
export const legacySse = listening("legacy-sse", [], "/sse")
/** server-everything, with a surface of its own. */
export const everythingStdio: StdioPeer = { command: process.execPath, args: [everything, "stdio"] }
export const everythingHttp = everythingOver("streamableHttp", "/mcp")
export const everythingSse = everythingOver("sse", "/sse")

// A real MCP server over stdio that behaves well but for one fault at one stage.
// usage: node hostile.mjs STAGE FAULT REPORT [protocol=VERSION]
//
// REPORT receives one JSON line per fact the runner waits for or counts: every process that was started, the arrival
// of the held call, the end of an idle fault. Every successful answer carries the token of its own request, so an
// answer that reaches another call is seen. Whatever happens, the process ends by itself after a minute, and no
// fault writes more than a bounded amount.
import { closeSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { faults } from "./faults.mjs"
import { arrive, deafness, report } from "./processes.mjs"

const LIFE_MS = 60_000
const REPLY_MS = 5_000
/** An id that no request of a short run has. */
const STRANGE_ID = 424_242

const [stage, fault, file, ...rest] = process.argv.slice(2)
const options = Object.fromEntries(rest.map((text) => text.split("=")))
setTimeout(() => process.exit(99), LIFE_MS)
arrive(file)

// A blocking write would stop the timer above; so writes queue, and each is awaited.
for (const stream of [process.stdout, process.stderr]) {
  stream._handle?.setBlocking?.(false)
  stream.on("error", () => {})
}
const write = (bytes) => new Promise((resolve) => process.stdout.write(bytes, () => resolve()))
const writeError = (bytes) => new Promise((resolve) => process.stderr.write(bytes, () => resolve()))
const line = (message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`
const send = (message) => write(line(message))

/** Answers of the host to requests of this server, by id. */
const replies = new Map()
const ask = (id, method, params) => {
  const reply = new Promise((resolve) => replies.set(id, resolve))
  void send({ id, method, ...(params === undefined ? {} : { params }) })
  return Promise.race([reply, sleep(REPLY_MS)])
}

const object = { type: "object" }
const tool = (name) => ({ name, description: `The tool ${name}.`, inputSchema: object })
const results = {
  initialize: (params) => ({
    protocolVersion: options.protocol ?? params.protocolVersion,
    capabilities: { tools: { listChanged: true }, logging: {} },
    serverInfo: { name: "hostile", version: "1.0.0" }
  }),
  "tools/list": (params) =>
    stage !== "pages"
      ? { tools: ["target", "echo", "hold"].map(tool) }
      : params?.cursor === undefined
        ? { tools: [tool("target"), tool("echo")], nextCursor: "second" }
        : { tools: [tool("hold")] },
  "tools/call": (params) => ({ content: [{ type: "text", text: String(params.arguments?.token) }] }),
  ping: () => ({})
}

/** What a fault may use; `id` and `good` belong to the request at which it happens, or to the last one before. */
const tools = (id, good, params) => ({
  stage,
  id,
  good,
  params,
  token: params?.arguments?.token,
  progressToken: params?._meta?.progressToken ?? id,
  write,
  writeError,
  send,
  line,
  ask,
  tool,
  file,
  sleep,
  closeStdin: () => closeHandle(process.stdin, 0),
  closeStdout: () => closeHandle(process.stdout, 1),
  stopReading: () => process.stdin.pause(),
  beforeNext: (run) => before.push(run)
})

/** Node keeps the descriptors of the standard streams open for ever; the peer is to see a closed one. */
const closeHandle = (stream, descriptor) => {
  stream._handle?.close()
  closeSync(descriptor)
}

/** What is to be sent in front of the answer to the next `echo`. */
const before = []
/** Requests for the tool `hold`, answered once the fault is over. */
let held = []
const release = () => {
  const all = held
  held = []
  for (const answer of all) answer()
}

let deaf = false
const strike = async (id, good, params) => {
  const ending = await faults[fault](tools(id, good, params))
  if (ending === "deaf") deaf = true
  return ending === "answer"
}

const isStruck = ({ method, params }) =>
  (stage === "probe" && method === "server/discover") ||
  (stage === "handshake" && method === "initialize") ||
  (stage === "list" && method === "tools/list") ||
  (stage === "pages" && method === "tools/list" && params?.cursor !== undefined) ||
  (stage === "call" && method === "tools/call" && params.name === "target")

/** The fault of a server that nobody asks anything: starts after a good answer, ends with a sign of life. */
const strikeIdle = async (id, good, params) => {
  const ending = await faults[fault](tools(id, good, params))
  if (ending === "deaf") deaf = true
  // The answer of the host says that it has taken everything that was written before.
  else if (ending === "answer") await ask("barrier", "ping")
  report(file, { done: true })
}

const take = async (message) => {
  const { id, method, params } = message
  if (method === undefined) {
    replies.get(id)?.(message)
    replies.delete(id)
    return
  }
  if (deaf || id === undefined) return
  const unknown = { code: -32601, message: "Method not found" }
  const good = results[method]?.(params)
  if (stage === "probe" && isStruck(message)) {
    // A good answer to this question is that nobody knows it.
    if (await strike(id, {}, params)) await send({ id, error: unknown })
    return
  }
  if (good === undefined) return send({ id, error: unknown })
  if (isStruck(message)) {
    if (!(await strike(id, good, params))) return
    await send({ id, result: good })
    return release()
  }
  if (method === "tools/call" && params.name === "hold") {
    held.push(() => void send({ id, result: good }))
    report(file, { held: true })
    return
  }
  if (method === "tools/call" && params.name === "echo") for (const run of before.splice(0)) await run()
  await send({ id, result: good })
  if (method === "tools/list" && stage === "call" && fault === "never-reads") process.stdin.pause()
  if (method === "tools/call" && params.name === "echo") release()
  if (method === "tools/call" && params.name === "target" && stage === "idle") await strikeIdle(id, good, params)
}

const read = () => {
  let rest = ""
  process.stdin.setEncoding("utf8")
  process.stdin.on("error", () => {})
  process.stdin.on("data", (chunk) => {
    const lines = (rest + chunk).split("\n")
    rest = lines.pop()
    for (const text of lines) void take(JSON.parse(text))
  })
  process.stdin.on("end", () => {
    if (stage === "close") void deafness[fault]?.end({ file, write, writeError, sleep })
    else process.exit(0)
  })
}

if (stage === "close") deafness[fault]?.start?.({ file })
if (stage === "spawn" && !(await strike(STRANGE_ID, {}, undefined))) deaf = true
if (fault !== "never-reads" || stage !== "spawn") read()

// A real MCP server over stdio that misbehaves in one named way. usage: node odd.mjs MODE [FILE]
// FILE receives one JSON line per message of the host, or the pids the server started.
import { spawn } from "node:child_process"
import { appendFileSync, writeFileSync } from "node:fs"

const [mode, file] = process.argv.slice(2)
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
const open = { type: "object" }
const sleeper = ["-e", "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)"]

const deep = (levels) => {
  let schema = { type: "string" }
  for (let level = 0; level < levels; level += 1) schema = { type: "object", properties: { a: schema } }
  return schema
}

const tools = {
  names: () =>
    ["read.file", "read file", "x".repeat(128), "🎉", "__proto__", "", "constructor", "plain"].map((name) => ({
      name,
      description: `named ${name.length}`,
      inputSchema: open
    })),
  alike: () => ["c", "b__c"].map((name) => ({ name, inputSchema: open })),
  schemas: () => [
    {
      name: "good",
      inputSchema: {
        type: "object",
        properties: { n: { type: "integer", minimum: 1 } },
        required: ["n"],
        additionalProperties: false
      }
    },
    {
      name: "slow_pattern",
      inputSchema: { type: "object", properties: { text: { type: "string", pattern: "^(a+)+$" } } }
    },
    {
      name: "lookahead",
      inputSchema: { type: "object", properties: { text: { type: "string", pattern: "^(?=a)b" } } }
    },
    { name: "deep", inputSchema: deep(2000) },
    {
      name: "huge",
      inputSchema: { type: "object", properties: { a: { type: "string", description: "x".repeat(2 * 1024 * 1024) } } }
    },
    {
      name: "external",
      inputSchema: { type: "object", properties: { a: { $ref: "https://example.invalid/schema.json" } } }
    },
    { name: "no_schema" },
    { name: "wrong_schema", inputSchema: "object" },
    { inputSchema: open }
  ],
  structured: () => [
    {
      name: "violates",
      inputSchema: open,
      outputSchema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] }
    },
    { name: "digits", inputSchema: open }
  ],
  environment: () => [{ name: "environment", inputSchema: open }]
}

if (mode === "dies") {
  process.stderr.write("fatal: cannot find configuration in HOME\nset API_TOKEN first\n")
  process.exit(3)
}
if (mode === "content-length") {
  process.stdout.write('Content-Length: 17\r\n\r\n{"jsonrpc":"2.0"}')
  setInterval(() => {}, 1000)
}
if (mode === "mute") setInterval(() => {}, 1000)
if (mode === "noise") process.stdout.write("Server listening on stdio\n")
if (mode === "stubborn") {
  process.on("SIGTERM", () => {})
  const child = spawn(process.execPath, sleeper, { stdio: "ignore" })
  const away = spawn(process.execPath, sleeper, { stdio: "ignore", detached: true })
  child.unref()
  away.unref()
  writeFileSync(file, `${process.pid} ${child.pid} ${away.pid}\n`)
  setInterval(() => {}, 1000)
}

const call = (id, name, args, line) => {
  if (name === "environment")
    return send({ id, result: { content: [{ type: "text", text: JSON.stringify(process.env) }] } })
  if (name === "violates")
    return send({ id, result: { content: [{ type: "text", text: "kept" }], structuredContent: { n: "no number" } } })
  if (name === "digits")
    return process.stdout.write(
      `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"structuredContent":{"n":12345678901234567890,"got":${/"arguments":(\{.*?\})/.exec(line)?.[1]}}}}\n`
    )
  if (name === "hang") return
  send({ id, result: { content: [{ type: "text", text: JSON.stringify({ name, args }) }] } })
}

let rest = ""
process.stdin.setEncoding("utf8")
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n")
  rest = lines.pop()
  for (const line of lines) {
    if (file !== undefined && mode !== "stubborn") appendFileSync(file, `${line}\n`)
    if (mode === "mute" || mode === "content-length") continue
    const { id, method, params } = JSON.parse(line)
    if (method === "initialize") {
      send({
        id,
        result: {
          protocolVersion: mode === "future" ? "2099-01-01" : params.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: "odd", version: "1.0.0" }
        }
      })
    } else if (method === "tools/list") {
      send({
        id,
        result: {
          tools: tools[mode]?.() ?? [
            { name: "hang", inputSchema: open },
            { name: "echo", inputSchema: open }
          ]
        }
      })
    } else if (method === "tools/call") call(id, params.name, params.arguments, line)
    else if (mode === "fragile" && id !== undefined) process.stderr.write(`what is ${method}?`, () => process.exit(1))
    else if (id !== undefined) send({ id, error: { code: -32601, message: "Method not found" } })
  }
})
if (mode !== "stubborn") process.stdin.on("end", () => process.exit(0))

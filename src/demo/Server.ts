/**
 * The MCP server that ships with sigil for a first run: stdio, no configuration, no network, no files.
 *
 * It is a program of its own (`dist/demo-server.js`) and speaks plain MCP, so any other host can run it too.
 */
import { isJsonObject, own } from "../base/Json.ts"
import * as Codec from "../protocol/Codec.ts"
import { makeSplitter } from "../protocol/Framing.ts"
import * as JsonRpc from "../protocol/JsonRpc.ts"
import * as Revisions from "../protocol/Revisions.ts"
import { tools } from "./Tools.ts"

const write = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

const handle = (message: Extract<JsonRpc.Incoming, { _tag: "Request" }>): void => {
  const { id, params } = message
  switch (message.method) {
    case "initialize": {
      const wanted = own(params, "protocolVersion")
      const revision = (typeof wanted === "string" ? Revisions.find(wanted) : undefined) ?? Revisions.newest
      return write(
        JsonRpc.result(id, {
          protocolVersion: revision.version,
          capabilities: { tools: {} },
          serverInfo: { name: "sigil-demo", version: "1.0.0" },
          instructions: "A server for trying sigil out. Its tools have no effects."
        })
      )
    }
    case "ping":
      return write(JsonRpc.result(id, {}))
    case "tools/list":
      return write(JsonRpc.result(id, { tools: [...tools.values()].map((tool) => tool.definition) }))
    case "tools/call": {
      const name = own(params, "name")
      const tool = typeof name === "string" ? tools.get(name) : undefined
      if (tool === undefined) return write(JsonRpc.failure(id, JsonRpc.ErrorCode.invalidParams, "Unknown tool"))
      const args = own(params, "arguments")
      return write(JsonRpc.result(id, tool.run(isJsonObject(args) ? args : {}, process.env)))
    }
    default:
      return write(JsonRpc.failure(id, JsonRpc.ErrorCode.methodNotFound, `Method not found: ${message.method}`))
  }
}

const splitter = makeSplitter((text) => {
  try {
    const message = JsonRpc.classify(Codec.parse(text))
    if (message._tag === "Request") handle(message)
  } catch {
    write(JsonRpc.failure(0, JsonRpc.ErrorCode.parse, "Parse error"))
  }
  return true
})

process.stdin.on("data", (chunk: Buffer) => {
  if (splitter.push(chunk) !== undefined) process.exit(1)
})
process.stdin.on("end", () => process.exit(0))
process.stdout.on("error", () => process.exit(0))

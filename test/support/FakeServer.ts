/** An in-process MCP server for tests: well-behaved by default, each part replaceable. */
import type { Json, JsonObject } from "../../src/base/Json.ts"
import type { MemoryLink, MemoryServer } from "../../src/transport/MemoryTransport.ts"

/** One message that the host sent. */
export interface Received {
  readonly id?: string | number
  readonly method?: string
  readonly params?: JsonObject
  readonly result?: JsonObject
  readonly error?: JsonObject
}

/** Answers one request; `undefined` keeps silent. */
export type Answer = (params: JsonObject, link: MemoryLink, id: string | number) => JsonObject | undefined

/** Parts of a fake server. */
export interface FakeParts {
  readonly tools?: ReadonlyArray<Json>
  readonly methods?: { readonly [method: string]: Answer }
  readonly protocolVersion?: string
  /** Everything the host sent, in order. */
  readonly received?: Array<Received>
}

/** A tool definition with an open object schema. */
export const tool = (name: string, extra: JsonObject = {}): JsonObject => ({
  name,
  description: `The tool ${name}.`,
  inputSchema: { type: "object" },
  ...extra
})

/** A text result. */
export const text = (value: string): JsonObject => ({ content: [{ type: "text", text: value }] })

/** Builds the server. */
export const fakeServer =
  (parts: FakeParts = {}): MemoryServer =>
  (link) => ({
    receive: (line) => {
      // The host's own output: a JSON-RPC object.
      const message = JSON.parse(line) as Received
      parts.received?.push(message)
      const { id, method } = message
      if (id === undefined || method === undefined) return
      const respond = (result: JsonObject | undefined): void => {
        if (result !== undefined) link.send({ jsonrpc: "2.0", id, result })
      }
      const custom = parts.methods?.[method]
      if (custom !== undefined) return respond(custom(message.params ?? {}, link, id))
      if (method === "initialize") {
        return respond({
          protocolVersion: parts.protocolVersion ?? "2025-11-25",
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name: "fake", version: "1.0.0" }
        })
      }
      if (method === "tools/list") return respond({ tools: parts.tools ?? [tool("echo")] })
      if (method === "tools/call") return respond(text(JSON.stringify(message.params?.["arguments"] ?? {})))
      link.send({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } })
    }
  })

/** An in-process server of revision 2026-07-28 for tests: no handshake, each part replaceable. */
import { isJsonObject, type Json, type JsonObject } from "../../src/base/Json.ts"
import type { MemoryLink, MemoryServer } from "../../src/transport/MemoryTransport.ts"
import type { Received } from "./FakeServer.ts"

/** What a method answers with: a result, an error as the only member, or `undefined` to keep silent. */
export type Reply = JsonObject | undefined

/** Parts of the server. */
export interface StatelessParts {
  readonly tools?: ReadonlyArray<Json>
  readonly capabilities?: JsonObject
  readonly versions?: ReadonlyArray<string>
  readonly methods?: {
    readonly [method: string]: (params: JsonObject, link: MemoryLink, id: string | number) => Reply
  }
  /** Everything the host sent, in order. */
  readonly received?: Array<Received>
}

/** Builds the server. */
export const statelessServer =
  (parts: StatelessParts = {}): MemoryServer =>
  (link) => ({
    receive: (line) => {
      // The host's own output: a JSON-RPC object.
      const message = JSON.parse(line) as Received
      parts.received?.push(message)
      const { id, method, params } = message
      if (id === undefined || method === undefined) return
      const respond = (reply: Reply): void => {
        if (reply === undefined) return
        const fails = Object.keys(reply).join() === "error"
        link.send(fails ? { jsonrpc: "2.0", id, error: reply["error"] ?? {} } : { jsonrpc: "2.0", id, result: reply })
      }
      const custom = parts.methods?.[method]
      if (custom !== undefined) return respond(custom(params ?? {}, link, id))
      if (method === "server/discover")
        return respond({
          resultType: "complete",
          supportedVersions: parts.versions ?? ["2026-07-28"],
          capabilities: parts.capabilities ?? { tools: {} },
          instructions: "Be kind.",
          ttlMs: 0,
          cacheScope: "private",
          _meta: { "io.modelcontextprotocol/serverInfo": { name: "modern", version: "2" } }
        })
      if (method === "tools/list")
        return respond({ resultType: "complete", tools: parts.tools ?? [], ttlMs: 0, cacheScope: "private" })
      respond({ error: { code: -32601, message: "Method not found" } })
    }
  })

/** The `_meta` of a message that a server received. */
export const meta = (message: Received | undefined): JsonObject => {
  const found = message?.params?.["_meta"]
  return isJsonObject(found) ? found : {}
}

/** A reserved key of `_meta`. */
export const key = (name: string): string => `io.modelcontextprotocol/${name}`

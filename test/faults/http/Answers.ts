/**
 * What a well-behaved server of each era answers: one tool, `echo {text}`.
 *
 * The older era has sessions and sends 404 for one that it does not know; the newer one takes POST alone. Rules: K
 * sections 9.9 and 9.10.
 */
import type { Era } from "./Step.ts"

/** A message of a client, as far as a server looks at it. */
export interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly params?: { readonly [key: string]: unknown }
}

/** A right answer. */
export interface Answer {
  readonly status: number
  /** JSON-RPC message; absent where the body is empty. */
  readonly message?: { readonly [key: string]: unknown }
}

/** `_meta` key that ties a notification to its `subscriptions/listen`. */
const SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
const serverInfo = { name: "hostile", version: "1.0.0" }
const capabilities = { tools: { listChanged: true } }
const tools = [
  {
    name: "echo",
    description: "Answers with its text.",
    inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] }
  }
]

const result = (message: Message, value: object): Answer => ({
  status: 200,
  message: { jsonrpc: "2.0", id: message.id, result: value }
})
const failure = (message: Message, status: number, code: number, text: string): Answer => ({
  status,
  message: { jsonrpc: "2.0", id: message.id ?? null, error: { code, message: text } }
})

const called = ({ params }: Message): object => {
  // Only the text of `echo` is looked at, whatever else is there.
  const { text } = (params?.["arguments"] ?? {}) as { readonly text?: unknown }
  return { content: [{ type: "text", text: String(text) }] }
}

const legacy = (message: Message): Answer => {
  switch (message.method) {
    case "initialize":
      return result(message, {
        protocolVersion: message.params?.["protocolVersion"],
        capabilities,
        serverInfo
      })
    case "server/discover":
      return { ...failure(message, 400, -32_000, "Bad Request: Server not initialized") }
    case "tools/list":
      return result(message, { tools })
    case "tools/call":
      return result(message, called(message))
    case "ping":
      return result(message, {})
    default:
      return failure(message, 200, -32_601, "Method not found")
  }
}

const modern = (message: Message): Answer => {
  const _meta = { "io.modelcontextprotocol/serverInfo": serverInfo }
  const complete = { resultType: "complete", _meta }
  const cacheable = { ...complete, ttlMs: 0, cacheScope: "private" }
  switch (message.method) {
    case "server/discover":
      return result(message, { ...cacheable, supportedVersions: ["2026-07-28"], capabilities })
    case "tools/list":
      return result(message, { ...cacheable, tools })
    case "tools/call":
      return result(message, { ...complete, ...called(message) })
    default:
      return failure(message, 404, -32_601, "Method not found")
  }
}

/** The answer to a message that was posted. */
export const answerTo = (era: Era, message: Message): Answer => {
  // Notifications, and answers to requests of the server.
  if (message.id === undefined || message.method === undefined) return { status: 202 }
  return era === "legacy" ? legacy(message) : modern(message)
}

/** What a listen stream says first. */
export const acknowledged = (message: Message): object => ({
  jsonrpc: "2.0",
  method: "notifications/subscriptions/acknowledged",
  params: { _meta: { [SUBSCRIPTION_ID]: message.id }, notifications: message.params?.["notifications"] ?? {} }
})

/** The same notification for a stream of either era; `listen` is the id of the request that opened it. */
export const notification = (method: string, params: object, listen?: number | string): object => ({
  jsonrpc: "2.0",
  method,
  params: listen === undefined ? params : { ...params, _meta: { [SUBSCRIPTION_ID]: listen } }
})

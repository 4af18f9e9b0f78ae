/**
 * An MCP server made of functions, for `MemoryTransport`: tools that live in the host, and fakes in tests.
 *
 * It speaks plain MCP, so its calls pass the whole pipeline like those of any other server. A call that the host
 * gives up is interrupted, and so is everything that still runs when the connection closes.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as JSONSchema from "effect/JSONSchema"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { isJsonObject, type JsonObject, own } from "../base/Json.ts"
import { VERSION } from "../base/Version.ts"
import * as Codec from "../protocol/Codec.ts"
import * as JsonRpc from "../protocol/JsonRpc.ts"
import * as Revisions from "../protocol/Revisions.ts"
import type { MemoryServer } from "./MemoryTransport.ts"

/** What a tool gives: a text, or a whole `CallToolResult` of MCP. */
export type ToolResult = string | JsonObject

/** One tool. */
export interface Tool {
  readonly description: string
  /** JSON Schema of the arguments, 2020-12 or draft-07. */
  readonly inputSchema: JsonObject
  /** JSON Schema of `structuredContent`; sigil checks results against it. */
  readonly outputSchema?: JsonObject
  /** MCP's `ToolAnnotations`, e.g. `{ destructiveHint: true }`. */
  readonly annotations?: JsonObject
  /**
   * Runs one call, in a fiber of its own without the services and spans of whoever called. A failure becomes a
   * result with `isError`, its text being the failure's.
   */
  readonly run: (args: JsonObject) => Effect.Effect<ToolResult, string>
}

/** The parts of a server. */
export interface ToolServerOptions {
  readonly tools: { readonly [name: string]: Tool }
  /** `serverInfo.name`; `in-process` when absent. */
  readonly name?: string
  /** `serverInfo.version`; sigil's own when absent. */
  readonly version?: string
  readonly instructions?: string
}

/**
 * A tool whose arguments are described and decoded by a Schema.
 *
 * The schema must have a JSON Schema (`effect/JSONSchema` throws otherwise, here and not at a call).
 */
export const tool = <A, I>(options: {
  readonly description: string
  readonly input: Schema.Schema<A, I>
  readonly annotations?: JsonObject
  readonly run: (input: A) => Effect.Effect<ToolResult, string>
}): Tool => {
  const decode = Schema.decodeUnknown(options.input)
  return {
    description: options.description,
    // A JSON Schema document is JSON; its own type names the keywords and has no index signature.
    inputSchema: JSONSchema.make(options.input) as unknown as JsonObject,
    ...(options.annotations === undefined ? {} : { annotations: options.annotations }),
    run: (args) =>
      Effect.flatMap(
        Effect.mapError(decode(args), (error) => error.message),
        options.run
      )
  }
}

const definition = (name: string, { description, inputSchema, outputSchema, annotations }: Tool): JsonObject => ({
  name,
  description,
  inputSchema,
  ...(outputSchema === undefined ? {} : { outputSchema }),
  ...(annotations === undefined ? {} : { annotations })
})

const textResult = (text: string, isError: boolean): JsonObject => ({
  content: [{ type: "text", text }],
  ...(isError ? { isError } : {})
})

/** The JSON-RPC answer to a finished call; `undefined` when it was interrupted and nobody waits. */
const answer = (id: JsonRpc.Id, exit: Exit.Exit<ToolResult, string>): string | undefined => {
  if (Exit.isSuccess(exit)) {
    const { value } = exit
    return JsonRpc.result(id, typeof value === "string" ? textResult(value, false) : value)
  }
  const failure = Cause.failureOption(exit.cause)
  if (Option.isSome(failure)) return JsonRpc.result(id, textResult(failure.value, true))
  return Cause.isInterruptedOnly(exit.cause)
    ? undefined
    : JsonRpc.failure(id, JsonRpc.ErrorCode.internal, "The tool failed unexpectedly.")
}

/** Builds the server; each connection has its own calls. */
export const make =
  (options: ToolServerOptions): MemoryServer =>
  (link) => {
    const running = new Map<JsonRpc.Id, Fiber.RuntimeFiber<ToolResult, string>>()

    const call = (id: JsonRpc.Id, params: JsonObject): void => {
      const name = own(params, "name")
      const known = typeof name === "string" && Object.hasOwn(options.tools, name) ? options.tools[name] : undefined
      if (known === undefined)
        return link.sendText(JsonRpc.failure(id, JsonRpc.ErrorCode.invalidParams, "Unknown tool"))
      const args = own(params, "arguments")
      const fiber = Effect.runFork(Effect.suspend(() => known.run(isJsonObject(args) ? args : {})))
      running.set(id, fiber)
      fiber.addObserver((exit) => {
        running.delete(id)
        const text = answer(id, exit)
        if (text !== undefined) link.sendText(text)
      })
    }

    const request = (id: JsonRpc.Id, method: string, params: JsonObject): void => {
      switch (method) {
        case "initialize": {
          const wanted = own(params, "protocolVersion")
          const revision = (typeof wanted === "string" ? Revisions.find(wanted) : undefined) ?? Revisions.newest
          return link.sendText(
            JsonRpc.result(id, {
              protocolVersion: revision.version,
              capabilities: { tools: {} },
              serverInfo: { name: options.name ?? "in-process", version: options.version ?? VERSION },
              ...(options.instructions === undefined ? {} : { instructions: options.instructions })
            })
          )
        }
        case "ping":
          return link.sendText(JsonRpc.result(id, {}))
        case "tools/list":
          return link.sendText(
            JsonRpc.result(id, { tools: Object.entries(options.tools).map(([name, one]) => definition(name, one)) })
          )
        case "tools/call":
          return call(id, params)
        default:
          return link.sendText(JsonRpc.failure(id, JsonRpc.ErrorCode.methodNotFound, `Method not found: ${method}`))
      }
    }

    return {
      receive: (text) => {
        // The host's own output: always JSON.
        const message = JsonRpc.classify(Codec.parse(text))
        if (message._tag === "Request") return request(message.id, message.method, message.params)
        if (message._tag !== "Notification" || message.method !== "notifications/cancelled") return
        const id = own(message.params, "requestId")
        const fiber = typeof id === "string" || typeof id === "number" ? running.get(id) : undefined
        if (fiber !== undefined) Effect.runFork(Fiber.interrupt(fiber))
      },
      close: () => {
        for (const fiber of running.values()) Effect.runFork(Fiber.interrupt(fiber))
      }
    }
  }

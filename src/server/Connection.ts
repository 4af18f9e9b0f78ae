/**
 * Requests and answers over one wire: correlation, both directions, limits, the first terminal cause.
 *
 * Invariants: every request ends exactly once (answer, error, deadline, interruption or the connection's end);
 * ids are never reused; after the first terminal cause nothing is sent, every waiter has that cause, and late
 * answers go nowhere. The frame path is plain functions; one Effect per request (`Deadline.within`).
 * Rules: spec section 7, R sections 4.3 to 4.6, K sections 9.1 and 9.12.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Runtime from "effect/Runtime"
import type * as Scope from "effect/Scope"
import { type Json, type JsonObject, own } from "../base/Json.ts"
import { MIB } from "../base/Units.ts"
import * as Codec from "../protocol/Codec.ts"
import { isContentLengthHeader, MAX_FRAME_BYTES } from "../protocol/Framing.ts"
import * as JsonRpc from "../protocol/JsonRpc.ts"
import { type ConnectionFacts, exchange, type Sending } from "../telemetry/Spans.ts"
import { inject } from "../telemetry/TraceContext.ts"
import type { Wire, WireEnd } from "../transport/Transport.ts"
import * as Deadline from "./Deadline.ts"
import { ConnectionError, RemoteError } from "./ServerError.ts"
import { faultFor, type Terminal } from "./TerminalCause.ts"

/** Messages that are no answer, allowed in one window of open requests (R section 4.2). */
export const MAX_MESSAGES = 256
/** Bytes of such messages in one window (R section 4.2). */
export const MAX_WINDOW_BYTES = 8 * MIB
/** Progress notes handed on for one request, at most one in this many milliseconds (100 a second). */
const PROGRESS_INTERVAL_MS = 10
/** Above this many queued bytes a new request waits for the pipe first. */
const BACKLOG_HIGH_BYTES = MIB
/** Lines that are no protocol, tolerated with `stdout_noise = "skip"`. */
const MAX_NOISE_LINES = 10_000

/** One progress note of a request. */
export interface Progress {
  readonly progress: number
  readonly total?: number
  readonly message?: string
}

/** How one request is made. */
export interface RequestOptions {
  /** Deadline in ms, the time in the queue included. */
  readonly deadlineMs: number
  /** Names the request in errors, e.g. `tools/call read_file`. */
  readonly operation: string
  readonly onProgress?: (progress: Progress) => void
  /** The configuration field that sets the deadline; named by the timeout error. */
  readonly deadlineField: string
  /** Whether an abandoned request is announced with `notifications/cancelled`; never for `initialize`. */
  readonly cancellable?: boolean
}

/** Answers one request of the server. Absent: -32601. */
export type ServerRequestHandler = (params: JsonObject) => Effect.Effect<JsonObject, { code: number; message: string }>

/** What the connection does on events that are not answers. */
export interface ConnectionOptions {
  readonly server: string
  readonly handlers: ReadonlyMap<string, ServerRequestHandler>
  /** Any notification but progress and cancelled. */
  readonly onNotification: (method: string, params: JsonObject) => void
  /** Whether a value may go to this server as far as known secrets go. */
  readonly mayLeave: (value: JsonObject) => boolean
  readonly stdoutNoise: "refuse" | "skip"
  readonly onTimeout: "close" | "keep"
  /** What spans and measurements say of this connection. */
  readonly telemetry: ConnectionFacts
}

/** Odd things a server did that were tolerated. */
export interface Oddities {
  noiseLines: number
  strayMessages: number
  readonly warnings: Set<string>
  /** Methods of the server that were answered with -32601. */
  readonly declined: Set<string>
}

/** One live connection. */
export interface Connection {
  readonly request: (
    method: string,
    params: JsonObject | undefined,
    options: RequestOptions
  ) => Effect.Effect<JsonObject, ConnectionError | RemoteError>
  readonly notify: (method: string, params?: JsonObject) => void
  /** Ends the connection for a reason of the host; the first cause wins. */
  readonly end: (end: WireEnd) => void
  /** Completes with the first terminal cause. */
  readonly ended: Deferred.Deferred<Terminal>
  readonly terminal: () => Terminal | undefined
  readonly oddities: Oddities
  /** Whether JSON-RPC arrays are valid; set when the revision is known. */
  batches: boolean
}

interface Pending {
  readonly operation: string
  readonly settle: (answer: Effect.Effect<JsonObject, ConnectionError | RemoteError>) => void
  readonly onProgress: ((progress: Progress) => void) | undefined
  progressAt: number
  latest: Progress | undefined
}

/** A connection over an open wire; its sweeper lives in the scope. */
export const make = (wire: Wire, options: ConnectionOptions): Effect.Effect<Connection, never, Scope.Scope> =>
  Effect.gen(function* () {
    const deadlines = yield* Deadline.make
    const ended = yield* Deferred.make<Terminal>()
    const runtime = yield* Effect.runtime<never>()
    const server = options.server
    const pending = new Map<number, Pending>()
    const oddities: Oddities = { noiseLines: 0, strayMessages: 0, warnings: new Set(), declined: new Set() }
    let nextId = 1
    let terminal: Terminal | undefined
    let windowMessages = 0
    let windowBytes = 0

    const finish = (end: WireEnd, culprit?: string): void => {
      if (terminal !== undefined) return
      terminal = culprit === undefined ? { end } : { end, culprit }
      const failed = terminal
      for (const waiting of pending.values()) waiting.settle(Effect.fail(faultFor(server, failed, waiting.operation)))
      pending.clear()
      Deferred.unsafeDone(ended, Exit.succeed(failed))
      // The cause may be ours (a deadline, a limit): what is behind the wire must go too. Idempotent.
      runtimeFork(wire.close)
    }
    const runtimeFork = Runtime.runFork(runtime)
    const limit = (reason: string, text: string, details: { readonly [key: string]: unknown }): false => {
      finish({ reason, text, details })
      return false
    }
    const odd = (warning?: string): void => {
      oddities.strayMessages += 1
      if (warning !== undefined && oddities.warnings.size < 20) oddities.warnings.add(warning)
    }
    const invalid = (reason: string, text: string): false => {
      finish({ reason, text })
      return false
    }

    /** Counts a message that is no answer against the window of open requests; idle ones are free but dropped cheaply. */
    const countMessage = (bytes: number): boolean => {
      if (pending.size === 0) return true
      windowMessages += 1
      windowBytes += bytes
      if (windowMessages > MAX_MESSAGES) {
        return limit("message_limit", `The server sent more than ${MAX_MESSAGES} messages without an answer.`, {
          limit: MAX_MESSAGES,
          observed_at_least: windowMessages
        })
      }
      if (windowBytes > MAX_WINDOW_BYTES) {
        return limit(
          "cumulative_bytes_limit",
          `The server sent more than ${MAX_WINDOW_BYTES} bytes without an answer.`,
          {
            limit_bytes: MAX_WINDOW_BYTES,
            observed_at_least_bytes: windowBytes
          }
        )
      }
      return true
    }

    const findPending = (id: JsonRpc.Id): readonly [number, Pending] | undefined => {
      const key = typeof id === "number" ? id : Number(id)
      const found = pending.get(key)
      if (found === undefined || (typeof id === "string" && String(key) !== id)) return undefined
      if (typeof id === "string") odd("An answer carried the request id as a string.")
      return [key, found]
    }
    const answer = (id: JsonRpc.Id, outcome: Effect.Effect<JsonObject, RemoteError>): void => {
      const found = findPending(id)
      if (found === undefined) return odd("An answer named no open request.")
      const [key, waiting] = found
      pending.delete(key)
      windowMessages = 0
      windowBytes = 0
      if (waiting.latest !== undefined) waiting.onProgress?.(waiting.latest)
      waiting.settle(outcome)
    }
    const remoteError = (operation: string, error: JsonRpc.ErrorObject): RemoteError =>
      new RemoteError({
        code: "SIGIL_REMOTE_ERROR",
        reason: "remote_error",
        text: `The server '${server}' answered '${operation}' with error ${error.code}: ${error.message}`,
        where: { server, operation },
        details: { remote_error: { code: error.code, message_total_bytes: Buffer.byteLength(error.message) } },
        rpcCode: error.code
      })

    const onProgress = (params: JsonObject): boolean => {
      const token = own(params, "progressToken")
      const found = typeof token === "number" ? pending.get(token) : undefined
      if (found === undefined) {
        odd()
        return false
      }
      const progress = own(params, "progress")
      if (typeof progress !== "number") return true
      const total = own(params, "total")
      const message = own(params, "message")
      const note: Progress = {
        progress,
        ...(typeof total === "number" ? { total } : {}),
        ...(typeof message === "string" ? { message } : {})
      }
      const now = deadlines.now()
      if (now - found.progressAt < PROGRESS_INTERVAL_MS) {
        found.latest = note
        return true
      }
      found.progressAt = now
      found.latest = undefined
      found.onProgress?.(note)
      return true
    }
    const onNotification = (method: string, params: JsonObject): void => {
      if (method !== "notifications/cancelled") return options.onNotification(method, params)
      const id = own(params, "requestId")
      const found = typeof id === "number" || typeof id === "string" ? findPending(id) : undefined
      if (found === undefined) return odd()
      pending.delete(found[0])
      const reason = own(params, "reason")
      found[1].settle(
        Effect.fail(
          new ConnectionError({
            code: "SIGIL_CALL_CANCELLED",
            reason: "cancelled_by_server",
            text: `The server '${server}' cancelled '${found[1].operation}'${typeof reason === "string" ? `: ${reason.slice(0, 512)}` : "."}`,
            where: { server, operation: found[1].operation }
          })
        )
      )
    }
    const onRequest = (id: JsonRpc.Id, method: string, params: JsonObject): void => {
      if (method === "ping") {
        wire.send(JsonRpc.result(id, {}))
        return
      }
      const handler = options.handlers.get(method)
      if (handler === undefined) {
        if (oddities.declined.size < 20) oddities.declined.add(method.slice(0, 128))
        wire.send(JsonRpc.failure(id, JsonRpc.ErrorCode.methodNotFound, `Method not found: ${method.slice(0, 128)}`))
        return
      }
      runtimeFork(
        Effect.match(handler(params), {
          onFailure: (error) => wire.send(JsonRpc.failure(id, error.code, error.message)),
          onSuccess: (value) => wire.send(JsonRpc.result(id, value))
        })
      )
    }

    const take = (value: Json, bytes: number, inBatch: boolean): boolean => {
      const message = JsonRpc.classify(value)
      switch (message._tag) {
        case "Result":
          answer(message.id, Effect.succeed(message.result))
          return true
        case "Error": {
          if (message.id === null) {
            const only = pending.size === 1 ? pending.keys().next().value : undefined
            if (only === undefined) {
              odd("An error named no request.")
              return countMessage(bytes)
            }
            answer(only, Effect.fail(remoteError(pending.get(only)?.operation ?? "", message.error)))
            return true
          }
          const found = pending.get(Number(message.id))
          answer(message.id, Effect.fail(remoteError(found?.operation ?? "", message.error)))
          return true
        }
        case "Notification":
          if (message.method === "notifications/progress" && onProgress(message.params)) return true
          if (!countMessage(bytes)) return false
          if (message.method !== "notifications/progress") onNotification(message.method, message.params)
          return terminal === undefined
        case "Request":
          if (!countMessage(bytes)) return false
          onRequest(message.id, message.method, message.params)
          return true
        case "Invalid":
          if (message.reason === "batch" && connection.batches && !inBatch && Array.isArray(value)) {
            return value.length > 0 && value.every((item) => take(item, bytes / value.length, true))
          }
          return invalid(
            "invalid_jsonrpc_envelope",
            `The server sent a message that is no JSON-RPC 2.0: ${message.reason}.`
          )
      }
    }
    const onMessage = (text: string, bytes: number): boolean => {
      if (terminal !== undefined) return false
      let value: Json
      try {
        value = Codec.parse(text)
      } catch {
        if (isContentLengthHeader(text)) {
          return invalid(
            "content_length_framing",
            "The server frames its messages with Content-Length headers. MCP over stdio is one JSON message per line."
          )
        }
        if (options.stdoutNoise === "skip" && oddities.noiseLines < MAX_NOISE_LINES) {
          oddities.noiseLines += 1
          return true
        }
        return invalid("invalid_json", "The server wrote a line to stdout that is not JSON.")
      }
      return take(value, bytes, false)
    }

    const send = (
      method: string,
      params: JsonObject | undefined,
      given: RequestOptions,
      sending: Sending | undefined
    ) =>
      Deadline.within<JsonObject, ConnectionError | RemoteError>(
        deadlines,
        given.deadlineMs,
        () =>
          new ConnectionError({
            code: "SIGIL_CALL_TIMEOUT",
            reason: "timeout",
            text: `The server '${server}' did not answer '${given.operation}' within ${given.deadlineMs} ms.`,
            fix: given.deadlineField.startsWith("--")
              ? `Give a longer ${given.deadlineField} if the work needs it.`
              : `Raise ${given.deadlineField} of '${server}' if the work needs longer.`,
            where: { server, operation: given.operation, field: given.deadlineField },
            details: { timeout_ms: given.deadlineMs }
          }),
        (settle) => {
          if (terminal !== undefined) {
            settle(Effect.fail(faultFor(server, terminal, given.operation)))
            return () => undefined
          }
          const id = nextId++
          sending?.sent(id)
          const text = JsonRpc.request(id, method, given.onProgress === undefined ? params : withToken(params, id))
          if (text.length * 3 > MAX_FRAME_BYTES && Buffer.byteLength(text) > MAX_FRAME_BYTES) {
            settle(
              Effect.fail(
                new ConnectionError({
                  code: "SIGIL_LIMIT_EXCEEDED",
                  reason: "frame_too_large",
                  text: `The request '${given.operation}' is larger than ${MAX_FRAME_BYTES} bytes; nothing was sent.`,
                  fix: "Send less at a time, for instance a path instead of the content.",
                  where: { server, operation: given.operation },
                  details: { limit_bytes: MAX_FRAME_BYTES, observed_at_least_bytes: MAX_FRAME_BYTES + 1 }
                })
              )
            )
            return () => undefined
          }
          if (pending.size === 0) {
            windowMessages = 0
            windowBytes = 0
            wire.openWindow()
          }
          pending.set(id, {
            operation: given.operation,
            settle,
            onProgress: given.onProgress,
            progressAt: Number.NEGATIVE_INFINITY,
            latest: undefined
          })
          if (!wire.send(text)) finish({ reason: "write_failed", text: "The connection to the server is closed." })
          return (reason) => {
            pending.delete(id)
            if (given.cancellable !== false && terminal === undefined) {
              wire.send(JsonRpc.notification("notifications/cancelled", { requestId: id, reason }))
            }
            if (reason === "timeout" && options.onTimeout === "close") {
              finish(
                { reason: "timeout", text: `'${given.operation}' got no answer within its deadline.` },
                given.operation
              )
            }
          }
        }
      )

    const connection: Connection = {
      request: (method, params, given) =>
        exchange(options.telemetry, method, params, (sending) => {
          // Baggage comes from outside: what holds a known secret does not travel on.
          const traced =
            sending?.meta === undefined || !options.mayLeave(sending.meta) ? params : inject(params, sending.meta)
          return wire.backlogBytes() > BACKLOG_HIGH_BYTES
            ? waitForPipe(given).pipe(Effect.zipRight(send(method, traced, given, sending)))
            : send(method, traced, given, sending)
        }),
      notify: (method, params) => {
        wire.send(JsonRpc.notification(method, params))
      },
      end: (end) => finish(end),
      ended,
      terminal: () => terminal,
      oddities,
      batches: false
    }
    /** A peer that does not read must not make the host queue without end; the wait counts as part of the call. */
    const waitForPipe = (given: RequestOptions): Effect.Effect<void, ConnectionError> =>
      wire.drained.pipe(
        Effect.timeoutFail({
          duration: given.deadlineMs,
          onTimeout: () =>
            new ConnectionError({
              code: "SIGIL_CALL_TIMEOUT",
              reason: "timeout_in_queue",
              text: `The server '${server}' did not read its input for ${given.deadlineMs} ms; '${given.operation}' was not sent.`,
              where: { server, operation: given.operation },
              details: { timeout_ms: given.deadlineMs }
            })
        })
      )

    wire.listen({ message: onMessage, end: (end) => finish(end) })
    return connection
  })

const withToken = (params: JsonObject | undefined, token: number): JsonObject => {
  const meta = params === undefined ? undefined : own(params, "_meta")
  return { ...params, _meta: { ...(typeof meta === "object" && meta !== null ? meta : {}), progressToken: token } }
}

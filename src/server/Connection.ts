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
import { cut } from "../base/Cut.ts"
import { type Json, type JsonObject, own } from "../base/Json.ts"
import { MIB } from "../base/Units.ts"
import * as Codec from "../protocol/Codec.ts"
import { isContentLengthHeader, MAX_FRAME_BYTES } from "../protocol/Framing.ts"
import * as JsonRpc from "../protocol/JsonRpc.ts"
import type { Revision } from "../protocol/Revision.ts"
import { dress, standardHeaders } from "../protocol/Stateless.ts"
import { exchange, type Sending } from "../telemetry/Spans.ts"
import { inject } from "../telemetry/TraceContext.ts"
import type { DeliveryFault, Outgoing, Wire, WireEnd } from "../transport/Transport.ts"
import type { ConnectionOptions, Oddities } from "./ConnectionOptions.ts"
import * as Deadline from "./Deadline.ts"
import type { ConnectionError, RemoteError } from "./ServerError.ts"
import * as InboundWindow from "./InboundWindow.ts"
import { noteOf, tokenOf, redacted } from "./Progress.ts"
import type { Asked, RequestOptions } from "./Request.ts"
import * as PendingRequests from "./PendingRequests.ts"
import * as RequestFault from "./RequestFault.ts"
import { faultFor, type Terminal } from "./TerminalCause.ts"

/** Progress notes handed on for one request, at most one in this many milliseconds (100 a second). */
const PROGRESS_INTERVAL_MS = 10
/** Above this many queued bytes a new request waits for the pipe first. */
const BACKLOG_HIGH_BYTES = MIB
/** Lines that are no protocol, tolerated with `stdout_noise = "skip"`. */
const MAX_NOISE_LINES = 10_000
/** Timeouts in a row that end a connection with `on_timeout = "keep"` (spec section 7). */
const MAX_TIMEOUTS_IN_ROW = 2
/** Answers to the server that may wait for it to read them; a server that asks without reading is cut off. */
const MAX_UNREAD_ANSWER_BYTES = 8 * MIB

export type { ConnectionOptions, Oddities } from "./ConnectionOptions.ts"
export type { Asked, Asker, RequestOptions, ServerRequestHandler } from "./Request.ts"

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
  /** Requests that wait for their answer. */
  readonly openRequests: () => number
  /** Completes when no request is open. */
  readonly idle: Effect.Effect<void>
  readonly oddities: Oddities
  /** The revision that messages follow from now on. */
  readonly agree: (revision: Revision) => void
  /** Completes when what was sent without an answer to wait for has been taken. */
  readonly flushed: Effect.Effect<void>
}

/** A connection over an open wire; its sweeper lives in the scope. */
export const make = (wire: Wire, options: ConnectionOptions): Effect.Effect<Connection, never, Scope.Scope> =>
  Effect.gen(function* () {
    const deadlines = yield* Deadline.make
    const ended = yield* Deferred.make<Terminal>()
    const runtimeFork = Runtime.runFork(yield* Effect.runtime<never>())
    const server = options.server
    const pending = PendingRequests.make()
    const oddities: Oddities = {
      noiseLines: 0,
      strayMessages: 0,
      idleMessages: 0,
      warnings: new Set(),
      declined: new Set()
    }
    let timeoutsInRow = 0
    let nextId = 1
    let terminal: Terminal | undefined
    let revision: Revision | undefined
    const window = InboundWindow.make()
    /** Requests that were given up and whose late answer nobody wonders about. */
    const expectedLate = new Set<number>()

    const finish = (end: WireEnd, culprit?: string): void => {
      if (terminal !== undefined) return
      terminal = { end, remote: options.telemetry.transport === "tcp", ...(culprit === undefined ? {} : { culprit }) }
      const failed = terminal
      pending.clear(({ operation, settle }) => settle(Effect.fail(faultFor(server, failed, operation))))
      Deferred.unsafeDone(ended, Exit.succeed(failed))
      // The cause may be ours (a deadline, a limit): what is behind the wire must go too. Idempotent.
      runtimeFork(wire.close)
    }
    /** What the server sends by itself can be blamed on a call only while that is the only one open. */
    const suspect = (): string | undefined => pending.only()?.[1].operation
    /** Whether the grants still stand; ends the connection when one does not. */
    const isBound = (): boolean => {
      const name = options.changedVariable()
      if (name === undefined) return true
      finish({
        reason: "environment_binding_changed",
        text: `The variable '${name}' that was granted to it is not what it was at its start.`,
        details: { variable: name }
      })
      return false
    }
    /** The one way out: nothing is written once the connection is over or a grant is gone. */
    const write = (text: string, about?: Outgoing): boolean =>
      terminal === undefined && isBound() && wire.send(text, about)
    const reply = (text: string, id: JsonRpc.Id, answers: string): void => {
      if (wire.backlogBytes() > MAX_UNREAD_ANSWER_BYTES) {
        const details = { limit_bytes: MAX_UNREAD_ANSWER_BYTES }
        const text = "The server sends requests and does not read the answers."
        finish({ reason: "backlog_limit", text, details }, suspect())
        return
      }
      write(text, { id, answers })
    }
    const odd = (warning?: string): void => {
      oddities.strayMessages += 1
      if (warning !== undefined && oddities.warnings.size < 20) oddities.warnings.add(warning)
    }
    const invalid = (reason: string, text: string): false => {
      finish({ reason, text }, suspect())
      return false
    }

    /** Counts a message that is no answer against the window of open requests; idle ones are only counted. */
    const countMessage = (bytes: number): boolean => {
      if (!pending.inWindow()) {
        oddities.idleMessages += 1
        return true
      }
      const end = window.take(bytes)
      if (end !== undefined) finish(end, suspect())
      return end === undefined
    }

    const findPending = (id: JsonRpc.Id): ReturnType<typeof pending.find> => {
      const found = pending.find(id)
      if (found !== undefined && typeof id === "string") odd("An answer carried the request id as a string.")
      return found
    }
    const answer = (
      id: JsonRpc.Id,
      bytes: number,
      outcome: Effect.Effect<JsonObject, RemoteError>,
      about?: JsonRpc.Id
    ): boolean => {
      const found = findPending(id)
      if (found === undefined) {
        odd(expectedLate.delete(Number(id)) ? undefined : "An answer named no open request.")
        return countMessage(bytes)
      }
      // What carries one request may only answer that one: nobody gets what was meant for another call.
      if (about !== undefined && String(about) !== String(id)) {
        odd("An answer came in place of another request's.")
        return countMessage(bytes)
      }
      const [key, waiting] = found
      pending.remove(key)
      window.reset()
      timeoutsInRow = 0
      if (waiting.latest !== undefined) waiting.onProgress?.(waiting.latest)
      waiting.settle(outcome)
      return true
    }
    const fault = (operation: string | undefined, error: JsonRpc.ErrorObject): RemoteError =>
      RequestFault.remote(server, operation ?? "", { ...error, message: options.redact(error.message) })
    const onProgress = (params: JsonObject): boolean => {
      const token = tokenOf(params)
      const found = token === undefined ? undefined : pending.find(token)?.[1]
      if (found === undefined) {
        odd()
        return false
      }
      const note = noteOf(params)
      if (note === undefined) return true
      found.extend?.()
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
      pending.remove(found[0])
      window.reset()
      const reason = own(params, "reason")
      found[1].settle(
        Effect.fail(
          RequestFault.cancelled(server, found[1].operation, typeof reason === "string" ? options.redact(reason) : "")
        )
      )
    }
    const askedBy = (about: JsonRpc.Id | undefined): Asked => {
      const mine = pending.askedBy(about)
      return {
        asker: mine[0]?.[1].asker,
        operation: mine[0]?.[1].operation ?? "",
        fail: (error) => {
          for (const [id, call] of mine) {
            if (pending.find(id)?.[1] !== call) continue
            pending.remove(id)
            call.settle(Effect.fail(error))
            giveUp(id, "input_required", true)
          }
        },
        unhurried: (effect) =>
          Effect.acquireUseRelease(
            Effect.sync(() => mine.map(([, { pause }]) => pause())),
            () => effect,
            (resumes) =>
              Effect.sync(() => {
                for (const resume of resumes) resume()
              })
          )
      }
    }
    const onRequest = (id: JsonRpc.Id, method: string, params: JsonObject, about: JsonRpc.Id | undefined): void => {
      if (method === "ping" && revision?.era !== "stateless") {
        reply(JsonRpc.result(id, {}), id, method)
        return
      }
      const refuse = (code: number, message: string): void => reply(JsonRpc.failure(id, code, message), id, method)
      const decline = (): void => {
        if (oddities.declined.size < 20) oddities.declined.add(cut(method, 128))
      }
      // A server of a stateless revision asks by its results; a request of its own is not answered (K section 9.8).
      if (revision?.era === "stateless") return decline()
      const handler = options.handlers.get(method)
      if (handler === undefined) {
        decline()
        return refuse(JsonRpc.ErrorCode.methodNotFound, `Method not found: ${cut(method, 128)}`)
      }
      runtimeFork(
        Effect.match(handler(params, askedBy(about)), {
          onFailure: (error) => {
            if (error.code === JsonRpc.ErrorCode.methodNotFound) decline()
            refuse(error.code, error.message)
          },
          onSuccess: (value) => reply(JsonRpc.result(id, value), id, method)
        })
      )
    }

    const take = (value: Json, bytes: number, inBatch: boolean, about: JsonRpc.Id | undefined): boolean => {
      const message = JsonRpc.classify(value)
      switch (message._tag) {
        case "Result":
          return answer(message.id, bytes, Effect.succeed(message.result), about)
        case "Error": {
          if (message.id === null) {
            const only = about ?? pending.only()?.[0]
            if (only === undefined) {
              odd("An error named no request.")
              return countMessage(bytes)
            }
            return answer(only, bytes, Effect.fail(fault(pending.find(only)?.[1].operation, message.error)))
          }
          const operation = pending.find(message.id)?.[1].operation
          return answer(message.id, bytes, Effect.fail(fault(operation, message.error)), about)
        }
        case "Notification":
          if (message.method === "notifications/progress" && onProgress(message.params)) return true
          if (!countMessage(bytes)) return false
          if (message.method !== "notifications/progress") onNotification(message.method, message.params)
          return terminal === undefined
        case "Request":
          if (!countMessage(bytes)) return false
          onRequest(message.id, message.method, message.params, about)
          return true
        case "Invalid":
          if (
            message.reason === "batch" &&
            revision?.batches === true &&
            !inBatch &&
            Array.isArray(value) &&
            value.length > 0
          ) {
            return value.every((item) => take(item, bytes / value.length, true, about))
          }
          return invalid(
            "invalid_jsonrpc_envelope",
            `The server sent a message that is no JSON-RPC 2.0: ${message.reason}.`
          )
      }
    }
    /** Whether the next timeout ends the connection. */
    const closesAfter = (given: RequestOptions): boolean =>
      given.onTimeout !== "keep" && (options.onTimeout === "close" || timeoutsInRow + 1 >= MAX_TIMEOUTS_IN_ROW)
    /** Counts a line that is no message, where such lines are tolerated. */
    const isNoise = (): boolean => {
      if (options.stdoutNoise !== "skip" || oddities.noiseLines >= MAX_NOISE_LINES) return false
      oddities.noiseLines += 1
      return true
    }
    const onMessage = (text: string, bytes: number, about?: JsonRpc.Id): boolean => {
      if (terminal !== undefined || !isBound()) return false
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
        if (isNoise()) return true
        return invalid(
          "invalid_json",
          wire.abandon === undefined
            ? "The server wrote a line to stdout that is not JSON."
            : "The server sent a message that is not JSON."
        )
      }
      // Many programs log in JSON; what does not even claim to be JSON-RPC is noise like any other line.
      if (options.stdoutNoise === "skip" && !JsonRpc.claims(value) && isNoise()) return true
      return take(value, bytes, false, about)
    }
    /** A request that the transport could not get answered. */
    const onFailed = (id: JsonRpc.Id, undelivered: DeliveryFault): void => {
      const found = findPending(id)
      if (found === undefined) return
      pending.remove(found[0])
      const { operation } = found[1]
      found[1].settle(
        Effect.fail(
          undelivered.error === undefined
            ? RequestFault.undelivered(server, operation, undelivered)
            : RequestFault.remote(
                server,
                operation,
                { ...undelivered.error, message: options.redact(undelivered.error.message) },
                undelivered.status
              )
        )
      )
    }
    /** Tells the server that nobody waits for a request any more. */
    const giveUp = (id: number, reason: string, announced: boolean): void => {
      // Over HTTP without sessions the closed stream says it, and nothing else may (K section 9.10).
      const byClosing = revision?.era === "stateless" && wire.cancelsByClosing === true
      if (announced && !byClosing)
        write(JsonRpc.notification("notifications/cancelled", { requestId: id, reason }), {
          method: "notifications/cancelled"
        })
      wire.abandon?.(id)
    }

    const send = (
      method: string,
      params: JsonObject | undefined,
      given: RequestOptions,
      sending: Sending | undefined
    ) => {
      let sentAt: number | undefined
      return Deadline.within<JsonObject, ConnectionError | RemoteError>(
        deadlines,
        Math.min(given.deadlineMs, given.idleMaxMs ?? given.deadlineMs),
        () => RequestFault.timedOut(server, given, deadlines.now() - (sentAt ?? deadlines.now()), closesAfter(given)),
        (settle, watch) => {
          if (terminal !== undefined) {
            settle(Effect.fail(faultFor(server, terminal, given.operation)))
            return () => undefined
          }
          const id = nextId++
          sending?.sent(id)
          const tokened =
            given.onProgress === undefined && given.idleMaxMs === undefined ? params : withToken(params, id)
          const whole = revision?.era === "stateless" ? dress(revision, tokened, options.standing, given) : tokened
          const text = JsonRpc.request(id, method, whole)
          if (text.length * 3 > MAX_FRAME_BYTES && Buffer.byteLength(text) > MAX_FRAME_BYTES) {
            settle(Effect.fail(RequestFault.tooLarge(server, given)))
            return () => undefined
          }
          if (!isBound()) {
            settle(Effect.fail(faultFor(server, terminal ?? { end: closedEnd }, given.operation)))
            return () => undefined
          }
          const begun = deadlines.now()
          sentAt = begun
          const { idleMaxMs } = given
          if (pending.count() === 0) {
            window.reset()
            wire.openWindow()
          }
          pending.add(id, {
            operation: given.operation,
            background: given.background ?? false,
            standing: given.standing ?? false,
            settle,
            onProgress: given.onProgress && redacted(options.redactStream(), given.onProgress),
            extend:
              idleMaxMs === undefined
                ? undefined
                : () => watch.extend(Math.min(deadlines.now() + given.deadlineMs, begun + idleMaxMs)),
            asker: given.asker,
            pause: watch.pause,
            progressAt: Number.NEGATIVE_INFINITY,
            latest: undefined
          })
          const standard = () => (revision?.era === "stateless" ? standardHeaders(revision, method, params) : {})
          const about =
            wire.abandon === undefined ? undefined : { id, method, headers: { ...standard(), ...given.headers } }
          if (!wire.send(text, about)) finish(brokenEnd)
          return (reason) => {
            pending.remove(id)
            if (given.quietLate === true && expectedLate.size < 100) expectedLate.add(id)
            giveUp(id, reason, given.cancellable !== false)
            if (reason === "timeout") {
              const closes = closesAfter(given)
              if (given.onTimeout !== "keep") timeoutsInRow += 1
              if (closes) {
                finish(
                  { reason: "timeout", text: `'${given.operation}' got no answer within its deadline.` },
                  given.operation
                )
              }
            }
          }
        }
      )
    }

    const connection: Connection = {
      request: (method, params, given) =>
        exchange(options.telemetry, method, params, (sending) => {
          // Baggage comes from outside: what holds a known secret does not travel on.
          const traced =
            sending?.meta === undefined || !options.mayLeave(sending.meta) ? params : inject(params, sending.meta)
          return wire.backlogBytes() > BACKLOG_HIGH_BYTES
            ? Effect.flatMap(waitForPipe(given), (deadlineMs) =>
                send(method, traced, { ...given, deadlineMs }, sending)
              )
            : send(method, traced, given, sending)
        }),
      notify: (method, params) => {
        write(JsonRpc.notification(method, params), { method })
      },
      end: (end) => finish(end),
      ended,
      terminal: () => terminal,
      openRequests: pending.count,
      idle: pending.idle,
      oddities,
      agree: (agreed) => {
        revision = agreed
        wire.agreed?.(agreed)
      },
      flushed: wire.drained
    }
    /**
     * A peer that does not read must not make the host queue without end. The wait is part of the call: the rest of
     * its time comes back, at least 1 ms.
     */
    const waitForPipe = (given: RequestOptions): Effect.Effect<number, ConnectionError> => {
      const begun = deadlines.now()
      return wire.drained.pipe(
        Effect.timeoutFail({
          duration: given.deadlineMs,
          onTimeout: () => RequestFault.notRead(server, given)
        }),
        Effect.map(() => Math.max(1, given.deadlineMs - (deadlines.now() - begun)))
      )
    }

    const onEnd = (end: WireEnd): void => finish(end, end.reason === "closed" ? undefined : suspect())
    wire.listen({ message: onMessage, failed: onFailed, waits: pending.has, missed: options.onMissed, end: onEnd })
    return connection
  })

const brokenEnd: WireEnd = { reason: "write_failed", text: "The connection to the server is closed." }
const closedEnd: WireEnd = { reason: "closed", text: "The connection is closed." }

const withToken = (params: JsonObject | undefined, token: number): JsonObject => {
  const meta = params === undefined ? undefined : own(params, "_meta")
  return { ...params, _meta: { ...(typeof meta === "object" && meta !== null ? meta : {}), progressToken: token } }
}

/**
 * Calls that a server answers with a task: polled until they are over (K section 9.17).
 *
 * Two dialects: the extension of 2026-07-28, where the server decides and the outcome comes with `tasks/get`, and the
 * experiment of 2025-11-25, where the host asks for a task and fetches the outcome with `tasks/result`. A task that is
 * given up is cancelled by `tasks/cancel`, never by `notifications/cancelled`. The whole stays inside the deadline of
 * its call.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { SECOND_MS } from "../base/Units.ts"
import type { RequestOptions } from "./Request.ts"
import { ConnectionError, type RemoteError } from "./ServerError.ts"

/** Between two polls where the server does not say, ms. */
export const DEFAULT_POLL_MS = SECOND_MS
/** Shortest and longest wait between two polls, whatever the server says, ms. */
const MIN_POLL_MS = 50
const MAX_POLL_MS = 60 * SECOND_MS
/** How long the cancellation of a task may take, ms. */
const CANCEL_MS = 2 * SECOND_MS

/** What a task says of itself. */
export interface Task {
  readonly id: string
  readonly status: string
  readonly pollMs: number
}

/** How tasks are followed. */
export interface Following {
  readonly server: string
  readonly dialect: "extension" | "experiment"
  readonly request: (
    method: string,
    params: JsonObject,
    options: RequestOptions
  ) => Effect.Effect<JsonObject, ConnectionError | RemoteError>
  /** Answers what the task wants before it goes on; only the extension asks this way. */
  readonly gather: (result: JsonObject) => Effect.Effect<JsonObject, ConnectionError>
  readonly now: () => number
}

const invalid = (server: string, operation: string, why: string): ConnectionError =>
  new ConnectionError({
    code: "SIGIL_PROTOCOL_FAULT",
    reason: "invalid_task",
    text: `The server '${server}' answered '${operation}' with a task that is not valid: ${why}.`,
    where: { server, operation }
  })

const pollOf = (value: Json | undefined): number =>
  typeof value === "number" && value > 0 ? Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, value)) : DEFAULT_POLL_MS

/** Reads a task; `undefined` when it names none. */
export const taskOf = (value: Json | undefined): Task | undefined => {
  if (!isJsonObject(value)) return undefined
  const id = own(value, "taskId")
  const status = own(value, "status")
  if (typeof id !== "string" || id === "" || typeof status !== "string") return undefined
  return { id, status, pollMs: pollOf(own(value, "pollIntervalMs") ?? own(value, "pollInterval")) }
}

const ended = (server: string, operation: string, status: string, message: Json | undefined): ConnectionError =>
  new ConnectionError({
    code: status === "cancelled" ? "SIGIL_CALL_CANCELLED" : "SIGIL_REMOTE_ERROR",
    reason: `task_${status}`,
    text: `The task of '${operation}' on server '${server}' was ${status === "cancelled" ? "cancelled" : "not completed"}${
      typeof message === "string" && message !== "" ? `: ${message.slice(0, 512)}` : "."
    }`,
    where: { server, operation }
  })

/** Follows a task to its outcome: the result of the call. `endsAt` is the deadline of the call, ms of the Clock. */
export const follow = (
  following: Following,
  first: JsonObject,
  options: RequestOptions,
  deadlineMs: number
): Effect.Effect<JsonObject, ConnectionError | RemoteError> => {
  const { dialect, gather, now, request, server } = following
  const { operation } = options
  const task = taskOf(dialect === "experiment" ? own(first, "task") : first)
  if (task === undefined) return Effect.fail(invalid(server, operation, "it has no id or no status"))
  const { id } = task
  let endsAt = now() + deadlineMs
  const left = (): RequestOptions => ({ ...options, deadlineMs: Math.max(1, endsAt - now()), cancellable: false })
  const answered = new Set<string>()

  const step = (
    status: string,
    whole: JsonObject,
    pollMs: number
  ): Effect.Effect<JsonObject, ConnectionError | RemoteError> =>
    Effect.suspend(() => {
      if (dialect === "experiment") {
        // The outcome is fetched by a request that waits for it; on its way the server may ask by requests of its own.
        if (status !== "working") return request("tasks/result", { taskId: id }, left())
      } else if (status === "completed") {
        const result = own(whole, "result")
        return isJsonObject(result)
          ? Effect.succeed(result)
          : Effect.fail(invalid(server, operation, "it is completed and has no result"))
      } else if (status === "failed" || status === "cancelled") {
        const error = own(whole, "error")
        const message = isJsonObject(error) ? own(error, "message") : own(whole, "statusMessage")
        return Effect.fail(ended(server, operation, status, message))
      } else if (status === "input_required") {
        return Effect.flatMap(answer(whole), () => poll(pollMs))
      } else if (status !== "working") {
        return Effect.fail(invalid(server, operation, "its status is unknown"))
      }
      return poll(pollMs)
    })
  const answer = (whole: JsonObject): Effect.Effect<void, ConnectionError | RemoteError> =>
    Effect.suspend(() => {
      const requests = own(whole, "inputRequests")
      const open = isJsonObject(requests)
        ? Object.fromEntries(Object.entries(requests).filter(([key]) => !answered.has(key)))
        : {}
      if (Object.keys(open).length === 0) return Effect.void
      const begun = now()
      return Effect.flatMap(gather({ ...whole, inputRequests: open }), (responses) => {
        // Time that a person took is given back.
        endsAt += now() - begun
        for (const key of Object.keys(open)) answered.add(key)
        return Effect.asVoid(request("tasks/update", { taskId: id, inputResponses: responses }, left()))
      })
    })
  const poll = (pollMs: number): Effect.Effect<JsonObject, ConnectionError | RemoteError> =>
    Effect.sleep(Duration.millis(Math.min(pollMs, Math.max(0, endsAt - now())))).pipe(
      Effect.zipRight(Effect.suspend(() => request("tasks/get", { taskId: id }, left()))),
      Effect.flatMap((whole) => {
        const next = taskOf(whole)
        return next === undefined || next.id !== id
          ? Effect.fail(invalid(server, operation, "'tasks/get' did not tell the status of this task"))
          : step(next.status, whole, next.pollMs)
      })
    )
  const cancel = request(
    "tasks/cancel",
    { taskId: id },
    { ...options, deadlineMs: CANCEL_MS, cancellable: false }
  ).pipe(Effect.ignore, Effect.interruptible, Effect.timeoutOption(CANCEL_MS))
  let over = false
  return step(task.status, first, task.pollMs).pipe(
    Effect.tap(() => Effect.sync(() => void (over = true))),
    Effect.tapError((error) =>
      Effect.sync(() => {
        // It ended by itself, or is unknown to the server: there is nothing to cancel.
        over = error._tag === "RemoteError" || error.reason.startsWith("task_")
      })
    ),
    Effect.onExit(() => (over ? Effect.void : Effect.asVoid(cancel)))
  )
}

/**
 * How a server of the stateless revision is asked: rounds of input, tasks, results that may be kept (K sections 9.15 to
 * 9.17). Loaded when such a server is met.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { cut } from "../base/Cut.ts"
import { isJsonObject, type JsonObject, own } from "../base/Json.ts"
import { HEADER_MISMATCH, MISSING_CAPABILITY, resultType, TASKS_EXTENSION } from "../protocol/Stateless.ts"
import type { Ask, Facts } from "./Asking.ts"
import * as InputRounds from "./InputRounds.ts"
import { repeating } from "./Repeating.ts"
import type { RequestOptions } from "./Request.ts"
import { timedOut } from "./RequestFault.ts"
import { ConnectionError, type RemoteError } from "./ServerError.ts"
import * as Tasks from "./Tasks.ts"

/** Least pause before a request that the server only delays is sent again, ms; doubled each time. */
const STATE_ONLY_MS = 100
const MAX_STATE_ONLY_MS = 5_000

type Answer = Effect.Effect<JsonObject, ConnectionError | RemoteError>

/** The way to ask. */
export const stateless = (facts: Facts): Ask => {
  const { cache, clock, connection, declaration, logLevel, redact, requests } = facts
  const server = declaration.name
  const remote = declaration.endpoint._tag === "remote"
  const now = (): number => clock.unsafeCurrentTimeMillis()

  return (method, params, options) => {
    const { asker, cacheKey, operation } = options
    const kept = cacheKey === undefined ? undefined : cache.get(method, cacheKey, now())
    if (kept !== undefined) return Effect.succeed(kept)
    const gather = (
      result: JsonObject
    ): Effect.Effect<readonly [JsonObject, InputRounds.InputRequired], ConnectionError> => {
      const required = InputRounds.readInputRequired(server, method, operation, result)
      if (required instanceof ConnectionError) return Effect.fail(required)
      return Effect.map(
        InputRounds.gather({ server, operation, asker, handlers: requests.handlers, redact }, required),
        (answers) => [answers, required] as const
      )
    }
    const declare = (tasks: boolean): JsonObject => {
      const declared = requests.capabilities("stateless", asker)
      return tasks ? { ...declared, extensions: { [TASKS_EXTENSION]: {} } } : declared
    }
    const level = logLevel()
    const base: RequestOptions = level === undefined ? options : { ...options, logLevel: level }

    const round = (
      made: number,
      asked: JsonObject | undefined,
      deadlineMs: number,
      tasks: boolean,
      headers: RequestOptions["headers"]
    ): Answer =>
      Effect.suspend(() => {
        const begun = now()
        const given = {
          ...base,
          deadlineMs,
          capabilities: declare(tasks),
          ...(headers === undefined ? {} : { headers })
        }
        const left = (): number => Math.max(1, deadlineMs - (now() - begun))
        return connection.request(method, asked, given).pipe(
          Effect.matchEffect({
            onFailure: (failure): Answer => {
              if (failure._tag !== "RemoteError") return Effect.fail(failure)
              if (failure.rpcCode === HEADER_MISMATCH && options.freshHeaders !== undefined && made === 1) {
                return Effect.flatMap(options.freshHeaders, (fresh) =>
                  fresh === undefined ? Effect.fail(failure) : round(made + 1, asked, left(), tasks, fresh)
                )
              }
              if (failure.rpcCode !== MISSING_CAPABILITY) return Effect.fail(failure)
              return !tasks && wantsTasks(failure.rpcData)
                ? round(made + 1, asked, left(), true, headers)
                : Effect.fail(lacking(server, operation, failure))
            },
            onSuccess: (result): Answer => {
              const type = resultType(result)
              if (type === "complete") {
                if (cacheKey !== undefined && made === 1) cache.put(method, cacheKey, result, now())
                return Effect.succeed(result)
              }
              if (type === "task" && tasks && method === "tools/call") {
                const following: Tasks.Following = {
                  server,
                  dialect: "extension",
                  request: remote ? repeating(facts, connection.request) : connection.request,
                  gather: (whole) => Effect.map(gather(whole), ([answers]) => answers),
                  now
                }
                return Tasks.follow(following, result, given, left())
              }
              if (type !== "input_required") return Effect.fail(unknownResult(server, operation, type))
              if (made >= InputRounds.MAX_ROUNDS) return Effect.fail(tooManyRounds(server, operation))
              const remaining = left()
              return Effect.flatMap(gather(result), ([answers, required]) => {
                const again = InputRounds.nextParams(params, answers, required.state)
                const next = (ms: number): Answer => round(made + 1, again, ms, tasks, headers)
                if (required.requests.length > 0) return next(remaining)
                // Nobody was asked anything, so the pause is part of the call.
                const pause = Math.min(STATE_ONLY_MS * 2 ** (made - 1), MAX_STATE_ONLY_MS)
                const rest = Effect.sleep(Duration.millis(Math.min(pause, remaining)))
                return Effect.zipRight(rest, pause < remaining ? next(remaining - pause) : Effect.fail(late()))
              })
            }
          })
        )
      })
    /** The deadline is that of the whole, however little of it the last request had. */
    const late = (): ConnectionError =>
      timedOut(server, options, options.deadlineMs, connection.terminal() !== undefined)
    const asksForTasks = method === "tools/call" && (options.tasks ?? "none") !== "none"
    return Effect.mapError(round(1, params, options.deadlineMs, asksForTasks, options.headers), (failure) =>
      failure.reason === "timeout" && failure.details?.["timeout_ms"] !== options.deadlineMs ? late() : failure
    )
  }
}

const wantsTasks = (data: unknown): boolean => {
  const required = isJsonObject(data) ? own(data, "requiredCapabilities") : undefined
  const extensions = isJsonObject(required) ? own(required, "extensions") : undefined
  return isJsonObject(extensions) && own(extensions, TASKS_EXTENSION) !== undefined
}

/** The server wants something of the host that was not declared: a form is told as what it is. */
const lacking = (server: string, operation: string, failure: RemoteError): ConnectionError | RemoteError => {
  const data = failure.rpcData
  const required = isJsonObject(data) ? own(data, "requiredCapabilities") : undefined
  const names = isJsonObject(required) ? Object.keys(required).slice(0, 8) : []
  if (!names.includes("elicitation")) return failure
  return new ConnectionError({
    code: "SIGIL_INPUT_REQUIRED",
    reason: "elicitation_unavailable",
    text: `'${operation}' on server '${server}' needs somebody who answers forms.`,
    fix: "Call from a terminal, or give the values with --answers FILE.",
    where: { server, operation }
  })
}

const unknownResult = (server: string, operation: string, type: unknown): ConnectionError =>
  new ConnectionError({
    code: "SIGIL_PROTOCOL_FAULT",
    reason: "invalid_result_type",
    text: `The server '${server}' answered '${operation}' with a result of a kind that nobody agreed on${
      typeof type === "string" && /^[\w./-]{1,64}$/.test(type) ? ` ('${cut(type, 64)}')` : ""
    }.`,
    where: { server, operation, field: "resultType" }
  })

const tooManyRounds = (server: string, operation: string): ConnectionError =>
  new ConnectionError({
    code: "SIGIL_LIMIT_EXCEEDED",
    reason: "input_rounds_limit",
    text: `The server '${server}' asked for input ${InputRounds.MAX_ROUNDS} times for '${operation}' without answering it.`,
    where: { server, operation },
    details: { limit: InputRounds.MAX_ROUNDS }
  })

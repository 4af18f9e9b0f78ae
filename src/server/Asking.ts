/**
 * How a ready generation is asked: one request of a caller, with everything its revision makes of it.
 *
 * Rounds of input, tasks, results that may be kept, repetition of what was not delivered: callers see a question and
 * an answer. In the handshake revisions over stdio nothing of this is there, and a request goes straight to the
 * connection.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { isJsonObject, type JsonObject, own } from "../base/Json.ts"
import type { ServerDeclaration } from "../config/ServerDeclaration.ts"
import { ErrorCode } from "../protocol/JsonRpc.ts"
import type { Revision } from "../protocol/Revision.ts"
import type { Connection } from "./Connection.ts"
import { watching } from "./Doubt.ts"
import type { RequestOptions } from "./Request.ts"
import type { ResultCache } from "./ResultCache.ts"
import { repeating } from "./Repeating.ts"
import { ConnectionError, type RemoteError } from "./ServerError.ts"
import type { ServerRequests } from "./ServerRequests.ts"
import type * as Tasks from "./Tasks.ts"

/** What else is known of a question. */
export interface AskOptions extends RequestOptions {
  /** What the called tool says of tasks; `none` when absent. */
  readonly tasks?: "none" | "optional" | "required"
  /** The tool is idempotent, and its server's word counts. */
  readonly idempotent?: boolean
  /** Key of the result in the cache; absent when it may not be kept. */
  readonly cacheKey?: string
  /** Learns the headers anew after the server refused them; `undefined` when they are the same. */
  readonly freshHeaders?: Effect.Effect<RequestOptions["headers"]>
}

/** One question. */
export type Ask = (
  method: string,
  params: JsonObject | undefined,
  options: AskOptions
) => Effect.Effect<JsonObject, ConnectionError | RemoteError>

/** What asking builds on. */
export interface Facts {
  readonly declaration: ServerDeclaration
  readonly connection: Connection
  readonly revision: Revision
  readonly capabilities: JsonObject
  readonly requests: ServerRequests
  readonly cache: ResultCache
  readonly redact: (text: string) => string
  /** Least severity of log messages that somebody asked for. */
  readonly logLevel: () => string | undefined
  readonly clock: Clock.Clock
  /** From 0 to 1. */
  readonly jitter: () => number
}

/** The way to ask this generation. */
export const make = (facts: Facts): Effect.Effect<Ask> => {
  const { connection, declaration, revision } = facts
  const remote = declaration.endpoint._tag === "remote"
  const once =
    revision.era === "stateless"
      ? Effect.map(
          Effect.promise(() => import("./StatelessAsking.ts")),
          ({ stateless }) => stateless(facts)
        )
      : Effect.succeed(handshake(facts))
  return Effect.map(once, (ask) => (remote ? repeating(facts, watching(connection, revision, ask)) : ask))
}

/** The revisions with a handshake: the question itself; tasks only where a tool can do nothing else. */
const handshake = (facts: Facts): Ask => {
  const { capabilities, clock, connection, declaration } = facts
  const tasks = own(capabilities, "tasks")
  const requests = isJsonObject(tasks) ? own(tasks, "requests") : undefined
  const tools = isJsonObject(requests) ? own(requests, "tools") : undefined
  const offersTasks = isJsonObject(tools) && own(tools, "call") !== undefined
  const { requests: answers, revision } = facts
  /** Only one revision has the error, and only calls of somebody are answered by a person. */
  const asking: Ask = (method, params, options) => {
    const asked = connection.request(method, params, options)
    if (!revision.urlRequired || options.asker === undefined) return asked
    return Effect.catchTag(asked, "RemoteError", (error) => {
      if (error.rpcCode !== ErrorCode.urlElicitationRequired) return Effect.fail(error)
      const { asker, operation } = options
      const handler = answers.handlers.get("elicitation/create")
      return Effect.promise(() => import("./UrlRequired.ts")).pipe(
        Effect.flatMap(({ consent }) => consent({ server: declaration.name, operation, asker, handler }, error)),
        Effect.zipRight(connection.request(method, params, options))
      )
    })
  }
  return (method, params, options) => {
    if (options.tasks !== "required") return asking(method, params, options)
    if (!offersTasks) return Effect.fail(needsTasks(declaration.name, options.operation))
    const endsAt = clock.unsafeCurrentTimeMillis() + options.deadlineMs
    const following: Tasks.Following = {
      server: declaration.name,
      dialect: "experiment",
      request: connection.request,
      gather: () => Effect.succeed({}),
      now: () => clock.unsafeCurrentTimeMillis()
    }
    return Effect.flatMap(
      connection.request(method, { ...params, task: { ttl: options.deadlineMs } }, options),
      (first) =>
        Effect.flatMap(
          Effect.promise(() => import("./Tasks.ts")),
          ({ follow }) => follow(following, first, options, Math.max(1, endsAt - clock.unsafeCurrentTimeMillis()))
        )
    )
  }
}

const needsTasks = (server: string, operation: string): ConnectionError =>
  new ConnectionError({
    code: "SIGIL_PROTOCOL_FAULT",
    reason: "tasks_not_offered",
    text: `'${operation}' can only run as a task, and the server '${server}' does not offer tasks.`,
    where: { server, operation }
  })

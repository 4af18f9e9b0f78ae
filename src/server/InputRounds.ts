/**
 * Requests of the stateless revision that take several rounds: the server answers with what it needs, the host asks
 * for it and sends the request again (MRTR; K section 9.15).
 *
 * All inputs of a round are gathered before the retry; the retry has a new id, the same parameters, the answers by
 * their keys, and the state exactly as it came, and nothing of it touches any other request. Time that a person takes
 * does not count against the deadline of the call (spec section 7).
 */
import * as Effect from "effect/Effect"
import { cut } from "../base/Cut.ts"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { ErrorCode } from "../protocol/JsonRpc.ts"
import { ConnectionError } from "./ServerError.ts"
import { askedInAnswer, type Asker, type ServerRequestHandler } from "./Request.ts"

/** Rounds of one request; a server that always wants more is cut off. */
export const MAX_ROUNDS = 16
/** Inputs of one round. */
const MAX_INPUTS = 32
/** Methods that may be answered with `input_required`. */
const askable = new Set(["tools/call", "prompts/get", "resources/read"])

/** What the server wants before it goes on. */
export interface InputRequired {
  readonly requests: ReadonlyArray<readonly [key: string, method: string, params: JsonObject]>
  /** Never looked into. */
  readonly state: Json | undefined
}

const invalid = (server: string, operation: string, why: string): ConnectionError =>
  new ConnectionError({
    code: "SIGIL_PROTOCOL_FAULT",
    reason: "invalid_input_request",
    text: `The server '${server}' answered '${operation}' with a request for input that is not valid: ${why}.`,
    where: { server, operation }
  })

/** Reads an `input_required` result. */
export const readInputRequired = (
  server: string,
  method: string,
  operation: string,
  result: JsonObject
): InputRequired | ConnectionError => {
  if (!askable.has(method)) return invalid(server, operation, `'${method}' may not ask for input`)
  const requests = own(result, "inputRequests")
  const state = own(result, "requestState")
  if (requests === undefined && state === undefined)
    return invalid(server, operation, "it names neither inputs nor a state")
  if (state !== undefined && typeof state !== "string") return invalid(server, operation, "its state is no text")
  if (requests !== undefined && !isJsonObject(requests)) return invalid(server, operation, "its inputs are no object")
  const entries = Object.entries(requests ?? {})
  if (entries.length > MAX_INPUTS) return invalid(server, operation, `it asks for more than ${MAX_INPUTS} inputs`)
  const read: Array<readonly [string, string, JsonObject]> = []
  for (const [key, request] of entries) {
    const asks = isJsonObject(request) ? own(request, "method") : undefined
    const params = isJsonObject(request) ? own(request, "params") : undefined
    if (typeof asks !== "string") return invalid(server, operation, `the input '${cut(key, 64)}' has no method`)
    read.push([key, asks, isJsonObject(params) ? params : {}])
  }
  return { requests: read, state }
}

/** Gathers all inputs of one round, one after the other: a person answers one form at a time. */
export const gather = (
  facts: {
    readonly server: string
    readonly operation: string
    readonly asker: Asker | undefined
    readonly handlers: ReadonlyMap<string, ServerRequestHandler>
    readonly redact: (text: string) => string
  },
  required: InputRequired
): Effect.Effect<JsonObject, ConnectionError> =>
  Effect.gen(function* () {
    const { asker, handlers, operation, redact, server } = facts
    const answers: Array<readonly [string, JsonObject]> = []
    const { asked, failure } = askedInAnswer(asker, operation)
    for (const [key, method, params] of required.requests) {
      const handler = handlers.get(method)
      const answer =
        handler === undefined
          ? yield* Effect.fail(notOffered(server, operation, redact(method), fieldsOf(params).map(redact)))
          : yield* handler(params, asked).pipe(
              Effect.mapError(({ code, message }) =>
                code === ErrorCode.methodNotFound
                  ? notOffered(server, operation, redact(method), fieldsOf(params).map(redact))
                  : invalid(server, operation, redact(message))
              )
            )
      const failed = failure()
      if (failed !== undefined) return yield* failed
      answers.push([key, answer])
    }
    return Object.fromEntries(answers)
  })

/** The names of the fields that a form asks for. */
const fieldsOf = (params: JsonObject): ReadonlyArray<string> => {
  const schema = own(params, "requestedSchema")
  const properties = isJsonObject(schema) ? own(schema, "properties") : undefined
  return isJsonObject(properties)
    ? Object.keys(properties)
        .slice(0, MAX_INPUTS)
        .map((name) => cut(name, 64))
    : []
}

const notOffered = (
  server: string,
  operation: string,
  method: string,
  fields: ReadonlyArray<string>
): ConnectionError => {
  const what = fields.length === 0 ? cut(method, 64) : fields.join(", ")
  return new ConnectionError({
    code: "SIGIL_INPUT_REQUIRED",
    reason: "input_not_available",
    text: `The server '${server}' needs input for '${operation}' that nobody can give here: ${what}.`,
    fix: "Call from a terminal, or give the values with --answers FILE.",
    where: { server, operation },
    details: { fields }
  })
}

/** The parameters of the next round. */
export const nextParams = (
  params: JsonObject | undefined,
  answers: JsonObject,
  state: Json | undefined
): JsonObject => ({
  ...params,
  ...(Object.keys(answers).length === 0 ? {} : { inputResponses: answers }),
  ...(state === undefined ? {} : { requestState: state })
})

/**
 * What a server may ask back, and who answers: roots, forms, sampling (spec section 6, K section 9.14).
 *
 * One answerer for both ways of asking: a request of the server in the handshake revisions, an entry of
 * `input_required` in the stateless one. What is not declared is not answered (-32601). Roots and answers to forms are
 * data that leaves, so they pass the secret gate of their server.
 */
import * as Effect from "effect/Effect"
import type { AuditError } from "../audit/AuditError.ts"
import type { JsonObject } from "../base/Json.ts"
import { ErrorCode } from "../protocol/JsonRpc.ts"
import type { Features } from "./ClientFeatures.ts"
import type { Elicitation, ElicitationOptions } from "./Elicitation.ts"
import type { Asked, Asker, ServerRequestHandler } from "./Request.ts"
import { ConnectionError } from "./ServerError.ts"

/** What is known of the generation that asks. */
export interface Facts {
  readonly server: string
  /** What the entry lets a remote server ask for; a local one may ask for everything. */
  readonly allowed: ReadonlyArray<"roots" | "elicitation"> | "all"
  readonly features: Features
  /** Whether addresses may be shown for opening (`[mcp] elicitation_url`). */
  readonly urlMode: boolean
  readonly elicitation: ElicitationOptions
  readonly roots: ServerRequestHandler
  readonly mayLeave: (value: JsonObject) => boolean
}

/** Answers one generation. */
export interface ServerRequests {
  /** By method, for servers that ask by requests. */
  readonly handlers: ReadonlyMap<string, ServerRequestHandler>
  /** Capabilities to declare: at the handshake with no asker, else in a request made for one. */
  readonly capabilities: (era: "handshake" | "stateless", asker?: Asker) => JsonObject
}

const notFound = (method: string) => ({ code: ErrorCode.methodNotFound, message: `Method not found: ${method}` })

/** Answers as far as the facts allow. */
export const make = (facts: Facts): ServerRequests => {
  const { allowed, elicitation, features, mayLeave, roots, server, urlMode } = facts
  const offers = (name: "roots" | "elicitation"): boolean => allowed === "all" || allowed.includes(name)
  const { sampling } = features
  const handlers = new Map<string, ServerRequestHandler>()
  if (offers("roots")) handlers.set("roots/list", roots)

  let made: Elicitation | undefined
  const elicit: ServerRequestHandler = (params, asked: Asked) => {
    const elicitor = asked.asker?.elicitor
    if (elicitor === undefined) return Effect.fail(notFound("elicitation/create"))
    // Forms are rare, and what reads them is large: loaded when a server asks for the first.
    return Effect.flatMap(
      Effect.promise(() => import("./Elicitation.ts")),
      ({ callFailure, CANCEL, make: open }) => {
        made ??= open(elicitation)
        return asked.unhurried(made.answer(params, elicitor)).pipe(
          Effect.catchAll((fault): Effect.Effect<JsonObject, { code: number; message: string }> => {
            if (fault._tag === "Rejected") return Effect.fail({ code: fault.code, message: fault.message })
            // The server hears that nobody answered; its call ends with the reason.
            asked.fail(
              fault._tag === "Unrecorded"
                ? unrecorded(server, fault.error)
                : callFailure(server, asked.operation, fault)
            )
            return Effect.succeed(CANCEL)
          })
        )
      }
    )
  }
  if (offers("elicitation") && features.forms) handlers.set("elicitation/create", elicit)
  if (sampling !== undefined) {
    handlers.set("sampling/createMessage", (params) =>
      Effect.flatMap(sampling(params, { server }), (answer) =>
        mayLeave(answer)
          ? Effect.succeed(answer)
          : Effect.fail({ code: -32000, message: "The answer may not be disclosed to this server." })
      )
    )
  }

  return {
    handlers,
    capabilities: (era, asker) => {
      const forms = offers("elicitation") && (asker === undefined ? features.forms : asker.elicitor !== undefined)
      const urls = urlMode && (asker === undefined ? features.urls : asker.elicitor?.url !== undefined)
      return {
        ...(offers("roots") ? { roots: era === "handshake" ? { listChanged: true } : {} } : {}),
        ...(forms ? { elicitation: urls ? { form: {}, url: {} } : { form: {} } } : {}),
        ...(sampling === undefined ? {} : { sampling: {} })
      }
    }
  }
}

/** What cannot be recorded is not sent, and ends its call. */
const unrecorded = (server: string, error: AuditError): ConnectionError =>
  new ConnectionError({
    code: error.code,
    reason: error.reason,
    text: error.text,
    fix: error.fix,
    where: { ...error.where, server, operation: "elicitation/create" }
  })

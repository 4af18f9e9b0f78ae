/**
 * What an HTTP status that is no answer means for the request it answers (R section 8.8, S section 3.8). Pure.
 *
 * The texts hold nothing that the server wrote. A JSON-RPC error in the body is handed on as what it is.
 */
import { isJsonObject, type Json, own } from "../base/Json.ts"
import { SECOND_MS } from "../base/Units.ts"
import { parse } from "../protocol/Codec.ts"
import { classify, type ErrorObject } from "../protocol/JsonRpc.ts"
import type { DeliveryFault } from "./Transport.ts"

/** Bytes of a body that are read to see whether it is a JSON-RPC error. */
export const MAX_ERROR_BYTES = 256 * 1024
/** Longest time that a server may ask for, ms; more is not believed (S section 3.8). */
const MAX_RETRY_AFTER_MS = 3_600 * SECOND_MS

/** The wait that `Retry-After` asks for, ms; `undefined` when it asks for none that is believed. `now` is ms. */
export const retryAfter = (text: string | undefined, now: number): number | undefined => {
  if (text === undefined) return undefined
  const trimmed = text.trim()
  const ms = /^\d{1,6}$/.test(trimmed)
    ? Number(trimmed) * SECOND_MS
    : /[A-Za-z]/.test(trimmed)
      ? Date.parse(trimmed) - now
      : Number.NaN
  return ms >= 0 && ms <= MAX_RETRY_AFTER_MS ? ms : undefined
}

/** The JSON-RPC error of a body, if it is one. */
export const errorIn = (body: string): ErrorObject | undefined => {
  let value: Json
  try {
    value = parse(body)
  } catch {
    return undefined
  }
  const message = classify(value)
  if (message._tag === "Error") return message.error
  // Some servers leave the envelope's version out of an error.
  const error = isJsonObject(value) ? own(value, "error") : undefined
  const code = isJsonObject(error) ? own(error, "code") : undefined
  const said = isJsonObject(error) ? own(error, "message") : undefined
  return typeof code === "number" && Number.isInteger(code) && typeof said === "string"
    ? { code, message: said }
    : undefined
}

/** What else is known of the answer. */
export interface StatusFacts {
  readonly retryAfterMs?: number | undefined
  readonly error?: ErrorObject | undefined
  /** Whether a credential went with the request. */
  readonly credential: boolean
}

/** The fault of one request. */
export const statusFault = (status: number, facts: StatusFacts): DeliveryFault => {
  const more = {
    status,
    ...(facts.retryAfterMs === undefined ? {} : { retryAfterMs: facts.retryAfterMs })
  }
  if (status === 401) {
    return {
      ...more,
      code: "SIGIL_SIGN_IN_NEEDED",
      reason: facts.credential ? "authentication_failed" : "authentication_required",
      text: facts.credential
        ? "The server does not accept the credential of its entry (HTTP 401)."
        : "The server wants a sign-in or a credential (HTTP 401).",
      ...(facts.credential ? { fix: "Check the value of the variable or header that the entry names." } : {}),
      delivered: "no"
    }
  }
  const base = {
    ...more,
    code: "SIGIL_HTTP_STATUS" as const,
    ...(facts.error === undefined ? {} : { error: facts.error })
  }
  const { error: _, ...bare } = base
  if (status === 403)
    return {
      ...bare,
      reason: "access_denied",
      text: "The server refuses access (HTTP 403).",
      fix: "Check whether the credential may do this, and whether the address is right.",
      delivered: "no"
    }
  if (status === 429)
    return {
      ...bare,
      reason: "rate_limited",
      text: `The server asks for patience (HTTP 429${
        facts.retryAfterMs === undefined ? "" : `, again in ${Math.ceil(facts.retryAfterMs / SECOND_MS)} s`
      }).`,
      fix: "Wait and call again.",
      delivered: "no"
    }
  if (status >= 500)
    return {
      ...base,
      reason: "service_unavailable",
      text: `The server failed (HTTP ${status}).`,
      fix: "Try again later; whether the request was carried out is not known.",
      delivered: "unknown"
    }
  return {
    ...base,
    reason: "unexpected_http_status",
    text: `The server answered with HTTP ${status}.`,
    fix: status === 404 || status === 405 ? "Check the URL of the entry, its path too." : "Check the URL of the entry.",
    delivered: status === 408 ? "unknown" : "no"
  }
}

/**
 * The JSON-RPC 2.0 envelope as MCP uses it: classification of what arrives, printing of what leaves.
 *
 * Rules and reasons: R section 4.3. Pure functions, no Effect per frame.
 */
import { LosslessNumber } from "lossless-json"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { stringify } from "./Codec.ts"

/** A request id on the wire. */
export type Id = string | number

/** Error codes of JSON-RPC and MCP that sigil itself sends or recognises (K section 11). */
export const ErrorCode = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  /** 2025-11-25 only. */
  urlElicitationRequired: -32042
} as const

/** The error member of a response. */
export interface ErrorObject {
  readonly code: number
  readonly message: string
  readonly data?: Json
}

/** One classified message. */
export type Incoming =
  | { readonly _tag: "Result"; readonly id: Id; readonly result: JsonObject }
  | { readonly _tag: "Error"; readonly id: Id | null; readonly error: ErrorObject }
  | { readonly _tag: "Request"; readonly id: Id; readonly method: string; readonly params: JsonObject }
  | { readonly _tag: "Notification"; readonly method: string; readonly params: JsonObject }
  | { readonly _tag: "Invalid"; readonly reason: string; readonly id?: Id }

const invalid = (reason: string, id?: Id): Incoming =>
  id === undefined ? { _tag: "Invalid", reason } : { _tag: "Invalid", reason, id }

const empty: JsonObject = {}

const idOf = (value: Json | undefined): Id | undefined => {
  if (typeof value === "string") return value
  if (typeof value === "number" && Number.isInteger(value)) return value
  return value instanceof LosslessNumber && /^-?\d+$/.test(value.value) ? value.value : undefined
}

/** Whether a value looks like an attempt at JSON-RPC at all: an envelope or a batch, well-formed or not. */
export const claims = (value: Json): boolean =>
  Array.isArray(value) ||
  (isJsonObject(value) && ["jsonrpc", "id", "method", "result", "error"].some((key) => Object.hasOwn(value, key)))

/** Classifies one parsed message. */
export const classify = (value: Json): Incoming => {
  if (!isJsonObject(value)) return invalid(Array.isArray(value) ? "batch" : "not_an_object")
  if (value["jsonrpc"] !== "2.0") return invalid("jsonrpc_version")
  const method = own(value, "method")
  const rawId = own(value, "id")
  if (method !== undefined) {
    if (typeof method !== "string") return invalid("method_type")
    const id = idOf(rawId)
    const params = own(value, "params")
    if (params !== undefined && !isJsonObject(params)) return invalid("params_type", id)
    if (rawId === undefined) return { _tag: "Notification", method, params: params ?? empty }
    if (id === undefined) return invalid("id_type")
    if (Object.hasOwn(value, "result") || Object.hasOwn(value, "error")) return invalid("method_with_result", id)
    return { _tag: "Request", id, method, params: params ?? empty }
  }
  const result = own(value, "result")
  const error = own(value, "error")
  const id = idOf(rawId)
  if (result !== undefined && error !== undefined) return invalid("result_and_error", id)
  if (error !== undefined) {
    if (id === undefined && rawId !== null && rawId !== undefined) return invalid("id_type")
    if (!isJsonObject(error)) return invalid("error_type", id)
    const code = own(error, "code")
    const message = own(error, "message")
    if (typeof code !== "number" || !Number.isInteger(code)) return invalid("error_code_type", id)
    if (typeof message !== "string") return invalid("error_message_type", id)
    const data = own(error, "data")
    return { _tag: "Error", id: id ?? null, error: data === undefined ? { code, message } : { code, message, data } }
  }
  if (result === undefined) return invalid("neither_request_nor_response", id)
  if (id === undefined) return invalid(rawId === undefined ? "id_missing" : "id_type")
  if (!isJsonObject(result)) return invalid("result_type", id)
  return { _tag: "Result", id, result }
}

/** One request as text. */
export const request = (id: Id, method: string, params: JsonObject | undefined): string =>
  stringify(params === undefined ? { jsonrpc: "2.0", id, method } : { jsonrpc: "2.0", id, method, params })

/** One notification as text. */
export const notification = (method: string, params?: JsonObject): string =>
  stringify(params === undefined ? { jsonrpc: "2.0", method } : { jsonrpc: "2.0", method, params })

/** One successful answer to the peer as text. */
export const result = (id: Id, value: JsonObject): string => stringify({ jsonrpc: "2.0", id, result: value })

/** One failed answer to the peer as text. */
export const failure = (id: Id, code: number, message: string): string =>
  stringify({ jsonrpc: "2.0", id, error: { code, message } })

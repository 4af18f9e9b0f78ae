/**
 * What a request of revision 2026-07-28 carries with it: its `_meta`, and the headers that repeat it over HTTP (K
 * sections 9.6 and 9.10).
 *
 * Pure. Header and `_meta` are made from the same values, so that they always agree.
 */
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { encodeHeaderValue } from "./ParamHeaders.ts"
import type { Revision } from "./Revision.ts"

const prefix = "io.modelcontextprotocol/"
/** Keys of `_meta` that the revision defines. */
export const MetaKey = {
  protocolVersion: `${prefix}protocolVersion`,
  clientCapabilities: `${prefix}clientCapabilities`,
  clientInfo: `${prefix}clientInfo`,
  serverInfo: `${prefix}serverInfo`,
  logLevel: `${prefix}logLevel`,
  subscriptionId: `${prefix}subscriptionId`
} as const

/** Codes of the stateless revision that a host acts on (K section 11). */
export const HEADER_MISMATCH = -32020
export const MISSING_CAPABILITY = -32021
export const UNSUPPORTED_VERSION = -32022

/** The extension under which a server may answer a call with a task (K section 9.17). */
export const TASKS_EXTENSION = `${prefix}tasks`

/** What every request of one generation says of the host. */
export interface Standing {
  readonly clientInfo: JsonObject
  /** What may be asked back in any request. */
  readonly capabilities: JsonObject
}

/** The parameters with everything the revision wants in `_meta`; what the caller put there stays. */
export const dress = (
  revision: Revision,
  params: JsonObject | undefined,
  standing: Standing,
  more: { readonly capabilities?: JsonObject | undefined; readonly logLevel?: string | undefined } = {}
): JsonObject => {
  const given = params === undefined ? undefined : own(params, "_meta")
  return {
    ...params,
    _meta: {
      ...(isJsonObject(given) ? given : {}),
      [MetaKey.protocolVersion]: revision.version,
      [MetaKey.clientCapabilities]: more.capabilities ?? standing.capabilities,
      [MetaKey.clientInfo]: standing.clientInfo,
      ...(more.logLevel === undefined ? {} : { [MetaKey.logLevel]: more.logLevel })
    }
  }
}

/** The parameter that `Mcp-Name` repeats, by method. */
const namedBy: { readonly [method: string]: string } = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId"
}

/** The standard headers of one request over HTTP. */
export const standardHeaders = (
  revision: Revision,
  method: string,
  params: JsonObject | undefined
): { readonly [name: string]: string } => {
  const key = namedBy[method]
  const name = key === undefined || params === undefined ? undefined : own(params, key)
  return {
    "mcp-protocol-version": revision.version,
    "mcp-method": encodeHeaderValue(method),
    ...(typeof name === "string" ? { "mcp-name": encodeHeaderValue(name) } : {})
  }
}

/** What a result says it is. Absent means complete (K section 9.1). */
export const resultType = (result: JsonObject): Json => own(result, "resultType") ?? "complete"

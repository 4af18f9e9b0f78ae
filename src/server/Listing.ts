/**
 * Reads a paged list whole, within limits (K section 9.13, spec section 7).
 *
 * Cursors are opaque and an empty string is a cursor. A cursor that comes again ends the list with a warning,
 * so a server cannot keep the host walking in a circle.
 */
import * as Effect from "effect/Effect"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { MIB } from "../base/Units.ts"
import { stringify } from "../protocol/Codec.ts"
import { ErrorCode } from "../protocol/JsonRpc.ts"
import type { Ask } from "./Asking.ts"
import { ttlOf } from "./ResultCache.ts"
import { ConnectionError, type RemoteError } from "./ServerError.ts"

/** Pages of one list. */
export const MAX_PAGES = 1_000
/** Entries of one list. */
export const MAX_ENTRIES = 20_000
/** Bytes of one list. */
export const MAX_LIST_BYTES = 64 * MIB

/** One list, as far as it was valid. */
export interface Listing {
  readonly items: ReadonlyArray<Json>
  readonly warnings: ReadonlyArray<string>
  /** How long it may be used without asking again, ms: the shortest of its pages; 0 where nothing is said. */
  readonly freshMs?: number
}

/** What to list. */
export interface ListRequest {
  readonly server: string
  /** `tools/list` and so on. */
  readonly method: string
  /** The member that holds the entries. */
  readonly member: string
  /** Milliseconds left for the next page. */
  readonly remainingMs: () => number
  readonly deadlineField: string
  readonly background?: boolean
}

/** All pages of one list. */
export const listAll = (ask: Ask, request: ListRequest): Effect.Effect<Listing, ConnectionError | RemoteError> =>
  Effect.gen(function* () {
    const { method, member, server } = request
    const items: Array<Json> = []
    const warnings: Array<string> = []
    const seen = new Set<string>()
    let bytes = 0
    let freshMs = Number.POSITIVE_INFINITY
    let cursor: string | undefined
    let restarted = false

    // Nothing more is asked for, so the connection is unharmed: the list fails, not the server.
    const exceed = (what: string, limit: number): ConnectionError =>
      new ConnectionError({
        code: "SIGIL_LIMIT_EXCEEDED",
        reason: "list_limit",
        text: `'${method}' of server '${server}' has more than ${limit} ${what}.`,
        where: { server, operation: method },
        details: { limit, what }
      })

    for (let page = 1; ; page += 1) {
      if (page > MAX_PAGES) return yield* exceed("pages", MAX_PAGES)
      const params: JsonObject = cursor === undefined ? {} : { cursor }
      const answer = yield* Effect.either(
        ask(method, params, {
          deadlineMs: Math.max(1, request.remainingMs()),
          operation: method,
          deadlineField: request.deadlineField,
          // A list that does not come marks its surface; a start that fails by it ends the connection anyway.
          onTimeout: "keep",
          ...(request.background === undefined ? {} : { background: request.background })
        })
      )
      if (answer._tag === "Left") {
        const error = answer.left
        const refused = error._tag === "RemoteError" && error.rpcCode === ErrorCode.invalidParams
        if (!refused || cursor === undefined || restarted) return yield* error
        // The server forgot where it was: once more from the start (K section 9.13).
        restarted = true
        cursor = undefined
        items.length = 0
        seen.clear()
        continue
      }
      const result = answer.right
      freshMs = Math.min(freshMs, ttlOf(result))
      const part = own(result, member)
      if (!Array.isArray(part)) {
        return yield* new ConnectionError({
          code: "SIGIL_PROTOCOL_FAULT",
          reason: "invalid_list",
          text: `The answer of server '${server}' to '${method}' has no array '${member}'.`,
          where: { server, operation: method, field: member }
        })
      }
      for (const item of part) items.push(item)
      if (items.length > MAX_ENTRIES) return yield* exceed("entries", MAX_ENTRIES)
      const next = own(result, "nextCursor")
      // A single page is bounded by the frame limit already; only a chain of pages needs counting.
      if (page > 1 || next !== undefined) bytes += sizeOf(part)
      if (bytes > MAX_LIST_BYTES) return yield* exceed("bytes", MAX_LIST_BYTES)
      if (typeof next !== "string") break
      if (seen.has(next)) {
        warnings.push(`'${method}' repeated a cursor; the list ends there.`)
        break
      }
      seen.add(next)
      cursor = next
    }
    return { items: items.filter((item) => isJsonObject(item) || note(warnings, method)), warnings, freshMs }
  })

const note = (warnings: Array<string>, method: string): false => {
  warnings.push(`'${method}' holds an entry that is not an object; it is left out.`)
  return false
}

const sizeOf = (value: unknown): number => {
  try {
    return stringify(value).length
  } catch {
    // Nested too deep to print: counted as a full frame.
    return 4 * MIB
  }
}

/**
 * What a server says by itself: log messages, changed lists, updated resources.
 *
 * Bounded: the last 200 log messages are kept, redacted, and cut to 2,000 characters each. Listeners are called on
 * the event loop and must not throw.
 */
import { cut } from "../base/Cut.ts"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { stringify } from "../protocol/Codec.ts"

const MAX_MESSAGES = 200
const MAX_CHARACTERS = 2_000

/** Severity of a log message (RFC 5424, as MCP names them). */
export const levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] as const
/** One severity. */
export type Level = (typeof levels)[number]

/** One log message of a server. */
export interface LogMessage {
  readonly level: string
  readonly logger: string | undefined
  readonly text: string
}

/** Something a server announced. */
export type Notice =
  | { readonly _tag: "Log"; readonly message: LogMessage }
  | { readonly _tag: "Updated"; readonly uri: string }
  | { readonly _tag: "ListChanged"; readonly surface: "tools" | "resources" | "prompts" }

/** The notices of one generation. */
export interface Notices {
  /** Takes a notification of the connection; unknown ones are dropped. */
  readonly take: (method: string, params: JsonObject) => void
  /** Calls the listener for each notice from now on; returns what stops it. */
  readonly listen: (listener: (notice: Notice) => void) => () => void
  /** The kept log messages, oldest first. */
  readonly messages: () => ReadonlyArray<LogMessage>
}

const textOf = (data: Json | undefined): string => {
  if (typeof data === "string") return data
  try {
    return stringify(data ?? null)
  } catch {
    return "[a value that is nested too deep]"
  }
}

/** Notices whose words go through `redact`; the texts of log messages are one stream, in which values may be split. */
export const make = (redact: (text: string) => string, redactStream: (text: string) => string = redact): Notices => {
  const kept: Array<LogMessage> = []
  const listeners = new Set<(notice: Notice) => void>()
  const tell = (notice: Notice): void => {
    for (const listener of listeners) listener(notice)
  }
  return {
    messages: () => kept,
    listen: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    take: (method, params) => {
      if (method === "notifications/message") {
        const level = own(params, "level")
        const logger = own(params, "logger")
        const message: LogMessage = {
          level: typeof level === "string" ? cut(redact(level), 32) : "info",
          logger: typeof logger === "string" ? cut(redact(logger), 128) : undefined,
          text: cut(redactStream(textOf(own(params, "data"))), MAX_CHARACTERS)
        }
        kept.push(message)
        if (kept.length > MAX_MESSAGES) kept.shift()
        return tell({ _tag: "Log", message })
      }
      if (method === "notifications/resources/updated") {
        const uri = own(params, "uri")
        if (typeof uri === "string") tell({ _tag: "Updated", uri: redact(uri) })
        return
      }
      const changed = /^notifications\/(tools|resources|prompts)\/list_changed$/.exec(method)?.[1]
      if (changed === "tools" || changed === "resources" || changed === "prompts") {
        tell({ _tag: "ListChanged", surface: changed })
      }
    }
  }
}

/** Whether a value is one of the severities. */
export const isLevel = (value: unknown): value is Level => levels.some((level) => level === value)

/** Whether a capability is declared. */
export const declares = (capabilities: JsonObject, name: string): boolean => isJsonObject(own(capabilities, name))

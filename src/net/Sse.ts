/**
 * Server-sent events out of a stream of bytes, bounded: plain functions over eventsource-parser (WHATWG HTML 9.2).
 *
 * The size of an event is measured from blank line to blank line, comments included, so a stream of fragments without
 * end is bounded too. A stream that ends inside an event or inside a character was cut, and says so instead of losing
 * the event.
 */
import { createParser } from "eventsource-parser"

/** One event. */
export interface SseEvent {
  readonly id?: string | undefined
  readonly event?: string | undefined
  readonly data: string
}

/** Who gets what the stream says. */
export interface SseHandlers {
  readonly onEvent: (event: SseEvent) => void
  /** Milliseconds that the server asks to wait before a reconnect, as it says them. */
  readonly onRetry?: ((ms: number) => void) | undefined
}

/** What a stream may cost. */
export interface SseLimits {
  /** Bytes of one event. */
  readonly maxEventBytes: number
  /** Events of the whole stream; no limit when absent. */
  readonly maxEvents?: number | undefined
}

/** Why a stream is of no more use. */
export type SseFault = "event_too_large" | "too_many_events" | "invalid_utf8" | "cut"

/** A parser: feed it, end it; after a fault it takes nothing more. */
export interface SseParser {
  readonly feed: (chunk: Uint8Array) => SseFault | undefined
  readonly end: () => SseFault | undefined
}

const blankLine = /\r\n\r\n|\n\n|\r\r|\n\r\n?|\r\n\r/g

/** Where the text after the last blank line begins; -1 without one. */
const afterBlank = (text: string): number => {
  let found = -1
  // Only the last one matters, and it is near the end of nearly every chunk.
  for (let from = text.length - 1; from >= 0 && found < 0; from -= 4096) {
    const start = Math.max(0, from - 4096 - 4)
    const part = text.slice(start, from + 1)
    for (const match of part.matchAll(blankLine)) found = start + match.index + match[0].length
  }
  return found
}

/** Whether what follows the last blank line is an event that was begun: any line that is no comment. */
const isBegun = (open: string): boolean => open.split(/\r\n|\n|\r/).some((line) => line !== "" && !line.startsWith(":"))

/** A parser for one stream. */
export const makeSseParser = (handlers: SseHandlers, limits: SseLimits): SseParser => {
  const decoder = new TextDecoder("utf-8", { fatal: true })
  let fault: SseFault | undefined
  let events = 0
  /** The pieces since the last blank line, and their length. */
  let open: Array<string> = []
  let openLength = 0
  const parser = createParser({
    onEvent: (event) => {
      if (fault !== undefined) return
      events += 1
      if (Buffer.byteLength(event.data) > limits.maxEventBytes) fault = "event_too_large"
      else if (limits.maxEvents !== undefined && events > limits.maxEvents) fault = "too_many_events"
      else handlers.onEvent(event)
    },
    onRetry: (ms) => {
      if (fault === undefined) handlers.onRetry?.(ms)
    }
  })
  const decode = (chunk: Uint8Array | undefined): string | undefined => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true })
    } catch {
      return undefined
    }
  }
  const track = (text: string): void => {
    // A blank line may begin in the piece before.
    const before = (open.at(-1) ?? "").slice(-3)
    const at = afterBlank(before + text)
    if (at < before.length + 1) open.push(text)
    else open = [(before + text).slice(at)]
    openLength = at < before.length + 1 ? openLength + text.length : (open[0] ?? "").length
  }
  return {
    feed: (chunk) => {
      if (fault !== undefined) return fault
      const text = decode(chunk)
      if (text === undefined) return (fault = "invalid_utf8")
      if (text === "") return undefined
      track(text)
      if (openLength > limits.maxEventBytes) return (fault = "event_too_large")
      parser.feed(text)
      return fault
    },
    end: () => {
      if (fault !== undefined) return fault
      if (decode(undefined) === undefined) return (fault = "cut")
      return isBegun(open.join("")) ? (fault = "cut") : undefined
    }
  }
}

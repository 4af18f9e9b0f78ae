/**
 * Server-sent events out of a stream of bytes, bounded: plain functions over eventsource-parser (WHATWG HTML 9.2).
 *
 * The size of an event is measured from the end of the one before, comments and blank lines included, so a stream of
 * fragments or comments without end is bounded too. A stream that ends inside an event or inside a character was cut, and says so instead of losing
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

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a

/** Follows the lines of a stream in its bytes: how long the present event is, and whether one was begun. */
const makeTracker = (limit: number) => {
  let size = 0
  let begun = false
  let atLineStart = true
  let inComment = false
  let afterCr = false
  const lineEnd = (): void => {
    if (atLineStart) {
      // Where no event was begun the blank line ends none, and what came counts on.
      if (begun) size = 0
      begun = false
    } else if (!inComment) begun = true
    atLineStart = true
  }
  return {
    /** Takes bytes; `false` when an event grew above the limit. */
    take: (chunk: Uint8Array): boolean => {
      for (let at = 0; at < chunk.length; at += 1) {
        const byte = chunk[at]
        size += 1
        if (byte === LF) {
          if (!afterCr) lineEnd()
        } else if (byte === CR) lineEnd()
        else if (atLineStart) {
          atLineStart = false
          inComment = byte === COLON
        }
        afterCr = byte === CR
        if (size > limit) return false
      }
      return true
    },
    /** Whether the stream stands inside an event: a line that is no comment came after the last blank one. */
    isInside: (): boolean => begun || (!atLineStart && !inComment)
  }
}

/** A parser for one stream. */
export const makeSseParser = (handlers: SseHandlers, limits: SseLimits): SseParser => {
  const decoder = new TextDecoder("utf-8", { fatal: true })
  let fault: SseFault | undefined
  let events = 0
  const tracker = makeTracker(limits.maxEventBytes)
  const parser = createParser({
    onEvent: (event) => {
      if (fault !== undefined) return
      events += 1
      if (limits.maxEvents !== undefined && events > limits.maxEvents) fault = "too_many_events"
      else handlers.onEvent(event)
    },
    onRetry: (ms) => {
      if (fault === undefined) handlers.onRetry?.(ms)
    }
  })
  let endedWithCr = false
  /** The same lines, all ended by LF: a CR ends a line at once, and eventsource-parser is slow where both occur. */
  const normalise = (text: string): string => {
    const rest = endedWithCr && text.startsWith("\n") ? text.slice(1) : text
    endedWithCr = text.endsWith("\r")
    return rest.includes("\r") ? rest.replaceAll(/\r\n?/g, "\n") : rest
  }
  const decode = (chunk: Uint8Array | undefined): string | undefined => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true })
    } catch {
      return undefined
    }
  }
  return {
    feed: (chunk) => {
      if (fault !== undefined) return fault
      const text = decode(chunk)
      if (text === undefined) return (fault = "invalid_utf8")
      if (!tracker.take(chunk)) return (fault = "event_too_large")
      if (text !== "") parser.feed(normalise(text))
      return fault
    },
    end: () => {
      if (fault !== undefined) return fault
      if (decode(undefined) === undefined) return (fault = "cut")
      return tracker.isInside() ? (fault = "cut") : undefined
    }
  }
}

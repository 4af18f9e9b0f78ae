/**
 * How much a server may say by itself while requests are open (R section 4.2, spec section 7; pure).
 *
 * A window lasts from one answer to the next, so that many calls at once share no budget: whoever answers starts it
 * anew, whoever only talks is cut off. Answers and progress of open requests are not counted here.
 */
import { MIB } from "../base/Units.ts"
import type { WireEnd } from "../transport/Transport.ts"

/** Messages that are no answer, allowed in one window. */
export const MAX_MESSAGES = 256
/** Bytes of such messages in one window. */
export const MAX_WINDOW_BYTES = 8 * MIB

/** Counts one connection. */
export interface InboundWindow {
  /** A request was sent or answered. */
  readonly reset: () => void
  /** Counts one message; the end that it brings when it is one too many. */
  readonly take: (bytes: number) => WireEnd | undefined
}

/** An empty window. */
export const make = (): InboundWindow => {
  let messages = 0
  let total = 0
  return {
    reset: () => {
      messages = 0
      total = 0
    },
    take: (bytes) => {
      messages += 1
      total += bytes
      if (messages > MAX_MESSAGES) {
        return {
          reason: "message_limit",
          text: `The server sent more than ${MAX_MESSAGES} messages without an answer.`,
          details: { limit: MAX_MESSAGES, observed_at_least: messages }
        }
      }
      if (total <= MAX_WINDOW_BYTES) return undefined
      return {
        reason: "cumulative_bytes_limit",
        text: `The server sent more than ${MAX_WINDOW_BYTES} bytes without an answer.`,
        details: { limit_bytes: MAX_WINDOW_BYTES, observed_at_least_bytes: total }
      }
    }
  }
}

/**
 * The answer to a message: status and headers are there, the body is read once, bounded, or not at all.
 *
 * What comes before somebody reads is kept, up to the size of a body. Interrupting whoever reads, `cancel`, and every
 * failure close the socket; a body that was read to its end leaves the connection to the next message. So read each
 * answer, or cancel it.
 */
import * as Effect from "effect/Effect"
import { maybeSent, type NetError } from "./NetError.ts"
import { makeSseParser, type SseFault, type SseHandlers, type SseLimits } from "./Sse.ts"

/** An answer. */
export interface HttpResponse {
  readonly status: number
  /** A header by its name in lower case; several of one name are joined with `, `. */
  readonly header: (name: string) => string | undefined
  /** The whole body as UTF-8. Fails with `SIGIL_LIMIT_EXCEEDED` above the limit, and when it is cut or no UTF-8. */
  readonly text: (limitBytes: number) => Effect.Effect<string, NetError>
  /**
   * The body as server-sent events, given out as they come. Completes at a clean end; fails when the stream is cut,
   * also inside an event or a character, and on an event above the limits.
   */
  readonly events: (handlers: SseHandlers, limits: SseLimits) => Effect.Effect<void, NetError>
  /** Closes the connection unless the body was read to its end. */
  readonly cancel: () => void
}

/** Who reads a body. */
export interface BodyReader {
  readonly data: (chunk: Buffer) => void
  readonly end: () => void
  readonly fail: (error: NetError) => void
}

/** Where the body comes from. */
export interface BodySource {
  /** Lets the bytes come; once. */
  readonly read: (reader: BodyReader) => void
  readonly cancel: () => void
}

const sseFaults: { readonly [fault in SseFault]: (limits: SseLimits) => NetError } = {
  event_too_large: ({ maxEventBytes }) =>
    maybeSent(
      "SIGIL_LIMIT_EXCEEDED",
      "event_too_large",
      `The server sent an event of more than ${maxEventBytes} bytes.`
    ),
  too_many_events: ({ maxEvents }) =>
    maybeSent("SIGIL_LIMIT_EXCEEDED", "too_many_events", `The server sent more than ${maxEvents ?? 0} events.`),
  invalid_utf8: () =>
    maybeSent("SIGIL_PROTOCOL_FAULT", "invalid_utf8", "The server sent a stream of events that is not UTF-8."),
  cut: () => maybeSent("SIGIL_CONNECTION_LOST", "stream_cut", "The server's stream ended in the middle of an event.")
}

const tooLarge = (limit: number): NetError =>
  maybeSent("SIGIL_LIMIT_EXCEEDED", "body_too_large", `The server sent an answer of more than ${limit} bytes.`)

const decode = (chunks: ReadonlyArray<Buffer>): string | undefined => {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))
  } catch {
    return undefined
  }
}

const readText = (source: BodySource, declared: number, limit: number): Effect.Effect<string, NetError> =>
  Effect.async((resume) => {
    const chunks: Array<Buffer> = []
    let bytes = 0
    const stop = (error: NetError): void => {
      source.cancel()
      resume(Effect.fail(error))
    }
    if (declared > limit) return stop(tooLarge(limit))
    source.read({
      data: (chunk) => {
        bytes += chunk.length
        if (bytes > limit) stop(tooLarge(limit))
        else chunks.push(chunk)
      },
      end: () => {
        const text = decode(chunks)
        resume(
          text === undefined
            ? Effect.fail(
                maybeSent("SIGIL_PROTOCOL_FAULT", "invalid_utf8", "The server sent an answer that is not UTF-8.")
              )
            : Effect.succeed(text)
        )
      },
      fail: (error) => resume(Effect.fail(error))
    })
    return Effect.sync(source.cancel)
  })

const readEvents = (source: BodySource, handlers: SseHandlers, limits: SseLimits): Effect.Effect<void, NetError> =>
  Effect.async((resume) => {
    const parser = makeSseParser(handlers, limits)
    source.read({
      data: (chunk) => {
        const fault = parser.feed(chunk)
        if (fault === undefined) return
        source.cancel()
        resume(Effect.fail(sseFaults[fault](limits)))
      },
      end: () => {
        const fault = parser.end()
        resume(fault === undefined ? Effect.void : Effect.fail(sseFaults[fault](limits)))
      },
      fail: (error) => resume(Effect.fail(error))
    })
    return Effect.sync(source.cancel)
  })

/** Makes an answer. */
export const makeResponse = (
  status: number,
  headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined },
  source: BodySource
): HttpResponse => {
  const header = (name: string): string | undefined => {
    const value = Object.hasOwn(headers, name) ? headers[name] : undefined
    return value === undefined || typeof value === "string" ? value : value.join(", ")
  }
  let taken = false
  /** The body can be had once; asking again is a fault of the caller. */
  const once = <A>(read: () => Effect.Effect<A, NetError>): Effect.Effect<A, NetError> =>
    Effect.suspend(() => {
      if (taken) return Effect.dieMessage("the body of an answer was read twice")
      taken = true
      return read()
    })
  return {
    status,
    header,
    text: (limit) => once(() => readText(source, Number(header("content-length") ?? 0), limit)),
    events: (handlers, limits) => once(() => readEvents(source, handlers, limits)),
    cancel: source.cancel
  }
}

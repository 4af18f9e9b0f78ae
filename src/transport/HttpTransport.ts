/**
 * Streamable HTTP of every revision, and its ancestor `http-json` (K sections 9.9 and 9.10, S sections 3.3 and 3.4).
 *
 * Every message is a POST of its own. Its answer is JSON or a stream of events, which is read as it comes, so a server
 * that asks something back in the middle of a call gets its answer at once. A stream that breaks before the answer is
 * taken up again where the server numbered its events; where it did not, the request fails and is never sent again
 * from here. Revisions with a handshake have a session and a stream for what no request asked for; the stateless one
 * has neither. A session that the server forgot ends the wire: the next generation has a new one.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { KIB, MIB, SECOND_MS } from "../base/Units.ts"
import type { Client } from "../net/GuardedClient.ts"
import type { HttpResponse } from "../net/HttpResponse.ts"
import { type NetError, REFUSED } from "../net/NetError.ts"
import { MAX_FRAME_BYTES } from "../protocol/Framing.ts"
import type { Id } from "../protocol/JsonRpc.ts"
import type { Revision } from "../protocol/Revision.ts"
import * as RemoteWire from "./RemoteWire.ts"
import type { DeliveryFault, Outgoing, RemotePlan, Wire } from "./Transport.ts"

/** Largest body of one JSON answer (spec section 6). */
export const MAX_BODY_BYTES = 8 * MIB
/** Body of an answer to a notification; nobody reads it. */
const MAX_IGNORED_BYTES = 64 * KIB
/** Longest session id, and the characters it may have (R section 8.3). */
const MAX_SESSION_LENGTH = 1_024
const sessionId = /^[\x21-\x7e]+$/
/** How long a stream may stay open after the answer it was for, so that the connection can be used again, ms. */
const AFTER_ANSWER_MS = SECOND_MS
/** Wait before a broken stream is taken up again where the server names none; doubled while nothing comes, spread. */
const FIRST_DELAY_MS = SECOND_MS
const MAX_DELAY_MS = 30 * SECOND_MS
/** Shortest and longest wait that a server may set by `retry:`, ms. */
const MIN_RETRY_MS = SECOND_MS / 4
const MAX_RETRY_MS = 60 * SECOND_MS
/** Attempts in a row that brought nothing, after which a stream is given up. */
const MAX_FRUITLESS = 5
/** Dials of a broken stream in a row that were refused, after which a request is given up: nobody is there any more. */
const MAX_REFUSED = 3
/** Requests of one server that are under way at a time; the others wait for their turn, inside their deadlines. */
const MAX_REQUESTS = 64
/** A stream that lived this long was worth its opening, whether anything came on it or not, ms. */
const SETTLED_MS = 30 * SECOND_MS
/** How long a notification may take, ms. */
const NOTIFICATION_MS = 30 * SECOND_MS

/** What reading one stream of events came to. */
interface Read {
  lastEventId: string | undefined
  retryMs: number | undefined
  events: number
  /** When the present stream was opened, ms of the Clock. */
  openedAt: number | undefined
}

const nothingRead = (): Read => ({ lastEventId: undefined, retryMs: undefined, events: 0, openedAt: undefined })

const mediaType = (response: HttpResponse): string =>
  (response.header("content-type") ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? ""

const isJson = (type: string): boolean => type === "application/json" || type.endsWith("+json")

const fault = (reason: string, text: string, status?: number): DeliveryFault => ({
  code: "SIGIL_PROTOCOL_FAULT",
  reason,
  text,
  delivered: "unknown",
  ...(status === undefined ? {} : { status })
})

/** Opens a wire over a client; nothing is sent yet. `jitter` is from 0 to 1. */
export const open = (plan: RemotePlan, client: Client, jitter: () => number): Effect.Effect<Wire, never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Effect.clock
    const core = yield* RemoteWire.make
    const turns = yield* Effect.makeSemaphore(MAX_REQUESTS)
    const plain = plan.transport === "http-json"
    const credential = plan.headers.some((header) => header.credential)
    let revision: Revision | undefined
    let session: string | undefined
    let listening = false

    const hasSession = (): boolean => revision?.era !== "stateless"
    const headersOf = (accept: string | undefined, about?: Outgoing): { readonly [name: string]: string } => ({
      ...(accept === undefined ? {} : { accept }),
      ...(session !== undefined && hasSession() ? { "mcp-session-id": session } : {}),
      ...(revision?.versionHeader === true && revision.version !== ""
        ? { "mcp-protocol-version": revision.version }
        : {}),
      ...about?.headers
    })
    /** Whether the session is what it was; ends the wire when the server gives another one. */
    const keepsSession = (response: HttpResponse, about: Outgoing | undefined): boolean => {
      const given = response.header("mcp-session-id")
      if (given === undefined || !hasSession() || plain) return true
      const first = about?.method === "initialize" && session === undefined
      if (!first && (session === undefined || given === session)) return true
      if (first && given.length <= MAX_SESSION_LENGTH && sessionId.test(given)) {
        session = given
        return true
      }
      core.finish({
        reason: "invalid_session_id",
        text: first ? "The server gave a session id that is not valid." : "The server changed the session id."
      })
      return false
    }
    /** The end of a session that the server forgot; `delivered` says whether the request can have reached the server. */
    const expired = (id: Id | undefined, delivered: DeliveryFault["delivered"] = "no"): void => {
      const text = "The server does not know the session any more (HTTP 404)."
      if (id !== undefined)
        core.failed(id, {
          code: "SIGIL_CONNECTION_LOST",
          reason: "session_expired",
          text,
          delivered,
          status: 404
        })
      session = undefined
      core.finish({ reason: "session_expired", text })
    }

    /** Hands on what a stream of events says; completes at its end. */
    const readEvents = (response: HttpResponse, id: Id | undefined, read: Read): Effect.Effect<void, NetError> => {
      let over: ReturnType<typeof setTimeout> | undefined
      return response
        .events(
          {
            onEvent: (event) => {
              read.events += 1
              if (event.id !== undefined && event.id !== "") read.lastEventId = event.id
              // An empty event only says that the stream can be taken up from here; other kinds are no messages.
              if (event.data.trim() === "" || (event.event ?? "message") !== "message") return
              core.deliver(event.data, Buffer.byteLength(event.data), id)
              if (id === undefined || core.waits(id) || over !== undefined) return
              over = setTimeout(() => core.drop(id), AFTER_ANSWER_MS)
            },
            onRetry: (ms) => {
              read.retryMs = Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, ms))
            }
          },
          { maxEventBytes: MAX_FRAME_BYTES }
        )
        .pipe(Effect.ensuring(Effect.sync(() => clearTimeout(over))))
    }
    const ownDelay = (fruitless: number): Effect.Effect<void> =>
      Effect.sleep(Duration.millis(Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** fruitless) * (0.8 + 0.4 * jitter())))
    const delay = (read: Read, fruitless: number): Effect.Effect<void> =>
      read.retryMs === undefined ? ownDelay(fruitless) : Effect.sleep(Duration.millis(read.retryMs))

    /** Attempts in a row that brought nothing, after one more of which `before` tells the events until then. */
    const fruitlessAfter = (read: Read, before: number, fruitless: number): number => {
      const { events, openedAt } = read
      read.openedAt = undefined
      const settled = openedAt !== undefined && clock.unsafeCurrentTimeMillis() - openedAt >= SETTLED_MS
      return events > before || settled ? 0 : fruitless + 1
    }

    /** Takes a broken stream of a request up again, until its answer came or the server does not go on with it. */
    const resume = (
      id: Id,
      read: Read,
      fruitless: number,
      cause: DeliveryFault,
      refused: number = 0
    ): Effect.Effect<void> => {
      if (!core.waits(id)) return Effect.void
      if (read.lastEventId === undefined || !hasSession() || fruitless >= MAX_FRUITLESS || refused >= MAX_REFUSED)
        return Effect.sync(() => core.failed(id, cause))
      const before = read.events
      // A wait that the server asked for is for its streams; where nothing listens it does not count.
      const wait = refused === 0 ? delay(read, fruitless) : ownDelay(0)
      return wait.pipe(
        Effect.zipRight(
          Effect.suspend(() =>
            client.send({
              method: "GET",
              url: plan.url,
              headers: { ...headersOf("text/event-stream"), "last-event-id": read.lastEventId ?? "" },
              data: "connection_metadata"
            })
          )
        ),
        Effect.flatMap((response) => {
          if (!keepsSession(response, undefined)) return Effect.sync(response.cancel)
          if (response.status !== 200 || mediaType(response) !== "text/event-stream") {
            response.cancel()
            // The request was taken, and its answer had begun: it is never sent again from here.
            if (response.status === 404 && session !== undefined) return Effect.sync(() => expired(id, "unknown"))
            return Effect.sync(() => core.failed(id, cause))
          }
          read.openedAt = clock.unsafeCurrentTimeMillis()
          return readEvents(response, id, read)
        }),
        Effect.matchEffect({
          onSuccess: () => resume(id, read, fruitlessAfter(read, before, fruitless), cause),
          onFailure: (error) =>
            resume(
              id,
              read,
              fruitlessAfter(read, before, fruitless),
              // What was not delivered is the question for the rest of the stream; the request itself was.
              { ...RemoteWire.faultOf(error), delivered: "unknown" },
              error.reason === REFUSED ? refused + 1 : 0
            )
        })
      )
    }

    /** An answer that could not be read: one that is no UTF-8 is an invalid frame and ends the wire (spec section 7). */
    const unreadable = (id: Id, error: NetError): void =>
      error.reason === "invalid_utf8"
        ? core.finish({ reason: error.reason, text: error.text })
        : core.failed(id, RemoteWire.faultOf(error))

    const unanswered = fault("answer_missing", "The server ended its answer without answering the request.")
    const answer = (response: HttpResponse, id: Id): Effect.Effect<void, NetError> => {
      const type = mediaType(response)
      if (type === "text/event-stream" && !plain) {
        const read = nothingRead()
        return Effect.matchEffect(readEvents(response, id, read), {
          onSuccess: () => resume(id, read, 0, { ...unanswered, code: "SIGIL_CONNECTION_LOST" }),
          onFailure: (error) =>
            error.code === "SIGIL_CONNECTION_LOST"
              ? resume(id, read, 0, RemoteWire.faultOf(error))
              : Effect.sync(() => unreadable(id, error))
        })
      }
      // The older kind of server does not always say that its answer is JSON.
      const json = isJson(type) || (plain && (type === "" || type === "text/plain"))
      if (response.status !== 202 && response.status !== 204 && json) {
        return Effect.map(response.text(MAX_BODY_BYTES), (text) => {
          core.deliver(text, Buffer.byteLength(text), id)
          if (core.waits(id)) core.failed(id, unanswered)
        })
      }
      response.cancel()
      return Effect.sync(() =>
        core.failed(
          id,
          response.status === 202 || response.status === 204
            ? unanswered
            : fault(
                "unexpected_content_type",
                "The server answered with something that is neither JSON nor a stream of events.",
                response.status
              )
        )
      )
    }
    const refusal = (response: HttpResponse, id: Id): Effect.Effect<void> =>
      Effect.map(RemoteWire.refusalOf(response, { credential, now: () => clock.unsafeCurrentTimeMillis() }), (fault) =>
        core.failed(id, fault)
      )

    /** What the server says of a message that no answer belongs to. */
    const acknowledged = (response: HttpResponse, about: Outgoing | undefined): Effect.Effect<void> => {
      const { status } = response
      const accepted = status >= 200 && status < 300
      if (status === 404 && session !== undefined && hasSession()) expired(undefined)
      else if (about?.method === "notifications/initialized" && !accepted && !plain) {
        core.finish({
          reason: "initialized_rejected",
          text: `The server did not accept the end of the handshake (HTTP ${status}).`
        })
      }
      if (about?.method === "notifications/initialized" && accepted) listen()
      return Effect.ignore(response.text(MAX_IGNORED_BYTES))
    }

    const post = (text: string, about: Outgoing | undefined): Effect.Effect<void> => {
      const id = about?.method === undefined ? undefined : about.id
      const accept = plain ? undefined : "application/json, text/event-stream"
      const sent = Effect.suspend(() =>
        client.send({
          method: "POST",
          url: plan.url,
          headers: { ...headersOf(accept, about), "content-type": "application/json" },
          body: text,
          data: RemoteWire.dataKindOf(about)
        })
      )
      if (id === undefined) {
        return sent.pipe(
          Effect.flatMap((response) => acknowledged(response, about)),
          Effect.timeoutOption(NOTIFICATION_MS),
          Effect.catchAll((error) =>
            Effect.sync(() => {
              if (about?.method !== "notifications/initialized") return
              core.finish({ reason: "initialized_rejected", text: error.text })
            })
          ),
          Effect.asVoid
        )
      }
      return Effect.matchEffect(sent, {
        onFailure: (error) => Effect.sync(() => core.failed(id, RemoteWire.faultOf(error))),
        onSuccess: (response) => {
          const { status } = response
          const good = status >= 200 && status < 300
          if (!good && status === 404 && session !== undefined && hasSession() && about?.method !== "initialize") {
            response.cancel()
            return Effect.sync(() => expired(id))
          }
          if (!good) return refusal(response, id)
          if (!keepsSession(response, about)) return Effect.sync(response.cancel)
          return Effect.catchAll(answer(response, id), (error) => Effect.sync(() => unreadable(id, error)))
        }
      })
    }

    /** The stream for what no request asked for, if the server has one (K section 9.9). */
    const listen = (): void => {
      if (listening || plain || !hasSession()) return
      listening = true
      const read = nothingRead()
      let opened = false
      const attempt = (fruitless: number): Effect.Effect<void> => {
        const before = read.events
        const again = (): Effect.Effect<void> => {
          const next = fruitlessAfter(read, before, fruitless)
          if (next > MAX_FRUITLESS || core.isEnded()) return Effect.void
          return Effect.zipRight(
            delay(read, next),
            Effect.suspend(() => attempt(next))
          )
        }
        return client
          .send({
            method: "GET",
            url: plan.url,
            headers: {
              ...headersOf("text/event-stream"),
              ...(read.lastEventId === undefined ? {} : { "last-event-id": read.lastEventId })
            },
            data: "connection_metadata"
          })
          .pipe(
            Effect.matchEffect({
              onFailure: again,
              onSuccess: (response) => {
                if (response.status !== 200 || mediaType(response) !== "text/event-stream") {
                  response.cancel()
                  if (response.status === 404 && opened && session !== undefined)
                    return Effect.sync(() => expired(undefined))
                  if (response.status === 400 && read.lastEventId !== undefined) {
                    // It does not know the place any more; the stream itself may still be there.
                    read.lastEventId = undefined
                    return again()
                  }
                  // Any refusal means that there is no such stream; only a fault of the server may pass.
                  return response.status >= 500 && response.status !== 501 ? again() : Effect.void
                }
                if (!keepsSession(response, undefined)) return Effect.sync(response.cancel)
                // A server that numbers its events sends again what was missed; no other one does.
                if (opened && read.lastEventId === undefined) core.missed()
                opened = true
                read.openedAt = clock.unsafeCurrentTimeMillis()
                return Effect.matchEffect(readEvents(response, undefined, read), {
                  onSuccess: again,
                  onFailure: again
                })
              }
            })
          )
      }
      core.background(attempt(0))
    }

    const leave = Effect.suspend(() =>
      session === undefined || !hasSession() || plain
        ? Effect.void
        : client
            .send({ method: "DELETE", url: plan.url, headers: headersOf(undefined), data: "connection_metadata" })
            .pipe(
              Effect.map((response) => response.cancel()),
              Effect.ignore
            )
    )

    return core.wire({
      perMessage: true,
      send: (text, about) => {
        const id = about?.method === undefined ? undefined : about.id
        // What stays open for ever takes no turn from the others, and an answer that a call waits for takes none either.
        const waits = id !== undefined && about?.method !== "subscriptions/listen"
        core.run(waits ? turns.withPermits(1)(post(text, about)) : post(text, about), id)
        return true
      },
      agreed: (given) => {
        revision = given
      },
      session: () => session,
      parting: leave
    })
  })

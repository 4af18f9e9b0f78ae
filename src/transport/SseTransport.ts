/**
 * HTTP with two endpoints, as revision 2024-11-05 had it (S section 3.5): a stream of events that tells where to post,
 * and carries every answer.
 *
 * Messages wait until the server has named the endpoint, which has to have the origin of the stream: credentials go
 * nowhere else. The end of the stream is the end of the wire; the next generation opens another one.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { KIB, SECOND_MS } from "../base/Units.ts"
import type { Client } from "../net/GuardedClient.ts"
import type { HttpResponse } from "../net/HttpResponse.ts"
import type { NetError } from "../net/NetError.ts"
import { MAX_FRAME_BYTES } from "../protocol/Framing.ts"
import type { Id } from "../protocol/JsonRpc.ts"
import type { Revision } from "../protocol/Revision.ts"
import * as RemoteWire from "./RemoteWire.ts"
import { retryAfter, statusFault } from "./StatusFault.ts"
import type { DeliveryFault, Outgoing, RemotePlan, Wire } from "./Transport.ts"

/** Body of the answer to a post; the answer itself comes on the stream. */
const MAX_IGNORED_BYTES = 64 * KIB
/** How long a post may take, ms. */
const POST_MS = 30 * SECOND_MS

/** Opens a wire over a client; its stream is opened at once. */
export const open = (plan: RemotePlan, client: Client): Effect.Effect<Wire, never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Effect.clock
    const core = yield* RemoteWire.make
    const credential = plan.headers.some((header) => header.credential)
    const endpoint = yield* Deferred.make<string>()
    /** Requests that wait for the endpoint. */
    const waiting = new Set<Id>()
    let named = false
    let revision: Revision | undefined

    const end = (reason: string, text: string, fault?: DeliveryFault): void => {
      if (named) return core.finish({ reason, text })
      core.refuse(fault ?? { code: "SIGIL_CONNECTION_LOST", reason, text, delivered: "no" }, waiting)
    }
    const name = (data: string): void => {
      const base = new URL(plan.url)
      const target = URL.canParse(data.trim(), plan.url) ? new URL(data.trim(), plan.url) : undefined
      if (target === undefined || target.origin !== base.origin || target.username !== "" || target.password !== "") {
        return end(
          "foreign_endpoint",
          `The server names an endpoint that is not at ${base.origin}; nothing is sent there.`
        )
      }
      target.hash = ""
      named = true
      waiting.clear()
      Effect.runSync(Deferred.succeed(endpoint, target.href))
    }
    const read = (response: HttpResponse): Effect.Effect<void, NetError> =>
      response.events(
        {
          onEvent: ({ data, event }) => {
            if (event === "endpoint") return name(data)
            if (data.trim() !== "" && (event === undefined || event === "message"))
              core.deliver(data, Buffer.byteLength(data))
          }
        },
        { maxEventBytes: MAX_FRAME_BYTES }
      )
    core.background(
      client
        .send({ method: "GET", url: plan.url, headers: { accept: "text/event-stream" }, data: "connection_metadata" })
        .pipe(
          Effect.flatMap((response) => {
            const type = (response.header("content-type") ?? "").split(";", 1)[0]?.trim().toLowerCase()
            if (response.status === 200 && type === "text/event-stream") {
              return Effect.map(read(response), () => end("stream_closed", "The server closed its stream of events."))
            }
            response.cancel()
            const fault = statusFault(response.status, {
              credential,
              retryAfterMs: retryAfter(response.header("retry-after"), clock.unsafeCurrentTimeMillis())
            })
            return Effect.sync(() =>
              response.status === 200
                ? end("unexpected_content_type", "The server answered with something that is no stream of events.")
                : end(fault.reason, fault.text, fault)
            )
          }),
          Effect.catchAll((error) => Effect.sync(() => end(error.reason, error.text, RemoteWire.faultOf(error))))
        )
    )

    const post = (text: string, about: Outgoing | undefined): Effect.Effect<void> => {
      const id: Id | undefined = about?.method === undefined ? undefined : about.id
      const failed = (fault: DeliveryFault): Effect.Effect<void> =>
        Effect.sync(() => {
          if (id !== undefined) core.failed(id, fault)
        })
      if (id !== undefined && !named) waiting.add(id)
      return Deferred.await(endpoint).pipe(
        Effect.flatMap((url) =>
          client
            .send({
              method: "POST",
              url,
              headers: {
                "content-type": "application/json",
                ...(revision?.versionHeader === true && revision.version !== ""
                  ? { "mcp-protocol-version": revision.version }
                  : {})
              },
              body: text,
              data: RemoteWire.dataKindOf(about)
            })
            .pipe(
              Effect.flatMap((response) => {
                const { status } = response
                if (status >= 200 && status < 300) return Effect.ignore(response.text(MAX_IGNORED_BYTES))
                return Effect.flatMap(
                  RemoteWire.refusalOf(response, { credential, now: () => clock.unsafeCurrentTimeMillis() }),
                  failed
                )
              }),
              Effect.catchAll((error) => failed(RemoteWire.faultOf(error))),
              Effect.timeoutOption(POST_MS),
              Effect.asVoid
            )
        )
      )
    }
    return core.wire({
      perMessage: false,
      send: (text, about) => {
        core.run(post(text, about))
        return true
      },
      agreed: (given) => {
        revision = given
      }
    })
  })

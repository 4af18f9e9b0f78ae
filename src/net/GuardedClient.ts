/**
 * The one HTTP client that speaks to remote servers (spec section 6, R sections 8.10 to 8.12).
 *
 * Per message, in this order: the URL is held against the client's origin; the transport authorisation and the
 * disclosure record are on the disk; the disclosure has been shown; only then, and only without a free connection, a
 * name is resolved and an address dialled. No redirect is followed, no cookie kept, no referer sent, nothing sent
 * twice. Credentials go to the origin they were given for and nowhere else.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { AuditLog } from "../audit/AuditLog.ts"
import { HostEnvironment } from "../platform/HostEnvironment.ts"
import { Random } from "../platform/Random.ts"
import { type Authorise, makeAuthorise, type Recorder } from "./Authorisation.ts"
import { fixedHeaders, headersFault, holdsCredential, isSensitive, type ProfileHeader } from "./ClientHeaders.ts"
import { type Connections, makeConnections } from "./Connections.ts"
import type { Destination } from "./Destination.ts"
import type { DestinationRules } from "./DestinationRules.ts"
import { dial, type Dialled } from "./Dial.ts"
import { exchange, type Running } from "./Exchange.ts"
import type { HttpResponse } from "./HttpResponse.ts"
import { judge } from "./Judge.ts"
import { NetError, notSent, refused } from "./NetError.ts"
import { type DataKind, Presenter } from "./Presenter.ts"
import type { Route } from "./Proxy.ts"
import { Resolver } from "./Resolver.ts"
import { type GuardedSocket, NO_SUBPROTOCOL, openSocket } from "./WebSocketClient.ts"

/** Connections found closed before a message was written, after which it is given up. */
const MAX_DIALS = 3

/** Where one client may send, and what goes with each message. */
export interface Profile {
  /** Exact name of the server; shown and recorded. */
  readonly server: string
  /** What part of sigil sends; shown. Absent: `remote server`. */
  readonly surface?: string | undefined
  /** Id of the run for the records; one per layer when absent. */
  readonly run?: string | undefined
  /** http, https, ws or wss; its origin is the only one this client sends to. */
  readonly url: string
  /** The origin as it may be shown and recorded, where a part of it may not; the origin itself when absent. */
  readonly shown?: string | undefined
  readonly headers: ReadonlyArray<ProfileHeader>
  readonly rules: DestinationRules
  readonly proxyMode: "environment" | "direct"
  /** Milliseconds for one dial: resolve, connect, TLS. Deadlines of messages are the caller's. */
  readonly connectTimeoutMs: number
}

/** One message. */
export interface HttpRequest {
  readonly method: "GET" | "POST" | "DELETE"
  readonly url: string
  /** Headers of this message alone, names in lower case. They win over the profile's. A secret is `Redacted`. */
  readonly headers?: { readonly [name: string]: string | Redacted.Redacted } | undefined
  readonly body?: string | undefined
  readonly data: DataKind
  /** Id of the call that it belongs to, for the records. */
  readonly call?: string | undefined
}

/** What else is known of an upgrade. */
export interface UpgradeOptions extends Pick<HttpRequest, "headers" | "call"> {
  /** What is offered to be spoken; a server that selects none is asked once more without it. */
  readonly subprotocol?: string
}

/** A client of one origin. */
export interface Client {
  /**
   * Records and discloses one message that travels over a connection which is open already; `send` and `upgrade` do it
   * themselves. The message may leave when it succeeds.
   */
  readonly authorise: (data: DataKind, call?: string) => Effect.Effect<void, NetError>
  /**
   * Sends a message; completes when the headers of the answer came. Interruption closes the connection. The caller
   * reads the answer or cancels it.
   */
  readonly send: (request: HttpRequest) => Effect.Effect<HttpResponse, NetError>
  /** Opens a WebSocket to a URL of the client's origin under the same guard; closed with the scope. */
  readonly upgrade: (
    url: string,
    data: DataKind,
    more?: UpgradeOptions
  ) => Effect.Effect<GuardedSocket, NetError, Scope.Scope>
}

/** Opens guarded clients. */
export class GuardedClient extends Context.Tag("sigil/net/GuardedClient")<
  GuardedClient,
  {
    /**
     * Judges a profile and makes its client; nothing is recorded, resolved or dialled yet. Fails with
     * `SIGIL_NETWORK_REFUSED` or `SIGIL_CONFIG_INVALID`. The scope's end closes all connections.
     */
    readonly open: (profile: Profile) => Effect.Effect<Client, NetError, Scope.Scope>
  }
>() {}

/** What a profile comes down to. */
interface Plan {
  readonly destination: Destination
  readonly route: Route
  /** Headers of every message, secrets included: never shown, recorded or logged. */
  readonly headers: { readonly [name: string]: string }
}

const planOf = (profile: Profile, get: (name: string) => string | undefined): Effect.Effect<Plan, NetError> => {
  const fault = headersFault(profile.headers)
  if (fault !== undefined) return Effect.fail(fault)
  const { proxyMode, rules, url } = profile
  const verdict = judge({ url, credentials: holdsCredential(profile.headers), rules, proxyMode, get })
  if (verdict._tag === "Refuse") return Effect.fail(refused(verdict))
  const headers: { [name: string]: string } = { ...fixedHeaders }
  for (const { name, value } of profile.headers) headers[name.toLowerCase()] = Redacted.value(value)
  return Effect.succeed({ destination: verdict.destination, route: verdict.route, headers })
}

/** The parsed URL when it may be sent to: the profile's own origin, no user name, no fragment. */
const sameOrigin = (text: string, origin: string): URL | NetError => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url !== undefined && url.origin === origin && url.username === "" && url.password === "" && url.hash === "")
    return url
  const to = url === undefined || url.origin === "null" ? "an address that is no URL" : url.origin
  return notSent(
    "SIGIL_NETWORK_REFUSED",
    "other_origin",
    `A message for ${origin} was to be sent to ${to}, so it was not sent.`,
    "Declare the server with the address that it really uses."
  )
}

const merged = (plan: Plan, request: Pick<HttpRequest, "headers">): { readonly [name: string]: string } | NetError => {
  if (request.headers === undefined) return plan.headers
  const all: { [name: string]: string } = { ...plan.headers }
  for (const [name, value] of Object.entries(request.headers)) {
    if (!plan.destination.encrypted && (typeof value !== "string" || isSensitive(name)))
      return notSent(
        "SIGIL_NETWORK_REFUSED",
        "credentials_unencrypted",
        `A credential would be sent to '${plan.destination.host}' without encryption.`,
        "Declare the server with an https:// address."
      )
    all[name] = typeof value === "string" ? value : Redacted.value(value)
  }
  return all
}

const makeClient = (
  plan: Plan,
  connections: Connections,
  authorise: Authorise,
  dialled: Effect.Effect<Dialled, NetError>
): Client => {
  const { destination } = plan
  return {
    authorise: (data, call) => authorise(data, call),
    send: (request) =>
      Effect.suspend(() => {
        const url = sameOrigin(request.url, destination.origin)
        if (!(url instanceof URL)) return Effect.fail(url)
        const headers = merged(plan, request)
        if (headers instanceof NetError) return Effect.fail(headers)
        const message = { method: request.method, path: url.pathname + url.search, headers, body: request.body }
        const running: Running = { stop: () => {} }
        let dials = 0
        const attempt: Effect.Effect<HttpResponse, NetError> = Effect.flatMap(
          Effect.suspend(() => exchange(connections, destination.origin, message, running)),
          (response) => {
            if (response !== undefined) return Effect.succeed(response)
            dials += 1
            if (dials > MAX_DIALS)
              return Effect.fail(
                notSent(
                  "SIGIL_CONNECTION_LOST",
                  "connection_closed",
                  `The server at ${destination.origin} closed every connection before a message was written.`
                )
              )
            return Effect.zipRight(connections.open, attempt)
          }
        )
        return Effect.onExit(Effect.zipRight(authorise(request.data, request.call), attempt), (exit) =>
          Exit.isSuccess(exit) ? Effect.void : Effect.sync(() => running.stop())
        )
      }),
    upgrade: (text, data, more = {}) =>
      Effect.suspend(() => {
        const url = sameOrigin(text, destination.origin)
        if (!(url instanceof URL)) return Effect.fail(url)
        const headers = merged(plan, more)
        if (headers instanceof NetError) return Effect.fail(headers)
        const once = (subprotocol?: string) =>
          Effect.zipRight(authorise(data, more.call), openSocket(url, headers, dialled, subprotocol))
        return Effect.catchIf(
          once(more.subprotocol),
          ({ reason }) => reason === NO_SUBPROTOCOL,
          () => once()
        )
      })
  }
}

/** What a client may be made with besides its services. */
export interface GuardedClientOptions {
  /** Certificates (PEM) that are trusted besides those that Node brings: tests, and companies with a root of their own. */
  readonly trusted?: ReadonlyArray<string> | undefined
}

type Needs = Resolver | Presenter | AuditLog | Random | HostEnvironment

/** The client, with options. */
export const layerWith = (options: GuardedClientOptions): Layer.Layer<GuardedClient, never, Needs> =>
  Layer.effect(
    GuardedClient,
    Effect.gen(function* () {
      const resolver = yield* Resolver
      const random = yield* Random
      const environment = yield* HostEnvironment
      const recorder: Recorder = {
        audit: yield* AuditLog,
        presenter: yield* Presenter,
        random,
        run: random.uuid(),
        shown: new Set(),
        turn: yield* Effect.makeSemaphore(1)
      }
      const open = (profile: Profile): Effect.Effect<Client, NetError, Scope.Scope> =>
        Effect.gen(function* () {
          const plan = yield* planOf(profile, environment.get)
          // Loaded here: most commands of sigil reach no server over the network.
          const undici = yield* Effect.promise(() => import("undici"))
          const { destination, route } = plan
          const { rules, connectTimeoutMs: timeoutMs, proxyMode, server } = profile
          const dialled = dial(resolver, { destination, route, rules, timeoutMs, trusted: options.trusted ?? [] })
          // undici knows no ws: scheme; it never dials itself, so this is a name for messages only.
          const origin = destination.origin.replace(/^ws/, "http")
          const connections = yield* Effect.acquireRelease(
            Effect.sync(() => makeConnections(undici.Client, origin, dialled)),
            (all) => Effect.sync(all.destroy)
          )
          const authorise = makeAuthorise(recorder, {
            server,
            surface: profile.surface ?? "remote server",
            run: profile.run,
            destination,
            shown: profile.shown ?? destination.origin,
            route,
            configuration: { proxyMode, rules, headers: profile.headers.map(({ name }) => name.toLowerCase()).sort() }
          })
          return makeClient(plan, connections, authorise, dialled)
        })
      return GuardedClient.of({ open })
    })
  )

/** The client as sigil uses it. */
export const layer: Layer.Layer<GuardedClient, never, Needs> = layerWith({})

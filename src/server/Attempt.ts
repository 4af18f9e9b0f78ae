/**
 * One connection to a server, from its wire to an agreement on a revision.
 *
 * A start takes one of these, or two where the first shows that the server wants to be spoken to otherwise: one that
 * dies of a question it does not know, or one that speaks HTTP with two endpoints. Everything an attempt owns lives in
 * the scope it is given and is gone before the next one begins, so there are never two processes at once.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { elicitationTurn } from "./ElicitationTurn.ts"
import type { AuditLog } from "../audit/AuditLog.ts"
import type { GenerationId } from "../base/Ids.ts"
import type { Json, JsonObject } from "../base/Json.ts"
import { VERSION } from "../base/Version.ts"
import type { CleanupReport } from "../platform/CleanupReport.ts"
import type { Secrets } from "../policy/Secrets.ts"
import type { Standing } from "../protocol/Stateless.ts"
import * as Revisions from "../protocol/Revisions.ts"
import * as Spans from "../telemetry/Spans.ts"
import type { Plan, Transport, Wire } from "../transport/Transport.ts"
import type { TransportError } from "../transport/TransportError.ts"
import type { Admitted } from "./Admission.ts"
import type { Features } from "./ClientFeatures.ts"
import * as Connection from "./Connection.ts"
import type { Era } from "./EraStore.ts"
import * as Negotiation from "./Negotiation.ts"
import * as Notices from "./Notices.ts"
import { repeating } from "./Repeating.ts"
import * as Roots from "./Roots.ts"
import type { ConnectionError, RemoteError, StartError } from "./ServerError.ts"
import * as ServerRequests from "./ServerRequests.ts"
import type { Subscriptions } from "./Subscriptions.ts"

/** What an attempt needs of its surroundings. */
export interface Surroundings {
  readonly transport: Context.Tag.Service<typeof Transport>
  readonly secrets: Context.Tag.Service<typeof Secrets>
  readonly audit: Context.Tag.Service<typeof AuditLog>
  readonly features: Features
  readonly id: GenerationId
  readonly remaining: () => number
  /** From 0 to 1. */
  readonly jitter: () => number
  /** Sees the wire before its first message. */
  readonly onOpen: (wire: Wire) => void
  /** Told once when everything of the attempt is gone. */
  readonly onClosed: (
    wire: Wire,
    connection: Connection.Connection | undefined,
    report: CleanupReport
  ) => Effect.Effect<void>
}

/** A connection that negotiated. */
export interface Attempt {
  readonly wire: Wire
  readonly connection: Connection.Connection
  readonly notices: Notices.Notices
  readonly requests: ServerRequests.ServerRequests
  readonly outcome: Negotiation.Outcome
  /** What its spans say of it. */
  readonly telemetry: Spans.ConnectionFacts
  /** Remembers that the session begins, for the span of its end. */
  readonly begin: (session: Spans.Session | undefined) => void
  /** Hands over what belongs to listening; set once the generation exists. */
  readonly route: (to: Pick<Subscriptions, "take" | "missed">) => void
}

const carrierOf = (plan: Plan): Negotiation.Facts["carrier"] => {
  if (plan._tag === "stdio") return "stdio"
  return plan.transport === "streamable_http" ? "streamable_http" : "other"
}

/** The facts of telemetry for a plan. */
const telemetryOf = (
  admitted: Admitted,
  plan: Plan,
  id: GenerationId,
  redact: (text: string) => string,
  version: () => string | undefined,
  session: () => string | undefined
): Spans.ConnectionFacts => ({
  server: admitted.declaration.name,
  generation: id,
  transport: plan._tag === "stdio" ? "pipe" : "tcp",
  ...(plan._tag === "stdio" ? {} : { protocolName: plan.transport === "ws" ? "websocket" : "http", session }),
  protocolVersion: version,
  propagate: admitted.declaration.tracePropagation,
  redact
})

/** Opens one connection in the current scope and finds out what its server speaks. */
export const make = (
  admitted: Admitted,
  plan: Plan,
  era: Era | undefined,
  around: Surroundings
): Effect.Effect<Attempt, TransportError | ConnectionError | RemoteError | StartError, Scope.Scope> =>
  Effect.gen(function* () {
    const { audit, features, id, remaining, secrets, transport } = around
    const { declaration } = admitted
    const server = declaration.name
    let negotiated: string | undefined
    let seen: Wire | undefined
    const telemetry = telemetryOf(
      admitted,
      plan,
      id,
      secrets.redactText,
      () => negotiated,
      () => seen?.session?.()
    )
    const wire = yield* Spans.spawn(telemetry, transport.open({ server, generation: id, plan }))
    seen = wire
    let live: Connection.Connection | undefined
    let session: Spans.Session | undefined
    yield* Effect.addFinalizer(() =>
      Spans.close(
        telemetry,
        () => session,
        () => live?.terminal()?.end.reason,
        wire.close
      ).pipe(Effect.flatMap((report) => around.onClosed(wire, live, report)))
    )
    around.onOpen(wire)
    const mayLeave = (value: Json): boolean =>
      declaration.trust.allowSecrets || secrets.containsSecret(value) === undefined
    const notices = Notices.make(secrets.redactText, secrets.redactStream())
    const pending: { end?: () => void } = {}
    const requests = ServerRequests.make({
      server,
      allowed: declaration.endpoint._tag === "remote" ? declaration.endpoint.clientCapabilities : "all",
      features,
      urlMode: admitted.urlMode,
      elicitation: {
        server,
        urlMode: admitted.urlMode && features.urls,
        mayLeave,
        redact: secrets.redactText,
        audit: audit.append,
        turn: yield* elicitationTurn
      },
      roots: Roots.handler(admitted.workspace, plan._tag === "stdio" ? plan.args : [], mayLeave, () => pending.end?.()),
      mayLeave
    })
    const standing: Standing = {
      clientInfo: { name: "sigil", version: VERSION },
      capabilities: requests.capabilities("stateless")
    }
    let route: Pick<Subscriptions, "take" | "missed"> | undefined
    const connection = yield* Connection.make(wire, {
      server,
      handlers: requests.handlers,
      onNotification: (method: string, params: JsonObject) => {
        if (route?.take(method) !== true) notices.take(method, params)
      },
      onMissed: () => route?.missed(),
      mayLeave,
      redact: secrets.redactText,
      redactStream: secrets.redactStream,
      stdoutNoise: declaration.stdoutNoise,
      onTimeout: declaration.onTimeout,
      changedVariable: admitted.environment.changed,
      standing,
      telemetry
    })
    live = connection
    pending.end = () =>
      connection.end({
        reason: "secret_gate",
        text: "The workspace root holds a secret that the server may not have."
      })
    const outcome = yield* Negotiation.negotiate({
      declaration,
      connection,
      ask:
        carrierOf(plan) === "streamable_http"
          ? repeating({ clock: yield* Effect.clock, declaration, jitter: around.jitter }, connection.request)
          : connection.request,
      standing,
      capabilities: requests.capabilities("handshake"),
      carrier: carrierOf(plan),
      era,
      remaining,
      redact: secrets.redactText,
      telemetry,
      onVersion: (version) => {
        negotiated = typeof version === "string" ? (Revisions.find(version)?.version ?? negotiated) : negotiated
      }
    })
    if (outcome._tag === "Agreed") negotiated = outcome.agreed.revision.version
    return {
      wire,
      connection,
      notices,
      requests,
      outcome,
      telemetry,
      begin: (begun) => {
        session = begun
      },
      route: (to) => {
        route = to
      }
    } satisfies Attempt
  })

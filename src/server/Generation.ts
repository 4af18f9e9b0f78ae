/**
 * One live connection of one server, as a scope.
 *
 * Everything a generation owns (process, reader, sweeper) is acquired in the scope that `open` is given;
 * closing that scope is the only way to end it, and how it went is a `CleanupReport`. A failed start closes
 * what it had opened before it returns, so a caller never holds a half-started server. A closed generation is
 * never reused. One absolute start budget covers spawn, handshake and all tool pages (spec section 7).
 */
import type * as Context from "effect/Context"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ExecutionStrategy from "effect/ExecutionStrategy"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import { processLifecycle } from "../audit/AuditEntries.ts"
import { AuditLog } from "../audit/AuditLog.ts"
import type { Code } from "../base/Codes.ts"
import { GenerationId } from "../base/Ids.ts"
import type { Json, JsonObject } from "../base/Json.ts"
import { environmentFingerprint } from "../config/Fingerprint.ts"
import type { ServerDeclaration } from "../config/ServerDeclaration.ts"
import { type CleanupReport, combine } from "../platform/CleanupReport.ts"
import { HostEnvironment } from "../platform/HostEnvironment.ts"
import { Random } from "../platform/Random.ts"
import type { NetworkEffect } from "../policy/NetworkPolicy.ts"
import * as Pins from "../policy/Pins.ts"
import { Secrets } from "../policy/Secrets.ts"
import type { Revision } from "../protocol/Revision.ts"
import * as Spans from "../telemetry/Spans.ts"
import { type Plan, Transport, type Wire } from "../transport/Transport.ts"
import type { TransportError } from "../transport/TransportError.ts"
import type { Admitted, Refusal } from "./Admission.ts"
import * as Asking from "./Asking.ts"
import * as Attempt from "./Attempt.ts"
import { ClientFeatures } from "./ClientFeatures.ts"
import type * as Connection from "./Connection.ts"
import { type Era, EraStore, keyOf } from "./EraStore.ts"
import { mismatch } from "./gates/PinAndLock.ts"
import * as Heartbeat from "./Heartbeat.ts"
import type { Listing } from "./Listing.ts"
import * as Lists from "./Lists.ts"
import type * as Negotiation from "./Negotiation.ts"
import * as Notices from "./Notices.ts"
import * as ResultCache from "./ResultCache.ts"
import { type ConnectionError, type RemoteError, StartError } from "./ServerError.ts"
import { ServerLog } from "./ServerLog.ts"
import type { OpenKind } from "./ServerState.ts"
import { explain } from "./StartDiagnosis.ts"
import { incompleteCleanup } from "./StartFailure.ts"
import * as Subscriptions from "./Subscriptions.ts"
import { faultFor } from "./TerminalCause.ts"

/** A ready generation. */
export interface Generation {
  readonly id: GenerationId
  readonly server: string
  readonly declaration: ServerDeclaration
  /** What the process can do to the network: `none` only where a sandbox proved it. */
  readonly networkEffect: NetworkEffect
  readonly connection: Connection.Connection
  /** The way to ask the server for something; whatever its revision makes of it. */
  readonly ask: Asking.Ask
  readonly subscriptions: Subscriptions.Subscriptions
  /** Least severity of log messages that requests ask for, in revisions that have no `logging/setLevel`. */
  readonly setLogLevel: (level: string) => void
  readonly revision: Revision
  readonly info: Negotiation.ServerInfo
  /** Fingerprint of the launch, where a pin needed it. */
  readonly launchFingerprint: string | undefined
  readonly capabilities: JsonObject
  readonly instructions: string | undefined
  /**
   * Raw tool definitions in the server's order, as last read whole; hostile until guarded by the catalogue. The array
   * is another one after the list was read again.
   */
  readonly tools: ReadonlyArray<Json>
  readonly warnings: ReadonlyArray<string>
  /** All lists that were read of it. */
  readonly lists: Lists.Lists
  /** From the start to the last tool page, ms. */
  readonly readyMs: number
  readonly wire: Wire
  /** What the server announces by itself. */
  readonly notices: Notices.Notices
  /** Completes when everything the generation owned is gone, or could not be confirmed gone. */
  readonly cleanup: Deferred.Deferred<CleanupReport>
}

/** What a generation needs of its surroundings. */
export type Needs = Transport | Secrets | ServerLog | HostEnvironment | Random | AuditLog

/** Sees the wire of a start from its first byte, e.g. to stream the server's stderr. */
export type OnOpen = (wire: Wire) => void

/** How one generation is opened. */
export interface OpenOptions {
  readonly onOpen?: OnOpen
  /** What it is started for, for the record. */
  readonly kind?: OpenKind
}

type StartFailure = ConnectionError | RemoteError | TransportError | StartError | Refusal

/** Opens a generation in the current scope. */
export const open = (
  admitted: Admitted,
  options: OpenOptions = {}
): Effect.Effect<Generation, StartError, Needs | Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const transport = yield* Transport
      const secrets = yield* Secrets
      const log = yield* ServerLog
      const host = yield* HostEnvironment
      const random = yield* Random
      const audit = yield* AuditLog
      const clock = yield* Effect.clock
      const outer = yield* Effect.scope
      const { declaration } = admitted
      const server = declaration.name
      const id = GenerationId(random.uuid())
      const cleanup = yield* Deferred.make<CleanupReport>()
      const begun = clock.unsafeCurrentTimeMillis()
      const remaining = (): number => begun + declaration.startupTimeoutMs - clock.unsafeCurrentTimeMillis()
      const features = yield* ClientFeatures
      const eras = yield* EraStore
      const reports: Array<CleanupReport> = []
      let seen: Wire | undefined
      const record = (
        phase: "pre_spawn" | "post_spawn" | "closed",
        status: "registered" | "startup_failed" | "closed" | "cleanup_incomplete",
        code?: Code,
        more: { readonly [key: string]: string } = {}
      ) =>
        audit
          .append(
            processLifecycle({
              server,
              phase,
              status,
              processKind: admitted.plan._tag === "remote" ? "mcp_remote" : "mcp_stdio",
              code,
              generation: id,
              safeMetadata: {
                mcp_process_class: admitted.plan._tag === "remote" ? "mcp_remote" : "mcp_stdio",
                ...(admitted.coverage?.metadata ?? { mcp_process_coverage: "unsupported" }),
                mcp_environment_policy: "isolated",
                mcp_environment_grant_names: admitted.grants.join(","),
                mcp_environment_static_fingerprint: environmentFingerprint(admitted.grants),
                mcp_environment_live_fingerprint: admitted.environment.fingerprint,
                mcp_start_kind: options.kind ?? "asked",
                ...more
              }
            })
          )
          .pipe(
            Effect.mapError(
              (error) =>
                new StartError({
                  code: error.code,
                  reason: error.reason,
                  text: error.text,
                  fix: error.fix,
                  where: { ...error.where, server }
                })
            )
          )

      const around: Attempt.Surroundings = {
        transport,
        secrets,
        audit,
        features,
        id,
        remaining,
        jitter: random.fraction,
        onOpen: (wire) => {
          seen = wire
          options.onOpen?.(wire)
        },
        onClosed: (wire, connection, report) =>
          Effect.sync(() => reports.push(report)).pipe(
            Effect.zipRight(log.save(server, secrets.redactText(wire.stderr().text))),
            Effect.zipRight(
              Effect.ignore(
                record(
                  "closed",
                  report.complete ? "closed" : "cleanup_incomplete",
                  undefined,
                  lastWords(connection, report)
                )
              )
            )
          )
      }
      /** One attempt in a scope of its own, which is closed before the next one begins. */
      const attempt = (
        plan: Plan,
        era: Era | undefined,
        again: boolean,
        because?: StartFailure
      ): Effect.Effect<readonly [Attempt.Attempt, Negotiation.Agreed, Era], StartFailure, Scope.Scope> =>
        Effect.gen(function* () {
          // A start that cannot be put on record does not happen (R section 12.1).
          yield* record("pre_spawn", "registered")
          yield* admitted.confirm
          const own = yield* Scope.fork(yield* Effect.scope, ExecutionStrategy.sequential)
          const made = yield* Effect.either(Scope.extend(Attempt.make(admitted, plan, era, around), own))
          const next = nextAttempt(made, plan, era, again)
          if (next === undefined) {
            if (Either.isLeft(made)) return yield* because !== undefined && isNoStream(made.left) ? because : made.left
            if (made.right.outcome._tag === "Agreed") {
              return [made.right, made.right.outcome.agreed, made.right.outcome.era] as const
            }
            return yield* Effect.dieMessage("an attempt wished for another one that nobody makes")
          }
          yield* Scope.close(own, Exit.void)
          const left = reports.find(({ complete }) => !complete)
          // What was left behind would run beside the next one; the first end stays the reason.
          const terminal = Either.isRight(made) ? made.right.connection.terminal() : undefined
          if (left !== undefined) {
            return yield* terminal === undefined
              ? incompleteCleanup(server, left)
              : faultFor(server, terminal, "server/discover")
          }
          return yield* attempt(next.plan, next.era, next.again, next.because)
        })

      const start = Effect.gen(function* () {
        // Before the process exists: nothing it prints may show a granted value (R section 3.6, step 5).
        yield* secrets.register(admitted.secrets)
        const key = keyOf(admitted.plan)
        const known = declaration.protocol === "auto" ? yield* eras.recall(key) : undefined
        const [opened, agreed, era] = yield* attempt(planFor(admitted.plan, known), known, false).pipe(
          // It may be what was remembered that failed; the next start finds out anew.
          Effect.tapError(() => (known === undefined ? Effect.void : eras.forget(key)))
        )
        if (declaration.protocol === "auto" && declaration.inProcess !== true) {
          yield* eras.remember(key, era)
        }
        const { connection, notices, requests, wire } = opened
        const { pinned } = declaration.trust
        if (pinned !== undefined && admitted.comparePin) {
          const found = Pins.differences(pinned, {
            protocolVersion: agreed.revision.version,
            serverName: agreed.info.name,
            serverVersion: agreed.info.version,
            ...(admitted.launchFingerprint === undefined ? {} : { transportFingerprint: admitted.launchFingerprint })
          })
          if (found.length > 0) return yield* new StartError(mismatch(declaration, found, "initialize"))
        }
        opened.begin(yield* Spans.openSession)
        const cache = ResultCache.make()
        let logLevel: string | undefined
        const ask = yield* Asking.make({
          declaration,
          connection,
          revision: agreed.revision,
          capabilities: agreed.capabilities,
          requests,
          cache,
          redact: secrets.redactText,
          logLevel: () => logLevel,
          clock,
          jitter: random.fraction
        })
        const lists = Lists.make(ask, server, () => clock.unsafeCurrentTimeMillis())
        notices.listen((notice) => {
          // What it names may be shown otherwise than it was asked for: nothing that was read counts any more.
          if (notice._tag === "Updated") cache.drop("resources/read")
          else if (notice._tag === "ListChanged") {
            lists.expire(notice.surface)
            if (notice.surface === "resources") cache.drop("resources/read")
          }
        })
        const first = Notices.declares(agreed.capabilities, "tools")
          ? yield* Spans.operation(
              opened.telemetry,
              "tools/list",
              lists.read("tools", { remainingMs: remaining, deadlineField: "startup_timeout_secs" })
            )
          : noTools
        if (
          first.items.length === 0 &&
          !Notices.declares(agreed.capabilities, "resources") &&
          !Notices.declares(agreed.capabilities, "prompts")
        ) {
          return yield* new StartError({
            code: "SIGIL_ZERO_SURFACE",
            reason: "zero_surface",
            text: `The server '${server}' offers no tools, resources or prompts.`,
            where: { server, operation: "tools/list" }
          })
        }
        const subscriptions = yield* Subscriptions.make({
          connection,
          revision: agreed.revision,
          capabilities: agreed.capabilities,
          notices,
          clock,
          jitter: random.fraction
        })
        opened.route(subscriptions)
        const carrier = era === "sse" ? "sse" : admitted.plan._tag === "remote" ? admitted.plan.transport : "stdio"
        if ((carrier === "sse" || carrier === "ws") && agreed.revision.era === "handshake") {
          yield* Heartbeat.start(connection)
        }
        const generation: Generation = {
          id,
          server,
          declaration,
          networkEffect: admitted.coverage?.networkEffect ?? "unknown",
          connection,
          ask,
          subscriptions,
          setLogLevel: (level) => {
            logLevel = level
          },
          ...agreed,
          launchFingerprint: admitted.launchFingerprint,
          lists,
          get tools() {
            return (lists.known("tools") ?? noTools).items
          },
          get warnings() {
            return [...declaration.warnings, ...(lists.known("tools") ?? noTools).warnings]
          },
          readyMs: clock.unsafeCurrentTimeMillis() - begun,
          wire,
          notices,
          cleanup
        }
        return generation
      })

      const scope = yield* Scope.fork(outer, ExecutionStrategy.sequential)
      yield* Scope.addFinalizer(
        scope,
        Effect.suspend(() => Deferred.succeed(cleanup, combine(reports)))
      )
      const inOwnScope = Effect.flatMap(Scope.fork(scope, ExecutionStrategy.sequential), (own) =>
        Effect.tap(Effect.exit(restore(Scope.extend(start, own))), (exit) =>
          isForgotten(exit) ? Scope.close(own, exit) : Effect.void
        )
      )
      const first = yield* inOwnScope
      // A session that the server forgot is begun anew, once (K section 9.9), inside the same budget.
      const exit = isForgotten(first) && remaining() > 0 ? yield* inOwnScope : first
      if (Exit.isSuccess(exit)) {
        yield* Effect.ignore(record("post_spawn", "registered"))
        return exit.value
      }
      yield* Scope.close(scope, exit)
      const failure = Cause.failureOption(exit.cause)
      // A defect or an interruption stays what it is.
      if (Option.isNone(failure)) return yield* Effect.failCause(exit.cause as Cause.Cause<never>)
      const report = seen === undefined ? undefined : yield* Deferred.await(cleanup)
      yield* Effect.ignore(record("post_spawn", "startup_failed", failure.value.code))
      return yield* startError(failure.value, admitted, host, secrets, seen, report)
    })
  )

/** Whether a start failed because the server does not know the session that it began. */
const isForgotten = (exit: Exit.Exit<unknown, StartFailure>): boolean =>
  Exit.isFailure(exit) && exit.cause._tag === "Fail" && exit.cause.error.reason === "session_expired"

const noTools: Listing = { items: [], warnings: [] }

/** The plan for a server that is known to speak HTTP with two endpoints. */
const planFor = (plan: Plan, era: Era | undefined): Plan =>
  plan._tag === "remote" && plan.transport === "streamable_http" && era === "sse" ? { ...plan, transport: "sse" } : plan

/** Whether an address has no stream of events: what it said before says more. */
const isNoStream = (failure: StartFailure): boolean => {
  const status = failure.details?.["http_status"]
  return failure.reason === "unexpected_content_type" || status === 400 || status === 404 || status === 405
}

/** What to try next, when an attempt says that another one may go better; each way is tried once. */
const nextAttempt = (
  made: Either.Either<Attempt.Attempt, StartFailure>,
  plan: Plan,
  era: Era | undefined,
  again: boolean
):
  | {
      readonly plan: Plan
      readonly era: Era | undefined
      readonly again: boolean
      readonly because?: StartFailure | undefined
    }
  | undefined => {
  if (Either.isRight(made)) {
    const { outcome } = made.right
    return outcome._tag === "Agreed"
      ? undefined
      : { plan: planFor(plan, outcome.era), era: outcome.era, again: true, because: outcome.because }
  }
  // What was remembered does not hold any more: found out anew, once.
  if (era === undefined || era === "stateless" || again) return undefined
  const failure = made.left
  const status = failure.details?.["http_status"]
  const about = failure._tag === "RemoteError" || failure.reason === "unsupported_protocol_version"
  if (!about && !(typeof status === "number" && status >= 400 && status < 500 && status !== 401 && status !== 403))
    return undefined
  const fresh = plan._tag === "remote" && plan.transport === "sse" && era === "sse"
  return { plan: fresh ? { ...plan, transport: "streamable_http" } : plan, era: undefined, again: true }
}

/** What the end record says of a generation's manners: counts and reasons of sigil's own, nothing a server wrote. */
const lastWords = (connection: Connection.Connection | undefined, report: CleanupReport) => {
  const oddities = connection?.oddities
  return {
    mcp_end_reason: connection?.terminal()?.end.reason ?? "closed",
    mcp_noise_lines: String(oddities?.noiseLines ?? 0),
    mcp_odd_messages: String(oddities?.strayMessages ?? 0),
    mcp_idle_messages: String(oddities?.idleMessages ?? 0),
    mcp_declined_methods: String(oddities?.declined.size ?? 0),
    ...(report.complete ? {} : { mcp_survivor_pids: report.survivors.map(({ pid }) => pid).join(",") })
  }
}

/** The failure of a start with everything that helps: stderr, lacking variables, what cleanup left. */
const startError = (
  failure: StartFailure,
  admitted: Admitted,
  host: Context.Tag.Service<typeof HostEnvironment>,
  secrets: Context.Tag.Service<typeof Secrets>,
  wire: Wire | undefined,
  report: CleanupReport | undefined
): StartError => {
  const server = admitted.declaration.name
  const stderr = secrets.redactText(wire?.stderr().text ?? "")
  const timedOut = failure.code === "SIGIL_CALL_TIMEOUT"
  const help = explain(stderr, admitted.plan._tag === "stdio" ? Object.keys(admitted.plan.env) : [], host.names())
  const code = timedOut
    ? "SIGIL_START_TIMEOUT"
    : failure.code === "SIGIL_CONNECTION_LOST" || failure.code === "SIGIL_REMOTE_ERROR"
      ? "SIGIL_START_FAILED"
      : failure.code
  const headline = timedOut
    ? `The server '${server}' was not ready within ${admitted.declaration.startupTimeoutMs} ms (waiting for '${failure.where?.operation ?? "initialize"}').`
    : failure.text
  return new StartError({
    code,
    reason: failure.reason,
    text: secrets.redactText(headline) + help.text,
    fix:
      help.fix ??
      (timedOut
        ? `Raise ${admitted.declaration.format === "toml" ? "startup_timeout_secs" : "startupTimeoutSecs (or timeout, in ms)"} of '${server}'.`
        : failure.fix === undefined
          ? admitted.plan._tag === "remote" && code === "SIGIL_START_FAILED"
            ? `Check whether the server is up and whether the URL of '${server}' is right.`
            : undefined
          : secrets.redactText(failure.fix)),
    where: { ...failure.where, server },
    details: {
      // Made of JSON: numbers, names, what the server sent in place of what was asked.
      ...(secrets.redactJson((failure.details ?? {}) as Json, "schema") as object),
      stderr_tail: help.tail,
      lacking_variables: help.lacking,
      ...(report === undefined
        ? {}
        : {
            cleanup_completed: report.complete,
            survivors: report.survivors,
            ...(report.complete ? {} : { cleanup_reason: report.reason ?? "unconfirmed" })
          })
    }
  })
}

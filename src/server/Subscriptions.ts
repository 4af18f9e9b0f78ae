/**
 * Hearing of changes: `subscriptions/listen` of the stateless revision, `resources/subscribe` of the others (K section
 * 9.16).
 *
 * A listen request stays open for the life of the generation. Its filter cannot change, so another resource means
 * another request: the new one is open before the old one is given up. A stream that breaks is opened again, later
 * each time and spread; what may have been missed meanwhile counts as announced. A server that does not know the
 * method is not asked again.
 */
import type * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { isJsonObject, type JsonObject, own } from "../base/Json.ts"
import { SECOND_MS } from "../base/Units.ts"
import type { Revision } from "../protocol/Revision.ts"
import type { Connection } from "./Connection.ts"
import type { Notices } from "./Notices.ts"
import type { RequestOptions } from "./Request.ts"
import type { ConnectionError, RemoteError } from "./ServerError.ts"

/** Wait before a broken stream is opened again, ms; doubled each time it broke soon, and spread by a fifth. */
const FIRST_DELAY_MS = SECOND_MS
const MAX_DELAY_MS = 60 * SECOND_MS
/** A stream that lived this long begins to count anew, ms. */
const SETTLED_MS = 30 * SECOND_MS
/** Failures in a row after which the generation goes on without announcements. */
const MAX_FAILURES = 8
/** How long a new listen request may take to be acknowledged before the old one goes, ms. */
const ACKNOWLEDGE_MS = 5 * SECOND_MS

/** Announcements of one generation. */
export interface Subscriptions {
  /** Hears of changes of one resource for the length of the scope. */
  readonly watch: (
    uri: string,
    options: RequestOptions
  ) => Effect.Effect<void, ConnectionError | RemoteError, Scope.Scope>
  /** A notification of the server that belongs to listening; whether it was one. */
  readonly take: (method: string) => boolean
  /** Announcements may have been lost: everything that they could have been about counts as announced. */
  readonly missed: () => void
}

/** What listening builds on. */
export interface Facts {
  readonly connection: Connection
  readonly revision: Revision
  readonly capabilities: JsonObject
  readonly notices: Notices
  readonly clock: Clock.Clock
  readonly jitter: () => number
}

const surfaces = ["tools", "prompts", "resources"] as const

/** The surfaces whose changes the server says it announces. */
const announced = (capabilities: JsonObject): ReadonlyArray<(typeof surfaces)[number]> =>
  surfaces.filter((surface) => {
    const capability = own(capabilities, surface)
    return isJsonObject(capability) && own(capability, "listChanged") === true
  })

/** The filter for what the server says it announces. */
const filterOf = (capabilities: JsonObject, uris: ReadonlyArray<string>): JsonObject => ({
  ...Object.fromEntries(announced(capabilities).map((surface) => [`${surface}ListChanged`, true])),
  ...(uris.length === 0 ? {} : { resourceSubscriptions: uris })
})

/** Tells of everything that may have been announced unheard. */
const announceAll = ({ capabilities, notices }: Facts, uris: Iterable<string>): void => {
  for (const surface of announced(capabilities)) notices.take(`notifications/${surface}/list_changed`, {})
  for (const uri of uris) notices.take("notifications/resources/updated", { uri })
}

/** Listens in the scope; opens nothing where nothing is announced. */
export const make = (facts: Facts): Effect.Effect<Subscriptions, never, Scope.Scope> =>
  facts.revision.era === "stateless" ? listening(facts) : Effect.succeed(subscribing(facts))

const subscribing = (facts: Facts): Subscriptions => {
  const { connection } = facts
  const users = new Map<string, number>()
  return {
    take: () => false,
    missed: () => announceAll(facts, users.keys()),
    watch: (uri, options) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const count = users.get(uri) ?? 0
          users.set(uri, count + 1)
          const forget = Effect.sync(() => leave(users, uri))
          if (count === 0) {
            yield* restore(connection.request("resources/subscribe", { uri }, options)).pipe(
              Effect.onError(() => forget)
            )
          }
          const unsubscribe = connection
            .request("resources/unsubscribe", { uri }, { ...options, operation: "resources/unsubscribe" })
            .pipe(Effect.interruptible, Effect.timeout("1 second"), Effect.ignore)
          yield* Effect.addFinalizer(() => Effect.flatMap(forget, (last) => (last ? unsubscribe : Effect.void)))
        })
      )
  }
}

/** One user less; whether it was the last. */
const leave = (users: Map<string, number>, uri: string): boolean => {
  const rest = (users.get(uri) ?? 1) - 1
  if (rest > 0) users.set(uri, rest)
  else users.delete(uri)
  return rest <= 0
}

const listening = (facts: Facts): Effect.Effect<Subscriptions, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { capabilities, clock, connection, jitter } = facts
    const scope = yield* Effect.scope
    const users = new Map<string, number>()
    let current: Fiber.RuntimeFiber<void> | undefined
    let acknowledged: Deferred.Deferred<void> | undefined
    let refused = false
    /** A broken stream is being opened again; what was missed is told once it is there. */
    let reopening = false

    const listen = (filter: JsonObject, known: Deferred.Deferred<void>): Effect.Effect<void> => {
      const attempt = (failures: number): Effect.Effect<void> =>
        Effect.suspend(() => {
          const begun = clock.unsafeCurrentTimeMillis()
          return Effect.flatMap(
            Effect.exit(
              connection.request(
                "subscriptions/listen",
                { notifications: filter },
                {
                  deadlineMs: Number.POSITIVE_INFINITY,
                  operation: "subscriptions/listen",
                  deadlineField: "",
                  background: true,
                  standing: true,
                  onTimeout: "keep",
                  quietLate: true
                }
              )
            ),
            (exit) => {
              Deferred.unsafeDone(known, Exit.void)
              if (connection.terminal() !== undefined) return Effect.void
              // A server that answered with an error does not offer it; asking again would only be noise.
              if (Exit.isFailure(exit) && isRefusal(exit)) {
                refused = true
                return Effect.void
              }
              const lived = clock.unsafeCurrentTimeMillis() - begun >= SETTLED_MS
              const made = lived ? 1 : failures + 1
              if (made > MAX_FAILURES) return Effect.void
              const spread = 1 + 0.2 * (2 * jitter() - 1)
              const wait = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (made - 1)) * spread
              return Effect.zipRight(
                Effect.sleep(Duration.millis(wait)),
                Effect.suspend(() => {
                  reopening = true
                  return attempt(made)
                })
              )
            }
          )
        })
      return attempt(0)
    }
    const renew = Effect.gen(function* () {
      const filter = filterOf(capabilities, [...users.keys()])
      const old = current
      if (Object.keys(filter).length === 0 || refused) {
        current = undefined
      } else {
        // One at a time: an acknowledgement does not say here which request it is for.
        if (acknowledged !== undefined) yield* Effect.timeoutOption(Deferred.await(acknowledged), ACKNOWLEDGE_MS)
        const known = yield* Deferred.make<void>()
        acknowledged = known
        current = yield* Effect.forkIn(Effect.interruptible(listen(filter, known)), scope)
        if (old !== undefined || users.size > 0)
          yield* Deferred.await(known).pipe(Effect.timeoutOption(ACKNOWLEDGE_MS), Effect.asVoid)
      }
      if (old !== undefined) yield* Fiber.interruptFork(old)
    })
    const lock = yield* Effect.makeSemaphore(1)
    yield* renew
    return {
      take: (method) => {
        if (method !== "notifications/subscriptions/acknowledged") return false
        if (acknowledged !== undefined) Deferred.unsafeDone(acknowledged, Exit.void)
        if (reopening) announceAll(facts, users.keys())
        reopening = false
        return true
      },
      missed: () => announceAll(facts, users.keys()),
      watch: (uri) =>
        Effect.acquireRelease(
          lock.withPermits(1)(
            Effect.suspend(() => {
              const count = users.get(uri) ?? 0
              users.set(uri, count + 1)
              return count > 0 ? Effect.void : renew
            })
          ),
          () => lock.withPermits(1)(Effect.suspend(() => (leave(users, uri) ? renew : Effect.void)))
        ).pipe(Effect.asVoid)
    } satisfies Subscriptions
  })

const isRefusal = (exit: Exit.Failure<JsonObject, ConnectionError | RemoteError>): boolean => {
  const { cause } = exit
  if (cause._tag !== "Fail") return false
  const status = cause.error._tag === "ConnectionError" ? cause.error.details?.["http_status"] : 400
  return typeof status === "number" && status >= 400 && status < 500 && status !== 429
}

/**
 * The requests of one connection that wait for their answers.
 *
 * A standing request (`subscriptions/listen`) is open for the life of the connection; it counts neither as work that
 * somebody waits for nor as a suspect when the server misbehaves.
 */
import * as Effect from "effect/Effect"
import type { JsonObject } from "../base/Json.ts"
import type { Id } from "../protocol/JsonRpc.ts"
import type { Progress } from "./Progress.ts"
import type { Asker } from "./Request.ts"
import type { ConnectionError, RemoteError } from "./ServerError.ts"

/** One request under way. */
export interface Pending {
  readonly operation: string
  readonly background: boolean
  readonly standing: boolean
  readonly settle: (answer: Effect.Effect<JsonObject, ConnectionError | RemoteError>) => void
  readonly onProgress: ((progress: Progress) => void) | undefined
  /** Starts the deadline anew; absent when progress does not do that. */
  readonly extend: (() => void) | undefined
  /** Whose request it is. */
  readonly asker: Asker | undefined
  /** Lets the deadline stand still; what it returns lets it go on. */
  readonly pause: () => () => void
  progressAt: number
  latest: Progress | undefined
}

/** All of them. */
export interface PendingRequests {
  readonly add: (id: number, request: Pending) => void
  /** Takes a request out; whoever waits for quiet is told. */
  readonly remove: (id: number) => void
  /** The request of an id; one that came back as text counts. */
  readonly find: (id: Id) => readonly [id: number, request: Pending] | undefined
  readonly has: (id: Id) => boolean
  /** Those that are not standing. */
  readonly count: () => number
  /** The only one that is not standing. */
  readonly only: () => readonly [id: number, request: Pending] | undefined
  /** Whether what the server says now counts against somebody's request. */
  readonly inWindow: () => boolean
  /**
   * What a request of the server belongs to: the request whose answer carried it, else every open call, if one caller
   * made them all.
   */
  readonly askedBy: (about: Id | undefined) => ReadonlyArray<readonly [id: number, request: Pending]>
  /** Takes all out, settled by `settle`. */
  readonly clear: (settle: (request: Pending) => void) => void
  /** Completes when none is open that is not standing. */
  readonly idle: Effect.Effect<void>
}

/** None yet. */
export const make = (): PendingRequests => {
  const all = new Map<number, Pending>()
  let standing = 0
  let waiters: Array<() => void> = []
  const count = (): number => all.size - standing
  const quiet = (): void => {
    if (count() > 0 || waiters.length === 0) return
    const waiting = waiters
    waiters = []
    for (const resume of waiting) resume()
  }
  const keyOf = (id: Id): number => (typeof id === "number" ? id : Number(id))
  return {
    add: (id, request) => {
      all.set(id, request)
      if (request.standing) standing += 1
    },
    remove: (id) => {
      if (all.get(id)?.standing === true) standing -= 1
      all.delete(id)
      quiet()
    },
    find: (id) => {
      const key = keyOf(id)
      const found = all.get(key)
      return found === undefined || (typeof id === "string" && String(key) !== id) ? undefined : [key, found]
    },
    has: (id) => all.has(keyOf(id)),
    count,
    only: () => {
      if (count() !== 1) return undefined
      for (const entry of all) if (!entry[1].standing) return entry
      return undefined
    },
    inWindow: () => {
      for (const { background } of all.values()) if (!background) return true
      return false
    },
    askedBy: (about) => {
      const one = about === undefined ? undefined : all.get(keyOf(about))
      if (one !== undefined && about !== undefined) return [[keyOf(about), one]]
      const calls = [...all].filter(([, { asker }]) => asker !== undefined)
      return new Set(calls.map(([, { asker }]) => asker?.identity)).size === 1 ? calls : []
    },
    clear: (settle) => {
      for (const request of all.values()) settle(request)
      all.clear()
      standing = 0
      quiet()
    },
    idle: Effect.async((resume) => {
      if (count() === 0) return resume(Effect.void)
      const waiter = (): void => resume(Effect.void)
      waiters.push(waiter)
      return Effect.sync(() => {
        waiters = waiters.filter((one) => one !== waiter)
      })
    })
  }
}

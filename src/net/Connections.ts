/**
 * The connections of one client, kept while idle (spec section 6: 30 seconds, pinned to their set of addresses).
 *
 * One `undici.Client` per socket, which it gets from us and cannot replace: a connection that ended is gone, and the
 * next message dials, resolves and judges again. When a dial finds another set of addresses, connections to the old
 * set are not used any more.
 */
import * as Effect from "effect/Effect"
import type * as undici from "undici"
import { SECOND_MS } from "../base/Units.ts"
import type { Dialled } from "./Dial.ts"
import { type AwaitAnswer, dropInterim, MAX_RESPONSE_HEADER_BYTES } from "./InterimAnswers.ts"
import type { NetError } from "./NetError.ts"

/** How long an unused connection is kept. */
export const IDLE_MS = 30 * SECOND_MS
/** Idle connections kept at most; more are closed when their message is done. */
export const MAX_IDLE = 16

/** The socket ended before the message was written to it. An `Error`, because undici passes nothing else on. */
export class ConnectionGone extends Error {
  override readonly name = "ConnectionGone"
}

/** A connection that is free, or that one message has taken. */
export interface Kept {
  readonly client: undici.Client
  readonly pinned: string
  /** To be called before a message is written. */
  readonly awaitAnswer: AwaitAnswer
}

/** The connections of one client. */
export interface Connections {
  /** A free connection, now taken; `undefined` when there is none. */
  readonly take: () => Kept | undefined
  /** Gives a connection back after a whole answer. */
  readonly free: (kept: Kept) => void
  /** Closes a connection at once, with whatever is under way on it. */
  readonly drop: (kept: Kept, why: Error) => void
  /** Dials one more and leaves it free. Nothing is lost when this is interrupted. */
  readonly open: Effect.Effect<void, NetError>
  /** Closes everything. */
  readonly destroy: () => void
}

/** The connections of a client to one origin. `dial` runs once per connection. */
export const makeConnections = (
  Client: typeof undici.Client,
  origin: string,
  dial: Effect.Effect<Dialled, NetError>
): Connections => {
  const all = new Set<Kept>()
  let idle: Array<Kept> = []
  let current: string | undefined
  let closed = false

  const drop = (kept: Kept, why: Error): void => {
    all.delete(kept)
    idle = idle.filter((one) => one !== kept)
    kept.client.destroy(why, () => {})
  }
  const adopt = ({ socket, pinned }: Dialled): void => {
    if (closed) return void socket.destroy()
    let used = false
    const unused = (): void => void socket.destroy()
    socket.setTimeout(IDLE_MS, unused)
    const client = new Client(origin, {
      connect: (_options, callback) => {
        if (used || socket.destroyed) {
          return queueMicrotask(() => callback(new ConnectionGone("gone"), null))
        }
        used = true
        socket.off("timeout", unused).setTimeout(0)
        // Not at once: undici does not look at its queue again while it is still asking for the connection.
        queueMicrotask(() => callback(null, socket))
      },
      pipelining: 1,
      maxHeaderSize: MAX_RESPONSE_HEADER_BYTES,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      headersTimeout: 0,
      bodyTimeout: 0
    })
    const kept: Kept = { client, pinned, awaitAnswer: dropInterim(socket) }
    socket.once("close", () => drop(kept, new ConnectionGone("closed")))
    if (current !== pinned) for (const old of idle) drop(old, new ConnectionGone("moved"))
    current = pinned
    all.add(kept)
    idle.push(kept)
  }

  return {
    take: () => idle.pop(),
    free: (kept) => {
      if (!all.has(kept)) return
      if (kept.pinned === current && idle.length < MAX_IDLE) idle.push(kept)
      else drop(kept, new ConnectionGone("surplus"))
    },
    drop,
    open: Effect.map(dial, adopt),
    destroy: () => {
      closed = true
      for (const kept of all) drop(kept, new ConnectionGone("destroyed"))
    }
  }
}

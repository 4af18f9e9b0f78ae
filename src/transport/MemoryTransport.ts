/**
 * MCP inside one process: public, for tests and for servers that live in the host.
 *
 * A server is a function from its link to a handler. Messages cross as JSON text on a later microtask, so
 * nothing is shared by reference and ordering is that of a pipe.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Json } from "../base/Json.ts"
import type { CleanupReport } from "../platform/CleanupReport.ts"
import { stringify } from "../protocol/Codec.ts"
import { type OpenRequest, type Receiver, Transport, type Wire, type WireEnd } from "./Transport.ts"
import { TransportError } from "./TransportError.ts"

/** The server's end of a link. */
export interface MemoryLink {
  /** Sends one message to the host. */
  readonly send: (message: Json) => void
  /** Sends one line as it is, well-formed or not. */
  readonly sendText: (text: string) => void
  /** Ends the connection as a dying server would. */
  readonly end: (reason?: string) => void
  /** Writes to what the host keeps as the server's stderr. */
  readonly log: (text: string) => void
  readonly request: OpenRequest
}

/** An in-process server: called once per connection, returns what takes the host's messages. */
export type MemoryServer = (link: MemoryLink) => {
  /** One message of the host, as text. */
  readonly receive: (text: string) => void
  /** The host closed the connection. */
  readonly close?: () => void
}

const connect = (server: MemoryServer, request: OpenRequest): Wire => {
  const begun = performance.now()
  let receiver: Receiver | undefined
  let early: Array<string> = []
  let ended: WireEnd | undefined
  let stderr = ""
  const listeners = new Set<(text: string) => void>()

  const finish = (end: WireEnd): void => {
    if (ended !== undefined) return
    ended = end
    receiver?.end(end)
  }
  const arrive = (text: string): void => {
    if (ended !== undefined) return
    if (receiver === undefined) early.push(text)
    else receiver.message(text, Buffer.byteLength(text))
  }
  const toHost = (text: string): void => queueMicrotask(() => arrive(text))
  const handler = server({
    send: (message) => toHost(stringify(message)),
    sendText: toHost,
    end: (reason) =>
      queueMicrotask(() => finish({ reason: "connection_closed", text: reason ?? "The server ended the connection." })),
    log: (text) => {
      stderr += text
      for (const listener of listeners) listener(text)
    },
    request
  })
  const report: CleanupReport = { complete: true, survivors: [], steps: [], durationMs: performance.now() - begun }

  return {
    listen: (given) => {
      receiver = given
      const kept = early
      early = []
      for (const text of kept) if (!given.message(text, Buffer.byteLength(text))) break
      if (ended !== undefined) given.end(ended)
    },
    send: (text) => {
      if (ended !== undefined) return false
      // As in a pipe: what was written before the end still arrives.
      queueMicrotask(() => handler.receive(text))
      return true
    },
    backlogBytes: () => 0,
    drained: Effect.void,
    openWindow: () => undefined,
    stderr: () => ({ text: stderr, totalBytes: Buffer.byteLength(stderr) }),
    onStderr: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close: Effect.sync(() => {
      const open = ended === undefined
      finish({ reason: "closed", text: "sigil closed the connection." })
      if (open) queueMicrotask(() => handler.close?.())
      return report
    })
  }
}

/** Opens the in-process server of the requested name. */
export const make = (servers: { readonly [name: string]: MemoryServer }): Context.Tag.Service<typeof Transport> =>
  Transport.of({
    open: (request) => {
      const server = Object.hasOwn(servers, request.server) ? servers[request.server] : undefined
      return server === undefined
        ? new TransportError({
            code: "SIGIL_SPAWN_FAILED",
            reason: "unknown_memory_server",
            text: `No in-process server is named '${request.server}'.`,
            where: { server: request.server, operation: "open" }
          })
        : Effect.acquireRelease(
            Effect.sync(() => connect(server, request)),
            (wire) => wire.close
          )
    }
  })

/**
 * A transport that opens the in-process server of the same name.
 *
 * A name that is not in `servers` fails with `SIGIL_SPAWN_FAILED`, reason `unknown_memory_server`.
 */
export const layer = (servers: { readonly [name: string]: MemoryServer }): Layer.Layer<Transport> =>
  Layer.succeed(Transport, make(servers))

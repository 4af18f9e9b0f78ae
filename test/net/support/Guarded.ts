/** A guarded client over test layers, and loopback servers for it. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as http from "node:http"
import * as https from "node:https"
import * as net from "node:net"
import { AuditLog } from "../../../src/audit/AuditLog.ts"
import type { AuditEntry } from "../../../src/audit/AuditRecord.ts"
import { auditRefused } from "../../../src/audit/AuditError.ts"
import type { DestinationRules } from "../../../src/net/DestinationRules.ts"
import * as GuardedClient from "../../../src/net/GuardedClient.ts"
import type { NetError } from "../../../src/net/NetError.ts"
import * as Presenter from "../../../src/net/Presenter.ts"
import * as Resolver from "../../../src/net/Resolver.ts"
import * as HostEnvironment from "../../../src/platform/HostEnvironment.ts"
import * as Random from "../../../src/platform/Random.ts"

/** The name that tests give to a loopback server; no real resolver knows it. */
export const HOST = "dev.test"
/** Rules that admit `HOST` on this machine. */
export const loopback: DestinationRules = {
  allowedPrivateHosts: [HOST],
  allowedPrivateCidrs: ["127.0.0.0/8"],
  blockedDomains: [],
  allowedDomains: []
}

/** What a harness is given. */
export interface Given {
  /** What `HOST`, or any name, resolves to; 127.0.0.1 by default. */
  readonly resolve?: (host: string) => ReadonlyArray<string> | undefined
  /** Runs before a name is resolved, with the number of questions so far. */
  readonly beforeResolve?: (count: number) => Effect.Effect<void>
  readonly variables?: { readonly [name: string]: string }
  /** Whether the audit log takes anything. */
  readonly writable?: boolean
  readonly present?: (disclosure: Presenter.Disclosure) => Effect.Effect<void, NetError>
  readonly trusted?: ReadonlyArray<string>
}

/** What a harness saw. */
export interface Seen {
  readonly records: Array<AuditEntry>
  readonly shown: Array<Presenter.Disclosure>
  /** Names that were resolved. */
  readonly asked: Array<string>
  /** All steps in their order: `record KIND`, `present DATA`, `resolve HOST`. */
  readonly steps: Array<string>
  readonly layer: Layer.Layer<GuardedClient.GuardedClient>
}

/** A client over layers that write down what they are asked for. */
export const harness = (given: Given = {}): Seen => {
  const records: Array<AuditEntry> = []
  const shown: Array<Presenter.Disclosure> = []
  const asked: Array<string> = []
  const steps: Array<string> = []
  const appendAll = (entries: ReadonlyArray<AuditEntry>) =>
    given.writable === false
      ? Effect.fail(auditRefused("audit.jsonl", "no_space", "no space is left"))
      : Effect.sync(() => {
          // As the log keeps them: the text of a payload counts where there is one.
          records.push(
            ...entries.map((entry) =>
              entry.payloadText === undefined ? entry : { ...entry, payload: JSON.parse(entry.payloadText) }
            )
          )
          for (const { kind } of entries) steps.push(`record ${kind}`)
        })
  const audit = Layer.succeed(AuditLog, {
    append: (entry) => appendAll([entry]),
    appendAll,
    note: () => {}
  })
  const presenter = Presenter.layerTest(shown, (disclosure) => {
    steps.push(`present ${disclosure.data}`)
    return given.present?.(disclosure) ?? Effect.void
  })
  const resolver = Resolver.layerTest((host) => {
    asked.push(host)
    steps.push(`resolve ${host}`)
    return given.resolve === undefined ? ["127.0.0.1"] : given.resolve(host)
  })
  const gated = Layer.map(resolver, (context) => {
    const { resolve } = Context.get(context, Resolver.Resolver)
    return Context.make(Resolver.Resolver, {
      resolve: (host) => Effect.zipRight(given.beforeResolve?.(asked.length) ?? Effect.void, resolve(host))
    })
  })
  const layer = GuardedClient.layerWith({ trusted: given.trusted }).pipe(
    Layer.provide(
      Layer.mergeAll(
        audit,
        presenter,
        gated,
        Random.layerTest,
        HostEnvironment.layerTest({ variables: given.variables ?? {} })
      )
    )
  )
  return { records, shown, asked, steps, layer }
}

/** Opens a client for a port of this machine. */
export const openClient = (port: number, more: Partial<GuardedClient.Profile> = {}) =>
  Effect.flatMap(GuardedClient.GuardedClient, (client) =>
    client.open({
      server: "demo",
      url: `http://${HOST}:${port}/mcp`,
      headers: [],
      rules: loopback,
      proxyMode: "environment",
      connectTimeoutMs: 5_000,
      ...more
    })
  )

/** A message to a port of this machine. */
export const post = (port: number, body = "{}", path = "/mcp"): GuardedClient.HttpRequest => ({
  method: "POST",
  url: `http://${HOST}:${port}${path}`,
  headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
  body,
  data: "request"
})

const listening = <S extends net.Server>(server: S, sockets: Set<{ destroy: () => void }>) =>
  Effect.acquireRelease(
    Effect.async<number>((resume) => {
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
      })
    }),
    () =>
      Effect.async<void>((resume) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resume(Effect.void))
      })
  )

/** Any server on a loopback port, closed with the scope. `connections` counts. */
export const serving = (server: net.Server) =>
  Effect.gen(function* () {
    const sockets = new Set<{ destroy: () => void }>()
    const seen = { port: 0, connections: 0 }
    server.on("connection", (socket: net.Socket) => {
      seen.connections += 1
      sockets.add(socket)
      socket.on("error", () => {})
    })
    seen.port = yield* listening(server, sockets)
    return seen
  })

/** An HTTP server. */
export const serveHttp = (handler: http.RequestListener) => serving(http.createServer(handler))

/** An HTTPS server. */
export const serveTls = (
  { cert, key }: { readonly cert: string; readonly key: string },
  handler: http.RequestListener
) => serving(https.createServer({ cert, key }, handler))

/** A server that speaks for itself: what comes is dropped, `talk` writes. */
export const serveRaw = (talk: (socket: net.Socket, request: string) => void) =>
  serving(
    net.createServer((socket) => {
      socket.on("data", (bytes) => talk(socket, bytes.toString("latin1")))
    })
  )

/** Gives the whole body of a request to `then`. */
export const withBody = (request: http.IncomingMessage, then: (body: string) => void): void => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => then(Buffer.concat(chunks).toString()))
}

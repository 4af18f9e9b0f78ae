/** A collector on 127.0.0.1 for tests: keeps what it gets, answers as it is told. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { gunzipSync } from "node:zlib"

/** One request that arrived whole. */
export interface Got {
  readonly method: string
  readonly path: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: unknown
}

/** How a request is answered; `silent` never answers. */
export type Reply =
  | { readonly status: number; readonly headers?: { readonly [name: string]: string }; readonly body?: string }
  | "silent"

/** A running collector. */
export interface Receiver {
  readonly url: string
  readonly got: ReadonlyArray<Got>
  /** Completes when this many requests have arrived. */
  readonly count: (wanted: number) => Effect.Effect<void>
}

const ok: Reply = { status: 200, headers: { "content-type": "application/json" }, body: "{}" }

/** Starts a collector; `reply` is asked for each request, counted from 0. */
export const receiver = (
  reply: (index: number, got: Got) => Reply = () => ok
): Effect.Effect<Receiver, never, Scope.Scope> =>
  Effect.gen(function* () {
    const got: Array<Got> = []
    const waiting: Array<{ readonly wanted: number; readonly done: Deferred.Deferred<void> }> = []
    const server = http.createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const raw = Buffer.concat(chunks)
        const plain = request.headers["content-encoding"] === "gzip" ? gunzipSync(raw) : raw
        const one: Got = {
          method: request.method ?? "",
          path: request.url ?? "",
          headers: request.headers,
          body: JSON.parse(plain.toString("utf8"))
        }
        const answer = reply(got.length, one)
        got.push(one)
        for (const { wanted, done } of waiting) if (got.length >= wanted) Deferred.unsafeDone(done, Effect.void)
        if (answer === "silent") return
        response.writeHead(answer.status, answer.headers ?? {})
        response.end(answer.body ?? "")
      })
    })
    yield* Effect.acquireRelease(
      Effect.async<void>((resume) => {
        server.listen(0, "127.0.0.1", () => resume(Effect.void))
      }),
      () =>
        Effect.async<void>((resume) => {
          server.closeAllConnections()
          server.close(() => resume(Effect.void))
        })
    )
    // A TCP server has an address object once it listens.
    const { port } = server.address() as AddressInfo
    return {
      url: `http://127.0.0.1:${port}`,
      got,
      count: (wanted) =>
        Effect.flatMap(Deferred.make<void>(), (done) => {
          waiting.push({ wanted, done })
          return got.length >= wanted ? Effect.void : Deferred.await(done)
        })
    }
  })

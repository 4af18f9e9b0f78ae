/** Opens one in-process server as a wire and a connection, for tests below the registry. */
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import { GenerationId } from "../../src/base/Ids.ts"
import * as Connection from "../../src/server/Connection.ts"
import type { MemoryLink } from "../../src/transport/MemoryTransport.ts"
import * as MemoryTransport from "../../src/transport/MemoryTransport.ts"
import { Transport } from "../../src/transport/Transport.ts"
import type { Received } from "./FakeServer.ts"

const plan = { _tag: "stdio", file: "/bin/true", command: "true", args: [], cwd: "/", env: {}, graceMs: 500 } as const

/** A connection to an in-process server, without a handshake. */
export const connect = (server: MemoryTransport.MemoryServer, options: Partial<Connection.ConnectionOptions> = {}) =>
  Effect.gen(function* () {
    const transport = yield* Transport
    const wire = yield* transport.open({ server: "fake", generation: GenerationId("g-1"), plan })
    return yield* Connection.make(wire, {
      server: "fake",
      handlers: new Map(),
      onNotification: () => undefined,
      mayLeave: () => true,
      redact: (text) => text,
      redactStream: () => (text) => text,
      stdoutNoise: "refuse",
      onTimeout: "close",
      changedVariable: () => undefined,
      standing: { clientInfo: { name: "sigil", version: "0" }, capabilities: {} },
      telemetry: {
        server: "fake",
        generation: "g-1",
        transport: "pipe",
        protocolVersion: () => undefined,
        propagate: false
      },
      ...options
    })
  }).pipe(Effect.provide(MemoryTransport.layer({ fake: server })))

/** Options of a request with a deadline of 30 s. */
export const request = (operation: string, deadlineMs = 30_000): Connection.RequestOptions => ({
  operation,
  deadlineMs,
  deadlineField: "tool_timeout_secs"
})

/** A server that never answers by itself; the test speaks through the link. */
export const silent = (received: Array<Received> = []) => {
  const box: { link?: MemoryLink } = {}
  const server = (link: MemoryLink) => {
    box.link = link
    return { receive: (line: string) => received.push(JSON.parse(line) as Received) }
  }
  const link = (): MemoryLink => {
    assert.isDefined(box.link)
    return box.link
  }
  return { server, link, received }
}
/** Lets what is under way arrive. */
export const settle = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

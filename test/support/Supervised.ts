/** What tests of supervised servers share: a server that can be told to die, and one runtime with it. */
import * as Effect from "effect/Effect"
import type { JsonObject } from "../../src/base/Json.ts"
import { Registry } from "../../src/server/Registry.ts"
import { headless } from "../../src/tools/Caller.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"
import type { MemoryLink } from "../../src/transport/MemoryTransport.ts"
import { declared, type FakeRuntime, withFakes } from "./FakeRuntime.ts"
import { type FakeParts, fakeServer } from "./FakeServer.ts"

/** A server that can be told to die, with everything that was opened of it. */
export const mortal = (parts: FakeParts = {}) => {
  const links: Array<MemoryLink> = []
  const closed: Array<string> = []
  return {
    links,
    closed,
    server: (link: MemoryLink) => {
      links.push(link)
      const handler = fakeServer(parts)(link)
      return { ...handler, close: () => closed.push(link.request.generation) }
    }
  }
}

export const registry = <A, E, R>(use: (registry: Registry["Type"]) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(Registry, use)
export const call = (tool = "echo", args: JsonObject = {}) =>
  Effect.flatMap(Pipeline, (pipeline) => pipeline.call(headless("test"), { server: "a", tool, args }))
export const one = (server: FakeRuntime["servers"][string], more: Parameters<typeof declared>[1] = {}) =>
  withFakes({ servers: { a: server }, entries: [declared("a", more)] })
/** Lets everything happen that needs no time. */
export const rest = Effect.repeatN(Effect.yieldNow(), 50).pipe(
  Effect.zipRight(Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))),
  Effect.repeatN(3)
)
export const silent = { methods: { initialize: () => undefined } } satisfies FakeParts

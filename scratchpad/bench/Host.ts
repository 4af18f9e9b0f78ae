/** One server over the whole of sigil, for measurements: what a library user would compose. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import type { JsonObject } from "../../src/base/Json.ts"
import * as Sigil from "../../src/runtime/Sigil.ts"
import { Registry } from "../../src/server/Registry.ts"
import { headless } from "../../src/tools/Caller.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"

/** Starts the server and returns its calls. */
export const open = async (server: { readonly command: string; readonly args: ReadonlyArray<string> }) => {
  const declaration = JSON.stringify({
    mcpServers: { bench: { ...server, trust: { approval_default: "allow" } } }
  })
  const layer = Sigil.layer({ mcpConfig: [declaration], strict: true }).pipe(
    Layer.provideMerge(HostEnvironment.layer)
  )
  const runtime = ManagedRuntime.make(layer)
  const pipeline = await runtime.runPromise(Pipeline)
  const registry = await runtime.runPromise(Registry)
  await runtime.runPromise(registry.activate("bench"))
  const caller = headless("bench")
  return {
    /** Calls `tool` with each of the arguments, at most `inFlight` at a time, in fibers of one program. */
    burst: (tool: string, args: ReadonlyArray<JsonObject>, inFlight: number) =>
      runtime.runPromise(
        Effect.gen(function* () {
          let next = 0
          const worker = Effect.gen(function* () {
            while (next < args.length) {
              yield* pipeline.call(caller, { server: "bench", tool, args: args[next++] ?? {} })
            }
          })
          yield* Effect.all(
            Array.from({ length: inFlight }, () => worker),
            { concurrency: "unbounded", discard: true }
          )
        })
      ),
    close: () => runtime.dispose()
  }
}

/** One remote server over the whole of sigil, for measurements: what a library user gets from `Sigil.layer`. */
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import type { JsonObject } from "../../src/base/Json.ts"
import * as Library from "../../src/runtime/Library.ts"
import { Registry } from "../../src/server/Registry.ts"
import { headless } from "../../src/tools/Caller.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"

/** Connects to the server at `url` and returns its calls; `config` is a sigil.toml that admits its address. */
export const open = async (url: string, config: string) => {
  const declaration = JSON.stringify({ mcpServers: { bench: { url, trust: { approval_default: "allow" } } } })
  const runtime = ManagedRuntime.make(Library.layer({ mcpConfig: [declaration], strict: true, config }))
  const close = () => runtime.dispose()
  try {
    const pipeline = await runtime.runPromise(Pipeline)
    const registry = await runtime.runPromise(Registry)
    await runtime.runPromise(registry.activate("bench"))
    const caller = headless("bench")
    const burst = (tool: string, args: ReadonlyArray<JsonObject>, inFlight: number) =>
      runtime.runPromise(
        Effect.gen(function* () {
          const times: Array<number> = []
          let next = 0
          const worker = Effect.gen(function* () {
            while (next < args.length) {
              const begun = performance.now()
              yield* pipeline.call(caller, { server: "bench", tool, args: args[next++] ?? {} })
              times.push(performance.now() - begun)
            }
          })
          yield* Effect.all(
            Array.from({ length: inFlight }, () => worker),
            { concurrency: "unbounded", discard: true }
          )
          return times
        })
      )
    /** `burst` calls `tool` with each of the arguments, at most `inFlight` at a time; the time of each, ms. */
    return { burst, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Many eager servers over the whole of sigil, for measurements: what a library user would compose. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import * as Terminal from "../../src/platform/Terminal.ts"
import * as Sigil from "../../src/runtime/Sigil.ts"
import { Registry } from "../../src/server/Registry.ts"

/** Reads the servers of a sigil.toml; starts none. */
export const open = async (config: string) => {
  const runtime = ManagedRuntime.make(
    Sigil.layer({ config }).pipe(Layer.provide(Terminal.layer), Layer.provide(HostEnvironment.layer))
  )
  const registry = await runtime.runPromise(Registry)
  return {
    start: () =>
      runtime.runPromise(
        Effect.map(registry.startEager, ({ ready, failed }) => ({
          ready: ready.length,
          /** The longest start, counted from its turn as its budget is. */
          slowestMs: Math.max(0, ...ready.map(({ readyMs }) => readyMs)),
          failures: failed.map(({ failure }) => failure.code)
        }))
      ),
    /** Ends all and lets the runtime go; how many ends could not be confirmed. */
    stop: async () => {
      const cleanups = await runtime.runPromise(registry.closeAll)
      await runtime.dispose()
      return cleanups.filter(({ report }) => !report.complete).length
    }
  }
}

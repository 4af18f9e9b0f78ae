/** One server over the whole of sigil, for measurements: what a library user would compose. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Tracer from "effect/Tracer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as AuditLog from "../../src/audit/AuditLog.ts"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import type { JsonObject } from "../../src/base/Json.ts"
import * as Reaper from "../../src/platform/Reaper.ts"
import * as Sigil from "../../src/runtime/Sigil.ts"
import { Registry } from "../../src/server/Registry.ts"
import { headless } from "../../src/tools/Caller.ts"
import * as StdioTransport from "../../src/transport/StdioTransport.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"

/** A tracer that makes spans and throws them away: the cost of making them. */
const discarding = Tracer.make({
  span: (name, parent, context, links, startTime, kind) => {
    const attributes = new Map<string, unknown>()
    return {
      _tag: "Span",
      name,
      spanId: "0000000000000001",
      traceId: "00000000000000000000000000000001",
      parent,
      context,
      links,
      kind,
      sampled: true,
      status: { _tag: "Started", startTime },
      attributes,
      attribute: (key, value) => void attributes.set(key, value),
      event: () => undefined,
      addLinks: () => undefined,
      end: () => undefined
    }
  },
  context: (run) => run()
})

/** Starts the server and returns its calls. */
export const open = async (
  server: { readonly command: string; readonly args: ReadonlyArray<string> },
  options: { readonly audit?: "none"; readonly spans?: boolean; readonly home?: string; readonly config?: string } = {}
) => {
  const declaration = JSON.stringify({
    mcpServers: { bench: { ...server, trust: { approval_default: "allow" } } }
  })
  if (options.home !== undefined) process.env["SIGIL_HOME"] = options.home
  const run = { mcpConfig: [declaration], strict: true, config: options.config }
  const parts =
    options.audit === "none" ? Layer.merge(Sigil.layerParts(run), AuditLog.layerNone) : Sigil.layerParts(run)
  const transport = StdioTransport.layer.pipe(Layer.provide(Reaper.layer))
  const whole = Layer.provideMerge(Sigil.layerCore, parts).pipe(
    Layer.provide(transport),
    Layer.provideMerge(HostEnvironment.layer)
  )
  const layer = options.spans === true ? Layer.provideMerge(whole, Layer.setTracer(discarding)) : whole
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

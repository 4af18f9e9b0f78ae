/**
 * How servers are reached: processes of this machine, and remote ones through the guarded client.
 *
 * What the network needs is loaded when the first remote server is opened; a run without one never pays for it. It
 * lives as long as the layer.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { AuditLog } from "../audit/AuditLog.ts"
import type { HostEnvironment } from "../platform/HostEnvironment.ts"
import * as Random from "../platform/Random.ts"
import * as Reaper from "../platform/Reaper.ts"
import type { Terminal } from "../platform/Terminal.ts"
import * as StdioTransport from "../transport/StdioTransport.ts"
import { Transport } from "../transport/Transport.ts"

/** What reaching remote servers asks of its surroundings: records, proxies of the environment, a place to disclose. */
export type RemoteNeeds = AuditLog | HostEnvironment | Terminal

/** Processes only. */
export const layerProcesses: Layer.Layer<Transport> = StdioTransport.layer.pipe(Layer.provide(Reaper.layer))

/** Everything, over a layer that opens what is not remote. */
export const layerRemote: Layer.Layer<Transport, never, Transport | RemoteNeeds> = Layer.scoped(
  Transport,
  Effect.gen(function* () {
    const others = yield* Transport
    const scope = yield* Effect.scope
    const surroundings = yield* Effect.context<RemoteNeeds>()
    const remote = yield* Effect.cached(
      Effect.gen(function* () {
        const [RemoteTransport, GuardedClient, Resolver, Presenter] = yield* Effect.promise(() =>
          Promise.all([
            import("../transport/RemoteTransport.ts"),
            import("../net/GuardedClient.ts"),
            import("../net/Resolver.ts"),
            import("../net/Presenter.ts")
          ])
        )
        const layer = RemoteTransport.layer.pipe(
          Layer.provide(Layer.succeed(Transport, others)),
          Layer.provide(GuardedClient.layer),
          Layer.provide(Layer.mergeAll(Resolver.layer, Presenter.layer, Random.layer)),
          Layer.provide(Layer.succeedContext(surroundings))
        )
        return Context.get(yield* Layer.buildWithScope(layer, scope), Transport)
      })
    )
    return Transport.of({
      open: (request) =>
        request.plan._tag === "remote"
          ? Effect.flatMap(remote, (transport) => transport.open(request))
          : others.open(request)
    })
  })
)

/** Processes and remote servers. */
export const layer: Layer.Layer<Transport, never, RemoteNeeds> = Layer.provide(layerRemote, layerProcesses)

/**
 * The whole of sigil as one layer: declarations, servers over real processes, the pipeline.
 *
 * A library user composes this or its parts; the CLI starts from it. Closing the layer's scope ends every
 * server. Tests put another `Transport` in place of the real one and change nothing else.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ConfigError } from "../config/ConfigError.ts"
import { Configuration } from "../config/Configuration.ts"
import { Locations } from "../config/Locations.ts"
import { HostEnvironment } from "../platform/HostEnvironment.ts"
import * as Random from "../platform/Random.ts"
import * as Reaper from "../platform/Reaper.ts"
import * as Secrets from "../policy/Secrets.ts"
import * as StateDirectory from "../policy/StateDirectory.ts"
import * as Registry from "../server/Registry.ts"
import * as ServerLog from "../server/ServerLog.ts"
import * as Artifacts from "../tools/Artifacts.ts"
import * as Gates from "../tools/Gates.ts"
import * as Pipeline from "../tools/Pipeline.ts"
import * as StdioTransport from "../transport/StdioTransport.ts"
import type { Transport } from "../transport/Transport.ts"
import * as Declarations from "./Declarations.ts"

export type { RuntimeOptions } from "./Declarations.ts"

/** Everything `layer` provides. */
export type Services =
  | Declarations.Declarations
  | Secrets.Secrets
  | StateDirectory.StateDirectory
  | ServerLog.ServerLog
  | Artifacts.Artifacts
  | Registry.Registry
  | Gates.Gates
  | Pipeline.Pipeline

/** Everything but the transport, which the caller provides. */
export const layerWithTransport = (
  options: Declarations.RuntimeOptions
): Layer.Layer<Services, ConfigError, HostEnvironment | Transport> => {
  const declarations = Declarations.layer(options)
  const kept = Layer.unwrapEffect(
    Effect.gen(function* () {
      const locations = yield* Locations
      const { workspace } = yield* Effect.flatMap(Configuration, (configuration) => configuration.load)
      return Layer.mergeAll(
        ServerLog.layer(locations.logs(workspace)),
        Artifacts.layer(locations.artifacts(workspace)),
        StateDirectory.layer(locations.workspaceDirectory(workspace))
      )
    })
  )
  const registry = Layer.unwrapEffect(Effect.map(HostEnvironment, (host) => Registry.layer(host.cores)))
  const base = Layer.provideMerge(Layer.mergeAll(kept, Secrets.layer), declarations)
  const servers = Layer.provideMerge(registry, base)
  return Layer.provideMerge(Pipeline.layer, Layer.provideMerge(Gates.layer, servers)).pipe(Layer.provide(Random.layer))
}

/** The whole over real processes. */
export const layer = (
  options: Declarations.RuntimeOptions
): Layer.Layer<Services, ConfigError, HostEnvironment> =>
  layerWithTransport(options).pipe(Layer.provide(StdioTransport.layer.pipe(Layer.provide(Reaper.layer))))

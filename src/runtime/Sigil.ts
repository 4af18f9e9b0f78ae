/**
 * The whole of sigil as one layer: declarations, servers over real processes, the pipeline.
 *
 * A library user composes this or its parts; the CLI starts from it. Closing the layer's scope ends every
 * server. Tests put another `Transport` in place of the real one and change nothing else.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as AuditLog from "../audit/AuditLog.ts"
import type { ConfigError } from "../config/ConfigError.ts"
import { Configuration } from "../config/Configuration.ts"
import { layer as layerLocations, Locations } from "../config/Locations.ts"
import { HostEnvironment } from "../platform/HostEnvironment.ts"
import * as PidNamespace from "../platform/PidNamespace.ts"
import * as Random from "../platform/Random.ts"
import type { Terminal } from "../platform/Terminal.ts"
import * as Sandbox from "../platform/Sandbox.ts"
import type { ApprovalStore } from "../policy/ApprovalStore.ts"
import * as Secrets from "../policy/Secrets.ts"
import * as StateDirectory from "../policy/StateDirectory.ts"
import type { Toggles } from "../policy/Toggles.ts"
import * as Admission from "../server/Admission.ts"
import * as EraStore from "../server/EraStore.ts"
import * as Registry from "../server/Registry.ts"
import * as RunGate from "../server/RunGate.ts"
import * as ServerLog from "../server/ServerLog.ts"
import * as Artifacts from "../tools/Artifacts.ts"
import * as CallRecords from "../tools/CallRecords.ts"
import * as Otlp from "../telemetry/Otlp.ts"
import * as Gates from "../tools/Gates.ts"
import * as Pipeline from "../tools/Pipeline.ts"
import * as Surfaces from "../tools/Surfaces.ts"
import type { Transport } from "../transport/Transport.ts"
import * as Declarations from "./Declarations.ts"
import * as Transports from "./Transports.ts"
import * as Records from "./Records.ts"

export type { RuntimeOptions } from "./Declarations.ts"

/** What calls are decided by and leave behind: configuration, stored decisions, secrets, artifacts, logs. */
export type Parts =
  | Declarations.Facts
  | Secrets.Secrets
  | StateDirectory.StateDirectory
  | ServerLog.ServerLog
  | Artifacts.Artifacts
  | AuditLog.AuditLog

/** What works on the parts: admission, servers, gates, the pipeline. */
export type Core =
  | CallRecords.CallRecords
  | Admission.Admission
  | Registry.Registry
  | RunGate.RunGate
  | Gates.Gates
  | Pipeline.Pipeline
  | Surfaces.Surfaces

/** Everything `layer` provides. */
export type Services = Parts | Core

/** The parts over the files of sigil's home. */
export const layerParts = (options: Declarations.RuntimeOptions): Layer.Layer<Parts, ConfigError, HostEnvironment> => {
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
  return Layer.provideMerge(Layer.mergeAll(kept, Records.layer, Secrets.layer), Declarations.layerFacts(options)).pipe(
    Layer.provide(Random.layer)
  )
}

/** The core over whatever parts it is given; it has no second way to any of them. */
export const layerCore: Layer.Layer<
  Core,
  ConfigError,
  | Configuration
  | Locations
  | ApprovalStore
  | Toggles
  | Secrets.Secrets
  | StateDirectory.StateDirectory
  | ServerLog.ServerLog
  | AuditLog.AuditLog
  | HostEnvironment
  | Transport
> = Layer.merge(Pipeline.layer, Surfaces.layer).pipe(
  Layer.provideMerge(Gates.layer),
  Layer.provideMerge(CallRecords.layer),
  Layer.provideMerge(Layer.unwrapEffect(Effect.map(HostEnvironment, (host) => Registry.layer(host.cores)))),
  Layer.provideMerge(RunGate.layer),
  Layer.provideMerge(Admission.layer.pipe(Layer.provide(PidNamespace.layer), Layer.provide(Sandbox.layer))),
  Layer.provideMerge(Otlp.layer),
  Layer.provide(Random.layer)
)

/** Everything but the transport, which the caller provides. */
export const layerWithTransport = (
  options: Declarations.RuntimeOptions
): Layer.Layer<Services, ConfigError, HostEnvironment | Transport> => Layer.provideMerge(layerCore, layerParts(options))

/** The whole over real processes and the network; what is sent to remote servers is disclosed on the terminal. */
export const layer = (
  options: Declarations.RuntimeOptions
): Layer.Layer<Services, ConfigError, HostEnvironment | Terminal> =>
  Layer.provide(layerCore, Transports.layer).pipe(
    Layer.provideMerge(layerParts(options)),
    Layer.provide(layerEras(options))
  )

/** What servers turned out to speak, kept in the cache directory. */
export const layerEras = (options: Declarations.RuntimeOptions): Layer.Layer<never, never, HostEnvironment> =>
  EraStore.layer.pipe(Layer.provide(layerLocations({ configPath: options.config, cwd: options.cwd })))

/**
 * The layers behind commands that read and decide but start nothing: configuration, stored decisions, admission.
 *
 * The configuration is read once per runtime, and again only when somebody asks for a reload.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ConfigError } from "../config/ConfigError.ts"
import * as Configuration from "../config/Configuration.ts"
import * as Locations from "../config/Locations.ts"
import type { HostEnvironment } from "../platform/HostEnvironment.ts"
import * as PidNamespace from "../platform/PidNamespace.ts"
import * as Sandbox from "../platform/Sandbox.ts"
import * as ApprovalStore from "../policy/ApprovalStore.ts"
import * as CompanyLimit from "../policy/CompanyLimit.ts"
import * as Secrets from "../policy/Secrets.ts"
import * as Toggles from "../policy/Toggles.ts"
import * as Admission from "../server/Admission.ts"

/** What a runtime is started with; the global options of the command line. */
export interface RuntimeOptions {
  readonly config?: string | undefined
  readonly cwd?: string | undefined
  readonly mcpConfig?: ReadonlyArray<string>
  readonly strict?: boolean
  /** Servers declared as values, scope `dynamic`. */
  readonly dynamic?: Configuration.ConfigurationOptions["dynamic"]
}

/** What was declared and decided. */
export type Facts = Locations.Locations | Configuration.Configuration | ApprovalStore.ApprovalStore | Toggles.Toggles

/** What these layers provide. */
export type Declarations = Facts | Admission.Admission

/** Reads the configuration and opens the stored decisions. */
export const layerFacts = (options: RuntimeOptions): Layer.Layer<Facts, ConfigError, HostEnvironment> => {
  const locations = Locations.layer({ configPath: options.config, cwd: options.cwd })
  const read = Configuration.layer({
    mcpConfig: options.mcpConfig ?? [],
    strict: options.strict ?? false,
    dynamic: options.dynamic
  }).pipe(Layer.provide(locations))
  const once = Layer.effect(
    Configuration.Configuration,
    Effect.gen(function* () {
      const configuration = yield* Configuration.Configuration
      // A configuration that cannot be read ends the run here, whoever asks for it first.
      const snapshot = yield* configuration.load
      const off = CompanyLimit.announcement(snapshot.settings.company, snapshot.servers)
      if (off !== undefined) yield* Effect.logInfo(off)
      return configuration
    })
  ).pipe(Layer.provide(read))
  const stores = Layer.mergeAll(ApprovalStore.layer, Toggles.layer).pipe(Layer.provide(locations))
  return Layer.mergeAll(locations, once, stores)
}

/** Reads the configuration and provides everything that decides about it. */
export const layer = (options: RuntimeOptions): Layer.Layer<Declarations, ConfigError, HostEnvironment> =>
  Layer.provideMerge(
    Admission.layer.pipe(Layer.provide(PidNamespace.layer), Layer.provide(Sandbox.layer), Layer.provide(Secrets.layer)),
    layerFacts(options)
  )

/**
 * sigil for programs: the whole as one layer, its halves, and the same over nothing but memory (spec section 17).
 *
 * `layerParts` is what calls are decided by and leave behind, `layerCore` works on it, `layerTransport` reaches
 * servers; `layer` is the three together. To replace one part, provide it to the core before the parts. Closing the
 * layer's scope ends every server; nothing outlives it and nothing is global.
 */
import * as AuditLog from "../audit/AuditLog.ts"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ConfigError } from "../config/ConfigError.ts"
import * as Configuration from "../config/Configuration.ts"
import * as Locations from "../config/Locations.ts"
import { merge } from "../config/Merge.ts"
import { defaultSettings } from "../config/Settings.ts"
import * as HostEnvironment from "../platform/HostEnvironment.ts"
import * as Terminal from "../platform/Terminal.ts"
import * as ApprovalStore from "../policy/ApprovalStore.ts"
import * as Secrets from "../policy/Secrets.ts"
import * as StateDirectory from "../policy/StateDirectory.ts"
import * as Toggles from "../policy/Toggles.ts"
import * as ServerLog from "../server/ServerLog.ts"
import * as Artifacts from "../tools/Artifacts.ts"
import * as MemoryTransport from "../transport/MemoryTransport.ts"
import * as SwitchTransport from "../transport/SwitchTransport.ts"
import type { Transport } from "../transport/Transport.ts"
import type { DynamicServers } from "../server/DynamicServers.ts"
import { inProcessOf, sourceOf } from "./DynamicServers.ts"
import type { RuntimeOptions } from "./Declarations.ts"
import * as Sigil from "./Sigil.ts"
import * as Transports from "./Transports.ts"

export type { Core, Parts, Services } from "./Sigil.ts"
export { layerCore } from "./Sigil.ts"

/** What sigil is started with. */
export interface Options {
  /** Servers declared as values. Only names of `mcpConfig` go before them (spec section 2). */
  readonly servers?: DynamicServers
  /** Nothing but `servers` and `mcpConfig` counts: no file declares a server. Settings files are still read. */
  readonly strict?: boolean
  /** A sigil.toml in place of the user's own. */
  readonly config?: string
  /** Directory the run is about; the process's own when absent. */
  readonly cwd?: string
  /** Files of servers, or JSON texts that begin with a brace, scope `cli`; later ones win. */
  readonly mcpConfig?: ReadonlyArray<string>
}

/** What a test is started with. */
export interface TestOptions {
  readonly servers?: DynamicServers
  /** The environment that servers and templates see; empty when absent. */
  readonly variables?: { readonly [name: string]: string }
}

const runtimeOptions = ({ servers, ...rest }: Options): RuntimeOptions =>
  servers === undefined ? rest : { ...rest, dynamic: sourceOf(servers) }

const withInProcess = (servers: DynamicServers | undefined) => SwitchTransport.layer(inProcessOf(servers ?? {}))

/**
 * The parts over the files of sigil's home.
 *
 * Fails with `SIGIL_CONFIG_UNREADABLE` when something that the options name cannot be read.
 */
export const layerParts = (
  options: Options = {}
): Layer.Layer<Sigil.Parts, ConfigError, HostEnvironment.HostEnvironment> => Sigil.layerParts(runtimeOptions(options))

/**
 * Processes, remote servers and the in-process servers of the options. What goes to remote servers is put on record in
 * the log of the parts, and disclosed on stderr.
 */
export const layerTransport = (
  options: Options = {}
): Layer.Layer<Transport, never, AuditLog.AuditLog | HostEnvironment.HostEnvironment> =>
  withInProcess(options.servers).pipe(Layer.provide(Transports.layer), Layer.provide(Terminal.layer))

/** The whole, with a transport of the caller's for everything but in-process servers. */
export const layerWithTransport = (
  options: Options = {}
): Layer.Layer<Sigil.Services, ConfigError, HostEnvironment.HostEnvironment | Transport> =>
  Sigil.layerCore.pipe(Layer.provideMerge(layerParts(options)), Layer.provide(withInProcess(options.servers)))

/**
 * The whole: configuration, stored decisions, servers over real processes, the pipeline.
 *
 * Fails with `SIGIL_CONFIG_UNREADABLE` when something that the options name cannot be read; what is wrong with one
 * server fails where that server is used. Starts no server by itself.
 */
export const layer = (options: Options = {}): Layer.Layer<Sigil.Services, ConfigError> =>
  Sigil.layerCore.pipe(
    Layer.provide(layerTransport(options)),
    Layer.provideMerge(layerParts(options)),
    Layer.provide(Sigil.layerEras(options)),
    Layer.provide(HostEnvironment.layer)
  )

/** A configuration of these servers and nothing else; reads no file. */
const layerConfigurationTest = (servers: DynamicServers) =>
  Layer.unwrapEffect(
    Effect.map(Locations.Locations, (paths) => {
      const facts = {
        paths,
        owner: { userId: undefined, platform: "linux" as const },
        settings: defaultSettings,
        workspace: "/",
        projectIdentity: "/"
      }
      const { entries, problems } = sourceOf(servers)(facts)
      return Configuration.layerTest({
        workspace: "/",
        launchDirectory: "/",
        projectIdentity: "/",
        ...merge(entries),
        problems,
        settings: defaultSettings,
        unsupportedSafety: []
      })
    })
  )

/** The parts in memory, with an environment of given variables. */
export const layerPartsTest = (options: TestOptions = {}): Layer.Layer<Sigil.Parts | HostEnvironment.HostEnvironment> =>
  Layer.mergeAll(
    layerConfigurationTest(options.servers ?? {}),
    ApprovalStore.layerMemory(),
    Toggles.layerMemory,
    Secrets.layer,
    StateDirectory.layerMemory,
    AuditLog.layerMemory(),
    ServerLog.layerMemory,
    Artifacts.layerMemory
  ).pipe(
    Layer.provideMerge(Locations.layer()),
    Layer.provideMerge(HostEnvironment.layerTest({ variables: options.variables ?? {} }))
  )

/**
 * The whole in memory: in-process servers only, no file, no process, no environment.
 *
 * Real admission, pipeline and redaction. A server with a command fails at its start.
 */
export const layerTest = (options: TestOptions = {}): Layer.Layer<Sigil.Services, ConfigError> =>
  Sigil.layerCore.pipe(
    Layer.provideMerge(layerPartsTest(options)),
    Layer.provide(withInProcess(options.servers)),
    Layer.provide(MemoryTransport.layer({}))
  )

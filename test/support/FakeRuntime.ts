/** The whole of sigil over in-process servers: the real layers, with only the transport and the stores replaced. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as AuditLog from "../../src/audit/AuditLog.ts"
import type { AuditRecord } from "../../src/audit/AuditRecord.ts"
import { layerTest as configurationTest, type ConfigSnapshot } from "../../src/config/Configuration.ts"
import * as Locations from "../../src/config/Locations.ts"
import type { Entry, ServerDeclaration } from "../../src/config/ServerDeclaration.ts"
import { defaultSettings } from "../../src/config/Settings.ts"
import type { CleanupReport } from "../../src/platform/CleanupReport.ts"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import * as PidNamespace from "../../src/platform/PidNamespace.ts"
import * as Random from "../../src/platform/Random.ts"
import * as Sandbox from "../../src/platform/Sandbox.ts"
import * as ApprovalStore from "../../src/policy/ApprovalStore.ts"
import * as Secrets from "../../src/policy/Secrets.ts"
import * as StateDirectory from "../../src/policy/StateDirectory.ts"
import * as Toggles from "../../src/policy/Toggles.ts"
import * as Admission from "../../src/server/Admission.ts"
import * as Registry from "../../src/server/Registry.ts"
import * as RunGate from "../../src/server/RunGate.ts"
import * as ServerLog from "../../src/server/ServerLog.ts"
import * as CallRecords from "../../src/tools/CallRecords.ts"
import * as Gates from "../../src/tools/Gates.ts"
import * as Pipeline from "../../src/tools/Pipeline.ts"
import * as Surfaces from "../../src/tools/Surfaces.ts"
import * as MemoryTransport from "../../src/transport/MemoryTransport.ts"
import { type OpenRequest, Transport } from "../../src/transport/Transport.ts"

/** A declaration of a server whose calls are allowed, with anything replaced. */
export const declared = (name: string, more: Partial<ServerDeclaration> = {}): Entry => ({
  _tag: "Valid",
  declaration: {
    name,
    scope: "cli",
    source: { file: "test", line: 1, column: 1 },
    format: "toml",
    raw: { command: process.execPath },
    endpoint: { _tag: "stdio", command: process.execPath, args: [], inheritEnv: [], publicEnv: [], env: {} },
    enabled: true,
    startup: "eager",
    required: false,
    trust: {
      trustClass: "self_hosted",
      approvalDefault: "allow",
      egressLogging: true,
      allowSecrets: false,
      pinVersion: false
    },
    startupTimeoutMs: 10_000,
    toolTimeoutMs: 30_000,
    toolTimeoutsMs: {},
    timeoutMode: "total",
    toolTimeoutMaxMs: 300_000,
    onTimeout: "close",
    restart: "on_failure",
    refresh: "overlap",
    shutdownGraceMs: 500,
    stdoutNoise: "refuse",
    protocol: "auto",
    isolation: "none",
    share: "all",
    envMode: "isolated",
    retries: 0,
    tracePropagation: false,
    includeTools: [],
    excludeTools: [],
    unsupported: [],
    warnings: [],
    ...more
  }
})

/** What a test replaces. */
export interface FakeRuntime {
  readonly servers: { readonly [name: string]: MemoryTransport.MemoryServer }
  readonly entries?: ReadonlyArray<Entry>
  readonly variables?: { readonly [name: string]: string }
  readonly snapshot?: Partial<ConfigSnapshot>
  /** What the system says of PID namespaces; none when absent. */
  readonly pidNamespace?: PidNamespace.Receipt
  /** What it says of a sandbox; none when absent. */
  readonly sandbox?: Sandbox.Receipt
  /** How the end of a connection is reported, where it is not complete. */
  readonly cleanup?: (request: OpenRequest) => CleanupReport | undefined
  /** Receives the audit records. */
  readonly records?: Array<AuditRecord>
}

/** In-process servers whose ends are reported as the test says. */
const transportOf = ({ cleanup, servers }: FakeRuntime): Layer.Layer<Transport> => {
  const memory = MemoryTransport.make(servers)
  if (cleanup === undefined) return Layer.succeed(Transport, memory)
  return Layer.succeed(Transport, {
    open: (request) =>
      Effect.map(memory.open(request), (wire) => ({
        ...wire,
        close: Effect.map(wire.close, (report) => cleanup(request) ?? report)
      }))
  })
}

/** Layers of the whole. */
export const layer = (fake: FakeRuntime) => {
  // Asked again by each reload: a test may have changed the entries meanwhile.
  const snapshot = (): ConfigSnapshot => ({
    workspace: "/",
    launchDirectory: "/",
    projectIdentity: "/",
    servers: fake.entries ?? Object.keys(fake.servers).map((name) => declared(name)),
    shadowed: [],
    problems: [],
    settings: defaultSettings,
    unsupportedSafety: [],
    ...fake.snapshot
  })
  const host = HostEnvironment.layerTest({
    // Read anew each time: a test may change a variable while a server runs.
    get variables() {
      return { PATH: "/usr/bin:/bin", ...fake.variables }
    }
  })
  const ground = Layer.mergeAll(
    host,
    Locations.layer().pipe(Layer.provide(host)),
    configurationTest(snapshot),
    ApprovalStore.layerMemory(),
    Toggles.layerMemory,
    transportOf(fake),
    PidNamespace.layerTest(
      fake.pidNamespace ?? { _tag: "Unavailable", reason: "refused", text: "Nothing is started here." }
    ),
    Sandbox.layerTest(fake.sandbox ?? { _tag: "Unavailable", reason: "refused", text: "Nothing is started here." }),
    Secrets.layer,
    AuditLog.layerMemory(fake.records),
    ServerLog.layerMemory,
    StateDirectory.layerMemory,
    Random.layerTest
  )
  const servers = Layer.provideMerge(
    Layer.provideMerge(Registry.layer(2), RunGate.layer),
    Layer.provideMerge(Admission.layer, ground)
  )
  const gates = Layer.provideMerge(Gates.layer, Layer.provideMerge(CallRecords.layer, servers))
  return Layer.provideMerge(Layer.merge(Pipeline.layer, Surfaces.layer), gates)
}

/** Runs a test program over the whole. */
export const withFakes =
  (fake: FakeRuntime) =>
  <A, E>(program: Effect.Effect<A, E, Layer.Layer.Success<ReturnType<typeof layer>>>): Effect.Effect<A, unknown> =>
    Effect.provide(program, layer(fake))

/**
 * The library: the public names of sigil, and no others.
 *
 * `Sigil.layer` is the whole; the tags and layers below it are its parts, for programs that compose or replace
 * them. Names end in `Live` for the real thing, `Memory` for the same without files, `Test` for one made of given
 * values. Importing this runs nothing and keeps no state: everything belongs to the scope of a layer.
 */

// The whole.
export * as Sigil from "./runtime/Library.ts"

// Calling tools.
export {
  type CallError,
  type CallOutcome,
  type CallRequest,
  layer as PipelineLive,
  Pipeline,
  type StepVerdict
} from "./tools/Pipeline.ts"
export { CallRefused, type Misfit } from "./tools/CallRefused.ts"
export { type Caller, headless, nobody } from "./tools/Caller.ts"
export type { Answer, Approver, Question } from "./tools/Approver.ts"
export type { CatalogTool, ToolReason } from "./tools/Catalog.ts"
export { defaultLimits, type Keep, type Limits, noLimits, show as showResult, type Shown } from "./tools/Result.ts"
export {
  ArtifactError,
  Artifacts,
  layer as ArtifactsLive,
  layerMemory as ArtifactsMemory,
  type Stored
} from "./tools/Artifacts.ts"

// Resources, prompts, completion; the gates that every surface shares.
export {
  type CompletionReference,
  layer as SurfacesLive,
  type ListKind,
  type SurfaceList,
  type SurfaceOutcome,
  type SurfaceRequest,
  Surfaces
} from "./tools/Surfaces.ts"
export { Gates, layer as GatesLive, type Subject } from "./tools/Gates.ts"

// Declaring servers.
export type {
  CommonEntry,
  DynamicServer,
  DynamicServers,
  InProcessEntry,
  RemoteEntry,
  StdioEntry,
  TrustEntry
} from "./server/DynamicServers.ts"
export { make as toolServer, tool, type Tool, type ToolResult, type ToolServerOptions } from "./transport/ToolServer.ts"
export type {
  BrokenDeclaration,
  Entry,
  RemoteEndpoint,
  Scope,
  ServerDeclaration,
  Source,
  StdioEndpoint,
  Trust
} from "./config/ServerDeclaration.ts"

// Configuration.
export {
  type ConfigSnapshot,
  Configuration,
  type ConfigurationOptions,
  layer as ConfigurationLive,
  layerTest as ConfigurationTest
} from "./config/Configuration.ts"
export { ConfigError } from "./config/ConfigError.ts"
export { defaultSettings, type Settings } from "./config/Settings.ts"
export { layer as LocationsLive, type LocationOptions, Locations, type Paths } from "./config/Locations.ts"

// Policy and what it remembers.
export type { Caps, Decision, Ground, Verdict as PermissionVerdict } from "./policy/Permission.ts"
export type { AllowRule } from "./policy/permission/Remedy.ts"
export type { ListRule, PermissionLists } from "./config/PermissionLists.ts"
export {
  type Answered,
  ApprovalStore,
  layer as ApprovalStoreLive,
  layerMemory as ApprovalStoreMemory
} from "./policy/ApprovalStore.ts"
export type { Approvals } from "./policy/ProjectApproval.ts"
export { layer as TogglesLive, layerMemory as TogglesMemory, Toggles, type ToggleState } from "./policy/Toggles.ts"
export { layer as SecretsLive, type Place, Secrets } from "./policy/Secrets.ts"
export {
  layer as StateDirectoryLive,
  layerMemory as StateDirectoryMemory,
  StateDirectory,
  StateError
} from "./policy/StateDirectory.ts"

// Servers.
export { Admission, type Admitted, type GateName, layer as AdmissionLive, type Verdict } from "./server/Admission.ts"
export {
  type ActivationError,
  type AskOptions,
  layer as RegistryLive,
  Registry,
  type ReloadReport,
  type ServerCleanup,
  type ServerStatus
} from "./server/Registry.ts"
export type { EagerReport } from "./server/EagerStart.ts"
export { layer as RunGateLive, RunGate } from "./server/RunGate.ts"
export { type Launcher, layer as PidNamespaceLive, PidNamespace, type Receipt } from "./platform/PidNamespace.ts"
export { layer as SandboxesLive, type Receipt as SandboxReceipt, Sandboxes } from "./platform/Sandbox.ts"
export { AdmissionError, ConnectionError, RemoteError, RequiredServersError, StartError } from "./server/ServerError.ts"
export { layer as ServerLogLive, layerMemory as ServerLogMemory, ServerLog } from "./server/ServerLog.ts"
export type { Generation, OnOpen } from "./server/Generation.ts"
export type { ServerInfo } from "./server/Negotiation.ts"
export type { Progress } from "./server/Progress.ts"

// What servers may ask back.
export { ClientFeatures, type Features, type SamplingHandler } from "./server/ClientFeatures.ts"
export type { Elicitor, FormAnswer, FormRequest, UrlAnswer, UrlRequest } from "./server/Elicitor.ts"
export type { Choice, Field, Form } from "./protocol/Form.ts"
export {
  type Era,
  type Eras,
  EraStore,
  layer as EraStoreLive,
  layerMemory as EraStoreMemory
} from "./server/EraStore.ts"
export type { CleanupReport } from "./platform/CleanupReport.ts"

// Transports.
export {
  type DeliveryFault,
  type OpenRequest,
  type Outgoing,
  type Plan,
  type Receiver,
  type RemotePlan,
  type StderrView,
  type StdioPlan,
  Transport,
  type Wire,
  type WireEnd
} from "./transport/Transport.ts"
export { TransportError } from "./transport/TransportError.ts"
export { layer as RemoteTransportLive } from "./transport/RemoteTransport.ts"
export { layer as GuardedClientLive, GuardedClient } from "./net/GuardedClient.ts"
export { layer as ResolverLive, layerTest as ResolverTest, Resolver } from "./net/Resolver.ts"
export { type Disclosure, layer as PresenterLive, layerTest as PresenterTest, Presenter } from "./net/Presenter.ts"
export { NetError } from "./net/NetError.ts"
export type { DestinationRules } from "./net/DestinationRules.ts"
export { layer as StdioTransportLive } from "./transport/StdioTransport.ts"
export { layer as MemoryTransportLive, type MemoryLink, type MemoryServer } from "./transport/MemoryTransport.ts"

// The ground.
export {
  layer as HostEnvironmentLive,
  layerTest as HostEnvironmentTest,
  HostEnvironment
} from "./platform/HostEnvironment.ts"
export { layer as ReaperLive, layerNone as ReaperNone, Reaper } from "./platform/Reaper.ts"
export { layer as TerminalLive, Terminal } from "./platform/Terminal.ts"
export { layer as RandomLive, layerTest as RandomTest, Random } from "./platform/Random.ts"
export { FileError } from "./platform/FileError.ts"
export { Attribute as SpanAttribute } from "./telemetry/CallSpan.ts"
export { type Failure, fixOf, isFailure, type Where } from "./base/Failure.ts"
export type { Code } from "./base/Codes.ts"
export type { ArtifactHandle, GenerationId } from "./base/Ids.ts"
export type { Json, JsonObject, LosslessNumber } from "./base/Json.ts"

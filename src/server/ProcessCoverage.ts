/**
 * What confines a server's process, in the words of the record and of people (R sections 11.1 and 12.4): pure.
 *
 * Invariant: nothing here says more than the receipt proved; what was not asked for is not claimed either.
 */
import { type ExecutionSettings, networkOf } from "../config/ExecutionSettings.ts"
import type * as Sandbox from "../platform/Sandbox.ts"
import { type Confinement, effectOf, type NetworkEffect } from "../policy/NetworkPolicy.ts"

/** What confines one process. */
export interface ProcessCoverage {
  /** For people, e.g. `sandboxed local stdio (linux_bubblewrap, workspace writable, network denied)`. */
  readonly label: string
  /** What the process can do to the network. */
  readonly networkEffect: NetworkEffect
  /** The keys of the lifecycle record. */
  readonly metadata: { readonly [key: string]: string }
}

/** What the run says about the network, and whether somebody said yes to this start. */
export interface NetworkFacts {
  readonly mode: "allow" | "ask" | "deny"
  readonly approved: boolean
}

const profileOf = (workspace: "writable" | "read-only", network: "denied" | "shared"): string =>
  `workspace ${workspace}, network ${network}`

const policyMetadata = ({ approved, mode }: NetworkFacts, effect: NetworkEffect) => ({
  mcp_process_network_policy: mode,
  mcp_process_explicit_network_approval: String(approved),
  mcp_process_declared_network_effect: "unknown",
  mcp_process_effective_network_effect: effect
})

/** What an answer of the system is to the network policy. */
export const confinementOf = (receipt: Sandbox.Receipt | undefined): Confinement => {
  if (receipt === undefined) return { _tag: "Local" }
  if (receipt._tag === "Unavailable") return { _tag: "Unavailable", why: receipt.text, fix: receipt.fix }
  return {
    _tag: "Sandbox",
    network: receipt.network,
    networkProven: receipt.proof.network,
    processTreeProven: receipt.proof.processTree
  }
}

/** Outside of any sandbox; `pidns` of an entry is a namespace, no sandbox. */
export const outside = (facts: NetworkFacts, pidNamespace: boolean): ProcessCoverage => ({
  label: `local stdio outside local sandbox${pidNamespace ? " (in a PID namespace of its own)" : ""}`,
  networkEffect: "unknown",
  metadata: {
    mcp_process_coverage: "local_stdio_outside_sandbox",
    mcp_process_backend: "local",
    mcp_process_backend_capabilities: pidNamespace ? "process_tree" : "",
    mcp_process_network: "shared",
    mcp_process_network_isolation_proven: "false",
    ...policyMetadata(facts, "unknown")
  }
})

/** A remote server: no process of this machine, so nothing here confines it (R section 11.1). */
export const external = (facts: NetworkFacts): ProcessCoverage => ({
  label: externalLabel,
  networkEffect: "unknown",
  metadata: { mcp_process_coverage: "external_mcp", ...policyMetadata(facts, "unknown") }
})

/** What is said of every remote server. */
export const externalLabel = "external MCP; local sandbox does not apply"

/** Inside a sandbox that was tried. */
export const sandboxed = (facts: NetworkFacts, sandbox: Sandbox.Sandbox): ProcessCoverage => {
  const effect = effectOf(confinementOf(sandbox))
  const { proof } = sandbox
  const proven = [
    ["network", proof.network],
    ["process_tree", proof.processTree],
    ["file_system", proof.fileSystem],
    ["privileges", proof.privileges],
    ["environment", proof.environment]
  ].flatMap(([name, holds]) => (holds === true ? [name] : []))
  const profile = profileOf(sandbox.workspaceAccess, sandbox.network)
  return {
    label: `sandboxed local stdio (${sandbox.backend}, ${profile})`,
    networkEffect: effect,
    metadata: {
      mcp_process_coverage: "local_stdio_sandboxed",
      mcp_process_backend: sandbox.backend,
      mcp_process_backend_version: sandbox.version,
      mcp_process_backend_capabilities: proven.join(","),
      mcp_process_profile: profile,
      mcp_process_network: sandbox.network,
      mcp_process_network_isolation_proven: String(sandbox.network === "denied" && proof.network),
      ...policyMetadata(facts, effect)
    }
  }
}

/** What the settings ask for, whether the system can give it or not. */
export const wanted = (execution: ExecutionSettings, mode: NetworkFacts["mode"], pidNamespace: boolean): string =>
  execution.strategy === "local"
    ? outside({ mode, approved: false }, pidNamespace).label
    : execution.backend === "linux_bubblewrap"
      ? `sandboxed local stdio (${execution.backend}, ${profileOf(execution.workspace, networkOf(execution, mode))})`
      : "MCP stdio sandbox unsupported"

/**
 * What permission is asked about: one call with its declared effects, names and subjects (R sections 6.1 and 6.2).
 *
 * Effects are what sigil knows, never what a server says of itself: a tool of a server reads locally and has an
 * unknown effect on the network, whatever its annotations promise.
 */
import type { Where } from "../../base/Failure.ts"
import type { JsonObject } from "../../base/Json.ts"
import type { Verdict } from "./Ground.ts"
import type { ToolNames } from "./ToolPattern.ts"

/** Access to this machine. */
export type Access = "read" | "write" | "execute"

/** Effect on the network. */
export type NetworkEffect = "none" | "read" | "mutate" | "unknown"

/** Who does it: a server's surface, the start of a server, a built-in tool, a sub-agent. */
export type CallKind = "mcp" | "activation" | "builtin" | "subagent"

/** One call. */
export interface Call {
  readonly kind: CallKind
  readonly access: Access
  readonly network: NetworkEffect
  /** Its process was proved to have no network before it was started (R section 6.6). */
  readonly isolated?: boolean
  readonly names: ToolNames
  /** Normalised forms for `subject_glob`; the visible name among them is matched as a tool name. */
  readonly subjects: ReadonlyArray<string>
  /** Key of the session grant that covers it; absent where none may. */
  readonly grantKey?: string
  /** What holds without any rule. */
  readonly source: { readonly verdict: Verdict; readonly by: string; readonly where?: Where }
  /** The server marks it as destructive; absent counts as false. It can only tighten. */
  readonly destructive: boolean
  /** The arguments, for patterns of settings.json. */
  readonly input: JsonObject
  /** Command text of a shell-like tool. */
  readonly command?: string
  /** It edits files inside the workspace and does nothing else. */
  readonly workspaceEdit?: boolean
  /** Absolute, normalised paths outside the workspace that it touches. */
  readonly externalPaths?: ReadonlyArray<string>
}

/** Tools whose input is a command line (R section 1.8). */
const shellTools = new Set(["bash", "terminal_start", "terminal_input"])

/** Whether `[permission.commands]` applies. */
export const isShell = ({ kind, names }: Call): boolean => kind === "builtin" && shellTools.has(names.visibleName)

/** Key of one exact tool in the session grants. */
export const grantKey = (server: string, tool: string): string => `${server.length}:${server}${tool}`

/** The server side of a call. */
export interface ServerFacts {
  /** Exact name. */
  readonly server: string
  readonly trustClass: string
  readonly approvalDefault: Verdict
  /** Where the entry stands. */
  readonly where?: Where
}

const sourceOf = ({ approvalDefault, server, where }: ServerFacts): Call["source"] => ({
  verdict: approvalDefault,
  by: `approval_default = "${approvalDefault}" of server '${server}'`,
  ...(where === undefined ? {} : { where })
})

/** A call of a tool, a resource or a prompt: local read; tools have an unknown network effect, the others read. */
export const mcpCall = (facts: {
  readonly server: ServerFacts
  readonly operation: "tool" | "resource" | "prompt"
  /** Exact tool name, or the surface's part. */
  readonly tool: string
  readonly names: ToolNames
  readonly destructive: boolean
  readonly input: JsonObject
  readonly isolated?: boolean
}): Call => ({
  kind: "mcp",
  access: "read",
  network: facts.operation === "tool" ? "unknown" : "read",
  names: facts.names,
  subjects: [facts.names.visibleName, `mcp_trust_class:${facts.server.trustClass}`],
  grantKey: grantKey(facts.server.server, facts.tool),
  source: sourceOf(facts.server),
  destructive: facts.destructive,
  input: facts.input,
  ...(facts.isolated === true ? { isolated: true } : {})
})

/** The tool with which a model asks for a server to be started. */
export const ACTIVATION_TOOL = "mcp_activate_server"

/** The start of a server that a model asked for: it runs a program, and what that does is unknown. */
export const mcpActivation = (server: ServerFacts): Call => ({
  kind: "activation",
  access: "execute",
  network: "unknown",
  names: { visibleName: ACTIVATION_TOOL, rivals: [] },
  subjects: [`mcp_server:${server.server}`, `mcp_trust_class:${server.trustClass}`],
  grantKey: grantKey("", `${ACTIVATION_TOOL}:${server.server}`),
  source: sourceOf(server),
  destructive: false,
  input: { server_name: server.server }
})

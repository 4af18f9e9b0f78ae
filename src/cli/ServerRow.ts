/**
 * One server as `mcp list` and `mcp get` show it: what is declared, and whether it could start.
 *
 * The state comes from admission itself, so a list never promises what a start would refuse. Secrets are never
 * shown: literal values of variables and headers are hidden, and so are arguments that look like credentials.
 */
import { literalCredentials, looksLikeCredential } from "../config/Credentials.ts"
import type { Entry, RemoteEndpoint, StdioEndpoint } from "../config/ServerDeclaration.ts"
import type { DocumentOf } from "./Documents.ts"
import type { GateName, Verdict } from "../server/Admission.ts"

/** What stands for a hidden value. */
export const HIDDEN = "[hidden]"

/** State of a declaration without starting it (spec section 1a). */
export type DeclaredState = "configured" | "pending" | "rejected" | "disabled" | "denied" | "invalid"

/** A state with the reason for anything but `configured`. */
export interface StateOfServer {
  readonly state: DeclaredState
  readonly reason?: { readonly code: string; readonly message: string }
}

/** A state as a document shows it, declared or live. */
export interface ShownState {
  readonly state: DocumentOf<"list">["servers"][number]["state"]
  /** Its turn to start did not come yet. */
  readonly queued?: boolean
  readonly reason?: { readonly code: string; readonly message: string }
}

const invalidGates: ReadonlySet<GateName> = new Set(["declaration", "scope_rules", "expansion"])

/** Reads the state off the gates' verdicts. */
export const stateOf = (verdicts: ReadonlyArray<Verdict>): StateOfServer => {
  const refused = verdicts.find(({ verdict }) => verdict === "refuse")
  if (refused?.refusal === undefined) return { state: "configured" }
  const { code, text } = refused.refusal
  const reason = { code, message: text }
  if (invalidGates.has(refused.gate)) return { state: "invalid", reason }
  switch (code) {
    case "SIGIL_PENDING_APPROVAL":
      return { state: "pending", reason }
    case "SIGIL_REJECTED":
      return { state: "rejected", reason }
    case "SIGIL_DISABLED":
      return { state: "disabled", reason }
    case "SIGIL_DENIED":
    case "SIGIL_SAFETY_UNSUPPORTED":
      return { state: "denied", reason }
    default:
      // Whatever is left is about this moment (a missing grant, command or network), not about the declaration.
      return { state: "configured", reason }
  }
}

/** The command line of a stdio server with credentials hidden. */
export const shownCommand = (endpoint: StdioEndpoint): ReadonlyArray<string> => {
  const hidden = new Set(
    literalCredentials({ command: endpoint.command, args: endpoint.args })
      .map(({ field }) => /^args\[(\d+)\]$/.exec(field)?.[1])
      .filter((index) => index !== undefined)
      .map(Number)
  )
  return [
    endpoint.command,
    ...endpoint.args.map((arg, index) => (hidden.has(index) || looksLikeCredential(arg) ? HIDDEN : arg))
  ]
}

const shownPart = (text: string): string => (looksLikeCredential(text) ? HIDDEN : text)

/** The URL as written, variables by their names, without user information, with query values and credentials hidden. */
export const shownUrl = ({ url }: RemoteEndpoint): string => {
  const [, head = "", query] = /^([^?#]*)(?:\?([^#]*))?/.exec(url) ?? []
  const place = head
    .replace(/\/\/[^/]*@/, `//${HIDDEN}@`)
    .split("/")
    .map(shownPart)
    .join("/")
  const pairs = (query ?? "").split("&").map((pair) => {
    const split = pair.indexOf("=")
    const value = pair.slice(split + 1)
    return split < 0 || /^\$\{[^}]*\}$/.test(value) ? shownPart(pair) : `${pair.slice(0, split)}=${HIDDEN}`
  })
  return query === undefined || query === "" ? place : `${place}?${pairs.join("&")}`
}

/** The headers that a remote server is sent, by name; the token of `bearer_token_env_var` is one. */
export const headerNamesOf = (endpoint: RemoteEndpoint): ReadonlyArray<string> => [
  ...Object.keys(endpoint.headers),
  ...Object.keys(endpoint.envHeaders),
  ...(endpoint.bearerTokenEnvVar === undefined ? [] : ["Authorization"])
]

/** Name of the transport as the documents spell it. */
export const transportOf = (endpoint: StdioEndpoint | RemoteEndpoint): string =>
  endpoint._tag === "stdio" ? "stdio" : endpoint.transport

/** What runs, in one line. */
export const lineOf = (entry: Entry): string => {
  if (entry._tag === "Broken") return ""
  const { endpoint } = entry.declaration
  return endpoint._tag === "stdio" ? shownCommand(endpoint).map(quoted).join(" ") : shownUrl(endpoint)
}

/** A word as it would be typed in a shell. */
export const quoted = (word: string): string =>
  word !== "" && /^[A-Za-z0-9_@%+=:,./[\]-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

/** The `Server` object of the documents. */
export const serverDocument = (entry: Entry, state: ShownState): DocumentOf<"list">["servers"][number] => {
  const reason = {
    ...(state.queued === true ? { queued: true } : {}),
    ...(state.reason === undefined ? {} : { reason: state.reason })
  }
  if (entry._tag === "Broken") {
    const { name, scope, source } = entry.broken
    return { name, scope, source: { file: source.file, line: source.line }, state: state.state, ...reason }
  }
  const { declaration } = entry
  const { endpoint } = declaration
  return {
    name: declaration.name,
    scope: declaration.scope,
    source: { file: declaration.source.file, line: declaration.source.line },
    transport: transportOf(endpoint),
    ...(endpoint._tag === "stdio" ? { command: shownCommand(endpoint) } : { url: shownUrl(endpoint) }),
    enabled: declaration.enabled,
    startup: declaration.startup,
    required: declaration.required,
    trust_class: declaration.trust.trustClass,
    approval_default: declaration.trust.approvalDefault,
    state: state.state,
    ...reason
  }
}

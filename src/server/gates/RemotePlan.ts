/**
 * How a remote server would be dialled (spec section 6, "HTTP safety"). Nothing is resolved here and no socket is opened.
 *
 * What configuration alone decides is refused here: a credential never travels unencrypted, and without encryption only
 * this very machine may be called. The host is judged by the rules of `[web]`; its addresses are, at each dial.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { SECOND_MS } from "../../base/Units.ts"
import { isEncrypted } from "../../config/EndpointUrl.ts"
import { variablesOf } from "../../config/Expansion.ts"
import { loopbackHost } from "../../config/LoopbackAccess.ts"
import type { RemoteEndpoint, ServerDeclaration } from "../../config/ServerDeclaration.ts"
import type { HostEnvironment } from "../../platform/HostEnvironment.ts"
import type { RemotePlan } from "../../transport/Transport.ts"
import { isPublic, looksSecret } from "../ChildEnvironment.ts"
import { external } from "../ProcessCoverage.ts"
import { AdmissionError } from "../ServerError.ts"
import { known, located, type State } from "./Gate.ts"

/** Names of headers, each once, for people. */
const namesOf = (headers: RemotePlan["headers"]): string => headers.map(({ name }) => name).join(", ")

/** Makes the plan of a remote server; answers with the line of the verdict. */
export const remotePlan = (
  state: State,
  declaration: ServerDeclaration,
  endpoint: RemoteEndpoint,
  host: Context.Tag.Service<typeof HostEnvironment>
): Effect.Effect<string, AdmissionError> =>
  Effect.gen(function* () {
    const headers = yield* known(state.headers, "executable")
    const { settings } = state.facts.snapshot
    const { web } = settings
    // Expansion has checked that it is one.
    const url = new URL(endpoint.url)
    if (!isEncrypted(endpoint.url)) {
      const refuse = (
        code: "SIGIL_CONFIG_INVALID" | "SIGIL_NETWORK_REFUSED",
        reason: string,
        text: string,
        fix: string
      ) =>
        new AdmissionError({
          code,
          reason,
          text: `The server '${declaration.name}' cannot be called: ${text}`,
          fix,
          where: located(declaration, "executable", "url")
        })
      const secure = endpoint.transport === "ws" ? "wss" : "https"
      const credentials = headers.filter(({ credential }) => credential)
      const inUrl = variableInUrl(declaration)
      if (credentials.length > 0 || inUrl !== undefined)
        return yield* refuse(
          "SIGIL_CONFIG_INVALID",
          "configuration_invalid",
          `its URL begins with ${url.protocol}// and it is sent ${
            inUrl === undefined ? `credentials (${namesOf(credentials)})` : `a credential in the URL (${inUrl.name})`
          }, which are never sent unencrypted.`,
          `Use ${secure}, or take the credential out of the entry.`
        )
      if (loopbackHost(endpoint.url) === undefined)
        return yield* refuse(
          "SIGIL_NETWORK_REFUSED",
          "not_encrypted",
          `its URL begins with ${url.protocol}// and names another machine; only this machine (localhost, 127.0.0.1, [::1]) may be called unencrypted.`,
          `Use ${secure}.`
        )
    }
    const { allowedDomains, allowedPrivateCidrs, allowedPrivateHosts, blockedDomains } = web
    const rules = { allowedPrivateHosts, allowedPrivateCidrs, blockedDomains, allowedDomains }
    // Loaded here: most runs have no remote server.
    const { judge } = yield* Effect.promise(() => import("../../net/Judge.ts"))
    const verdict = judge({
      url: endpoint.url,
      credentials: headers.some(({ credential }) => credential),
      rules,
      proxyMode: web.proxyMode,
      get: host.get
    })
    if (verdict._tag === "Refuse")
      return yield* new AdmissionError({
        code: "SIGIL_NETWORK_REFUSED",
        reason: verdict.reason,
        text: `The server '${declaration.name}' cannot be called: ${verdict.text}`,
        fix: verdict.fix,
        where: located(declaration, "executable", "url")
      })
    state.plan = {
      _tag: "remote",
      transport: endpoint.transport,
      url: endpoint.url,
      shown: addressOf(declaration, url),
      headers,
      rules,
      proxyMode: web.proxyMode,
      connectTimeoutMs: web.connectTimeoutSecs * SECOND_MS
    }
    state.coverage = external({ mode: settings.networkMode, approved: state.facts.networkApproved })
    return `${endpoint.transport} to ${addressOf(declaration, url)}${
      headers.length === 0 ? "" : `, with the headers ${namesOf(headers)}`
    }`
  })

/**
 * The variable of a URL whose value may be a credential: one that is named like it, or any behind host and port, where
 * tokens are put. What is public by its name is none.
 */
const variableInUrl = (declaration: ServerDeclaration): { readonly name: string } | undefined => {
  if (declaration.endpoint._tag !== "remote") return undefined
  const authority = /^[a-z]+:\/\/(?:\$\{[^}]*\}|[^/?#])*/i.exec(declaration.endpoint.url)?.[0] ?? ""
  const behind = { ...declaration.endpoint, url: declaration.endpoint.url.slice(authority.length) }
  const inPath = variablesOf({ ...declaration, endpoint: behind })
  const used = variablesOf(declaration).filter(({ field }) => field === "url")
  return used.find(
    ({ name }) =>
      looksSecret(name) || (inPath.some((use) => use.field === "url" && use.name === name) && !isPublic(name, "", []))
  )
}

/** Scheme, host and port for people. A variable may have brought a secret, so its name stands for it. */
const addressOf = (declaration: ServerDeclaration, url: URL): string => {
  const used = variablesOf(declaration).filter(({ field }) => field === "url")
  const [first] = used
  if (first === undefined || declaration.endpoint._tag !== "remote") return url.origin
  const written = /^[a-z]+:\/\/(?:\$\{[^}]*\}|[^/?#])*/i.exec(declaration.endpoint.url)?.[0]
  return written === undefined ? `the address in ${first.name}` : written.replace(/\/\/.*@/, "//")
}

/**
 * Why a connection could not be opened, in words that say what to do about it: pure.
 *
 * A code of the system or of OpenSSL says little to whoever reads it for the first time; each one that has a common
 * cause gets a sentence, and the step that helps. Nothing of these failures was delivered. Texts name hosts, origins
 * and variables, never a path, a password or what a certificate says.
 */
import type { Destination } from "./Destination.ts"
import { errorCodeOf, type NetError, notSent, REFUSED } from "./NetError.ts"
import type { Proxy, Route } from "./Proxy.ts"

/** What happened, and what to do about it; without that, whoever knows the server's name says it better. */
type Words = readonly [what: string, fix?: string]

const lost = (reason: string, host: string, [what, fix]: Words): NetError =>
  notSent("SIGIL_CONNECTION_LOST", reason, `The connection to '${host}' could not be opened: ${what}.`, fix)

const NETWORK = "Check the connection to the network (VPN, firewall, proxy) and the address of the server."

const systemWords: { readonly [code: string]: Words } = {
  ECONNREFUSED: ["nothing listens there (ECONNREFUSED)"],
  ETIMEDOUT: ["nothing answered (ETIMEDOUT)", NETWORK],
  EHOSTUNREACH: ["the host cannot be reached (EHOSTUNREACH)", NETWORK],
  ENETUNREACH: ["the network cannot be reached (ENETUNREACH)", NETWORK],
  ECONNRESET: ["the other side closed it (ECONNRESET)", NETWORK]
}

/** TCP did not come about: `connection_refused` where nothing listens, else `connect_failed`. */
export const connectFault = (host: string, error: unknown): NetError => {
  const code = errorCodeOf(error)
  const reason = code === "ECONNREFUSED" ? REFUSED : "connect_failed"
  return lost(reason, host, systemWords[code] ?? [code, NETWORK])
}

/** Certificates whose authority is not known here. */
const untrusted: { readonly [code: string]: string } = {
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "its certificate comes from an authority that is not trusted here",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate comes from an authority that is not known here",
  UNABLE_TO_GET_ISSUER_CERT: "its certificate comes from an authority that is not known here",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "its certificate comes from an authority that is not known here"
}
const TRUST =
  "If the server is yours or your company's, start sigil with NODE_EXTRA_CA_CERTS=FILE, FILE being the certificate of its authority (PEM)."

/** What is heard where the other side speaks no TLS, or no TLS of today. */
const notTls = new Set(["ECONNRESET", "EPROTO", "EPIPE", "ERR_SSL_WRONG_VERSION_NUMBER"])
const isNotTls = (code: string): boolean =>
  notTls.has(code) || /^ERR_SSL_(PACKET_LENGTH|HTTP_REQUEST|UNKNOWN_PROTOCOL|RECORD_)/.test(code)

const tlsWords = (code: string, scheme: string): Words => {
  const authority = untrusted[code]
  if (authority !== undefined) return [`${authority} (${code})`, TRUST]
  if (code === "CERT_HAS_EXPIRED")
    return [
      `its certificate has expired (${code})`,
      "Whoever runs the server has to renew it; check the clock of this machine too."
    ]
  if (code === "CERT_NOT_YET_VALID")
    return [`its certificate is not valid yet (${code})`, "Check the clock of this machine."]
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return [
      `its certificate is for another name (${code})`,
      "Use the host name in the URL that the certificate is for."
    ]
  if (isNotTls(code))
    return [
      `the other side does not speak TLS there (${code})`,
      `Check the port; if the server speaks no TLS, its URL begins with ${scheme === "wss" ? "ws" : "http"}:// instead of ${scheme}://.`
    ]
  return [
    `TLS failed (${code})`,
    `Check the host and port of the URL, and whether ${scheme}:// is what the server speaks.`
  ]
}

const schemeOf = ({ origin }: Pick<Destination, "origin">): string => origin.slice(0, origin.indexOf(":"))

/** TLS with the server did not come about; without an error the other side closed it. */
export const tlsFault = (destination: Pick<Destination, "host" | "origin">, error?: unknown): NetError => {
  const code = error === undefined ? "ECONNRESET" : errorCodeOf(error)
  return lost("tls_failed", destination.host, tlsWords(code, schemeOf(destination)))
}

const byProxy = ({ origin, variable }: Proxy, what: string): string =>
  `the proxy ${origin}, which ${variable} names, ${what}`
const proxyFix = ({ variable }: Proxy, host: string): string =>
  `Correct or unset ${variable}, or name ${host} in NO_PROXY, or set [web] proxy_mode = "direct".`

/** There is no way to the proxy: `host` is the one that it was to lead to. */
export const proxyFault = (proxy: Proxy, host: string, error: unknown): NetError => {
  const code = errorCodeOf(error)
  const what =
    code === "ENOTFOUND" || code === "EAI_AGAIN"
      ? `could not be found: its name is not resolved (${code})`
      : `could not be reached: ${systemWords[code]?.[0] ?? untrustedWords(code)}`
  return lost("proxy_failed", host, [byProxy(proxy, what), proxyFix(proxy, host)])
}
const untrustedWords = (code: string): string => {
  const authority = untrusted[code]
  if (authority !== undefined) return `${authority} (${code})`
  return isNotTls(code) ? `it does not speak TLS there (${code})` : code
}

/** The proxy opened no tunnel. */
export const tunnelFault = (proxy: Proxy, host: string, status: number): NetError =>
  lost("proxy_failed", host, [
    byProxy(proxy, status === 407 ? "wants a user name and password (HTTP 407)" : `answered with HTTP ${status}`),
    status === 407
      ? `Write them into ${proxy.variable}: http://USER:PASSWORD@HOST:PORT.`
      : `Whether it lets connections to ${host} through is the proxy's choice. ${proxyFix(proxy, host)}`
  ])

/** Nothing came about in time. `reached`: the proxy, where there is one, had opened its tunnel. */
export const slowFault = (destination: Destination, route: Route, reached: boolean, timeoutMs: number): NetError =>
  lost(
    "connect_timeout",
    destination.host,
    route._tag === "proxy_remote" && !reached
      ? [byProxy(route.proxy, `did not answer within ${timeoutMs} ms`), proxyFix(route.proxy, destination.host)]
      : reached && destination.encrypted
        ? [
            `it did not answer the TLS handshake within ${timeoutMs} ms`,
            `Check the host and port of the URL, and whether ${schemeOf(destination)}:// is what the server speaks.`
          ]
        : [`nothing answered within ${timeoutMs} ms`, NETWORK]
  )

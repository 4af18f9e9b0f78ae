/**
 * What `[web]` of sigil.toml has to say before a server on this very machine may be called (spec section 6, "HTTP
 * safety"): its exact host, and networks that hold each address the host can have. Pure.
 */
import ipaddr from "ipaddr.js"
import type { WebSettings } from "./WebSettings.ts"

/** The addresses that `localhost` stands for on any machine. */
const localhostAddresses = ["127.0.0.1", "::1"] as const

/** The network that is allowed for an address: all that IPv4 has for a machine itself, or the one address of IPv6. */
const networkOf = (address: string): string => (address.includes(":") ? `${address}/128` : "127.0.0.0/8")

/** Values to be added to lists of `[web]`. */
export interface LoopbackAccess {
  readonly allowed_private_hosts: ReadonlyArray<string>
  readonly allowed_private_cidrs: ReadonlyArray<string>
}

/**
 * The host of a URL when it is this machine whatever a resolver says: `localhost`, an address of 127.0.0.0/8, or `::1`,
 * as the lists of `[web]` write it (without brackets). A port that a variable fills in does not matter.
 */
export const loopbackHost = (url: string): string | undefined => {
  const plain = url.replace(/:\$\{[^}]*\}(?=[/?#]|$)/, "")
  if (!URL.canParse(plain)) return undefined
  const host = new URL(plain).hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "")
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host) ? host : undefined
}

const holds = (network: string, address: string): boolean => {
  if (!ipaddr.isValidCIDR(network)) return false
  const [base, bits] = ipaddr.parseCIDR(network)
  const parsed = ipaddr.parse(address)
  return parsed.kind() === base.kind() && parsed.match(base, bits)
}

/** What the lists lack for a host that `loopbackHost` gave; empty lists when they admit it. */
export const lackingAccess = (
  web: Pick<WebSettings, "allowedPrivateHosts" | "allowedPrivateCidrs">,
  host: string
): LoopbackAccess => {
  const addresses = host === "localhost" ? localhostAddresses : [host]
  return {
    allowed_private_hosts: web.allowedPrivateHosts.some((allowed) => allowed.toLowerCase() === host) ? [] : [host],
    allowed_private_cidrs: addresses.flatMap((address) =>
      web.allowedPrivateCidrs.some((network) => holds(network, address)) ? [] : [networkOf(address)]
    )
  }
}

/** The lines of sigil.toml that give it, lists that are there already kept. */
export const accessLines = (
  web: Pick<WebSettings, "allowedPrivateHosts" | "allowedPrivateCidrs">,
  lacking: LoopbackAccess
): ReadonlyArray<string> => {
  const line = (key: string, added: ReadonlyArray<string>, there: ReadonlyArray<string>): ReadonlyArray<string> =>
    added.length === 0 ? [] : [`${key} = [${[...added, ...there].map((text) => JSON.stringify(text)).join(", ")}]`]
  return [
    "[web]",
    ...line("allowed_private_hosts", lacking.allowed_private_hosts, web.allowedPrivateHosts),
    ...line("allowed_private_cidrs", lacking.allowed_private_cidrs, web.allowedPrivateCidrs)
  ]
}

/**
 * Whether a URL, and then the addresses of its host, may be connected to: pure (R section 8.11, spec section 6).
 *
 * A refusal before the resolver is asked keeps the name itself from leaving. All addresses have to pass, because which
 * one is dialled is not ours to foresee. Loopback and private addresses need the exact host in `allowedPrivateHosts`
 * and the address in one of `allowedPrivateCidrs`; without TLS nothing but loopback is left, and never a credential.
 * Texts name the host, what is wrong and the lines of `[web]` that would admit it; never a path or query, which may
 * hold secrets.
 */
import { isIP } from "node:net"
import { type AddressClass, classify, type Classified, liesIn, networkFor } from "./AddressClass.ts"
import type { DestinationRules } from "./DestinationRules.ts"

/** Addresses of one name that are looked at; more is no honest answer (R section 8.11). */
export const MAX_ADDRESSES = 64

/** Names under which clouds give credentials to whoever asks from inside. */
const metadataHosts = [
  "metadata",
  "metadata.google.internal",
  "metadata.goog",
  "metadata.azure.internal",
  "metadata.azure.com",
  "metadata.packet.net",
  "metadata.platformequinix.com",
  "metadata.tencentyun.com",
  "metadata.ec2.internal",
  "instance-data",
  "instance-data.ec2.internal"
]

/** A place that may be dialled once its addresses pass. */
export interface Destination {
  /** Scheme, host and port: the only part of a URL that is ever shown or recorded. */
  readonly origin: string
  /** Host in lower case, ASCII, without brackets and trailing dot. */
  readonly host: string
  readonly port: number
  /** Whether TLS is spoken. */
  readonly encrypted: boolean
  /** Whether the host is an address, so that nothing is resolved. */
  readonly literal: boolean
}

/** Why not. */
export interface Refusal {
  readonly _tag: "Refuse"
  readonly reason: string
  readonly text: string
  readonly fix: string
}

/** What `judgeUrl` says. */
export type UrlVerdict = { readonly _tag: "Allow"; readonly destination: Destination } | Refusal
/** What `judgeAddresses` says; the addresses are in their shortest form, without doubles, in the order given. */
export type AddressVerdict = { readonly _tag: "Allow"; readonly addresses: ReadonlyArray<string> } | Refusal

/** What else is known of a connection to be. */
export interface Circumstances {
  /** Whether anything secret is sent along. */
  readonly credentials: boolean
  readonly rules: DestinationRules
  /** Whether a proxy dials, which cannot be held to private exceptions. */
  readonly proxied?: boolean
}

const classTexts: { readonly [kind in Exclude<AddressClass, "public">]: string } = {
  loopback: "an address of this machine",
  private: "an address of a private network",
  metadata: "the address of a cloud metadata service",
  unspecified: "the unspecified address",
  link_local: "a link-local address",
  multicast: "a multicast address",
  shared: "an address of a carrier's shared network",
  benchmarking: "an address for benchmarks",
  documentation: "an address for documentation",
  reserved: "a reserved address",
  embedded: "an IPv6 address that leads to a forbidden IPv4 address",
  invalid: "not a plain IP address"
}
const NEVER = "No setting admits this address. Declare the server with another address."

const refuse = (reason: string, text: string, fix: string): Refusal => ({ _tag: "Refuse", reason, text, fix })

/** A host as rules and URLs are compared: ASCII, lower case, no brackets, no trailing dot. */
const hostOf = (text: string): string => {
  const bare = text.trim()
  const spelled = isIP(bare) === 6 ? `[${bare}]` : bare
  const ascii = URL.canParse(`http://${spelled}`) ? new URL(`http://${spelled}`).hostname : bare.toLowerCase()
  return ascii.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "")
}

const isBelow = (host: string, domain: string): boolean => {
  const above = hostOf(domain.replace(/^\*?\./, ""))
  return above !== "" && (host === above || host.endsWith(`.${above}`))
}

const isLocalName = (host: string): boolean => host === "localhost" || host.endsWith(".localhost")

/** Whether the user named this exact host as one that may be private. */
const isNamed = (host: string, rules: DestinationRules): boolean =>
  rules.allowedPrivateHosts.some((entry) => hostOf(entry) === host)

const listLine = (key: string, present: ReadonlyArray<string>, missing: ReadonlyArray<string>): string =>
  `${key} = [${[...new Set([...present, ...missing])].map((entry) => JSON.stringify(entry)).join(", ")}]`

/** The lines of `[web]` that admit a host with these networks. */
const admitting = (host: string, networks: ReadonlyArray<string>, rules: DestinationRules): string =>
  `If you trust it, put these lines into [web] of sigil.toml: ${listLine("allowed_private_hosts", rules.allowedPrivateHosts, [host])} and ` +
  `${listLine("allowed_private_cidrs", rules.allowedPrivateCidrs, networks)}`

const judgeLists = (host: string, rules: DestinationRules): Refusal | undefined => {
  const blocking = rules.blockedDomains.find((domain) => isBelow(host, domain))
  if (blocking !== undefined)
    return refuse(
      "domain_blocked",
      `The host '${host}' is blocked by [web] blocked_domains ("${blocking}").`,
      "Remove the entry from blocked_domains in [web] of sigil.toml."
    )
  if (rules.allowedDomains.length > 0 && !rules.allowedDomains.some((domain) => isBelow(host, domain)))
    return refuse(
      "domain_not_allowed",
      `The host '${host}' is none of those in [web] allowed_domains.`,
      `If you trust it, put this line into [web] of sigil.toml: ${listLine("allowed_domains", rules.allowedDomains, [host])}`
    )
  return undefined
}

/** Judges what a host that is an address is, as far as no list can admit it. */
const judgeLiteral = (host: string): Refusal | undefined => {
  const { class: kind } = classify(host)
  return kind === "public" || kind === "loopback" || kind === "private"
    ? undefined
    : refuse("address_forbidden", `The host '${host}' is ${classTexts[kind]}.`, NEVER)
}

const judgeProxied = (
  host: string,
  encrypted: boolean,
  literal: boolean,
  rules: DestinationRules
): Refusal | undefined => {
  const local = isLocalName(host) || isNamed(host, rules) || (literal && classify(host).class !== "public")
  if (encrypted && !local) return undefined
  return refuse(
    "proxy_private",
    local
      ? `The host '${host}' is of this machine or a private network, and those are not reached through a proxy.`
      : `The connection to '${host}' is not encrypted, and only this machine is spoken to without encryption.`,
    local
      ? `Add ${host} to the variable NO_PROXY, or set [web] proxy_mode = "direct".`
      : "Declare the server with an https:// address."
  )
}

const judgePlain = (
  host: string,
  literal: boolean,
  credentials: boolean,
  rules: DestinationRules
): Refusal | undefined => {
  if (credentials)
    return refuse(
      "credentials_unencrypted",
      `A credential would be sent to '${host}' without encryption.`,
      "Declare the server with an https:// address, or remove its credentials."
    )
  if (literal ? classify(host).class === "loopback" : isNamed(host, rules)) return undefined
  return refuse(
    "not_encrypted",
    `The connection to '${host}' is not encrypted, and only this machine is spoken to without encryption.`,
    "Declare the server with an https:// address."
  )
}

/** Where a URL of one of the four schemes leads, as it is dialled and as rules are compared. */
export const placeOf = (url: URL): Pick<Destination, "host" | "port" | "encrypted"> => {
  const encrypted = url.protocol === "https:" || url.protocol === "wss:"
  return { host: hostOf(url.hostname), port: url.port === "" ? (encrypted ? 443 : 80) : Number(url.port), encrypted }
}

/**
 * Judges a URL before anything is resolved. Schemes http, https, ws and wss; no user name, password or fragment. Any
 * port: it stands in the user's own entry.
 */
export const judgeUrl = (text: string, given: Circumstances): UrlVerdict => {
  const declare = "Declare the server with an https:// address."
  if (!URL.canParse(text)) return refuse("url_invalid", "The server's address is not a URL.", declare)
  const url = new URL(text)
  const { rules } = given
  const { host, port, encrypted } = placeOf(url)
  if (!encrypted && url.protocol !== "http:" && url.protocol !== "ws:")
    return refuse(
      "url_invalid",
      `The scheme of the server's address is "${url.protocol}", which cannot be dialled.`,
      declare
    )
  if (url.username !== "" || url.password !== "" || url.hash !== "")
    return refuse(
      "url_invalid",
      `The address of '${url.hostname}' holds a user name, a password or a fragment.`,
      "Remove it from the URL; credentials belong into headers."
    )
  if (host === "" || host.includes("%"))
    return refuse("url_invalid", "The server's address names no usable host.", declare)
  const literal = isIP(host) !== 0
  if (metadataHosts.includes(host))
    return refuse("address_forbidden", `The host '${host}' is a cloud metadata service.`, NEVER)
  const early = (literal ? judgeLiteral(host) : undefined) ?? judgeLists(host, rules)
  if (early !== undefined) return early
  if (given.proxied === true) {
    const refusal = judgeProxied(host, encrypted, literal, rules)
    if (refusal !== undefined) return refusal
  }
  if (isLocalName(host) && (encrypted || !given.credentials) && !isNamed(host, rules))
    return refuse(
      "host_local",
      `The host '${host}' is this machine, which is not connected to unless you say so.`,
      admitting(host, ["127.0.0.0/8", "::1/128"], rules)
    )
  if (!encrypted) {
    const refusal = judgePlain(host, literal, given.credentials, rules)
    if (refusal !== undefined) return refusal
  }
  const destination: Destination = {
    origin: url.origin,
    host,
    port,
    encrypted,
    literal
  }
  if (literal) {
    const verdict = judgeAddresses(destination, [host], rules)
    if (verdict._tag === "Refuse") return verdict
  }
  return { _tag: "Allow", destination }
}

/** Judges all addresses of a destination's host. Never asked for a proxied connection: the proxy resolves. */
export function judgeAddresses(
  { host, encrypted }: Destination,
  given: ReadonlyArray<string>,
  rules: DestinationRules
): AddressVerdict {
  if (given.length === 0 || given.length > MAX_ADDRESSES)
    return refuse(
      "address_count",
      `The host '${host}' has ${given.length} addresses; between 1 and ${MAX_ADDRESSES} are expected.`,
      "Check the name in the server's address."
    )
  const found = given.map((address) => classify(address))
  const named = isNamed(host, rules)
  const admitted = (one: Classified): boolean =>
    named && rules.allowedPrivateCidrs.some((network) => liesIn(one.address, network))
  const missing: Array<Classified> = []
  for (const one of found) {
    const { address, class: kind } = one
    if (kind === "loopback" || kind === "private") {
      if (!admitted(one)) missing.push(one)
    } else if (kind !== "public")
      return refuse("address_forbidden", `The host '${host}' has ${classTexts[kind]} (${address}).`, NEVER)
    if (!encrypted && kind !== "loopback")
      return refuse(
        "not_encrypted",
        `The connection to '${host}' is not encrypted, and ${address} is not this machine.`,
        "Declare the server with an https:// address."
      )
  }
  const [first] = missing
  if (first !== undefined && first.class !== "public")
    return refuse(
      "address_private",
      `The host '${host}' has ${classTexts[first.class]} (${first.address}), which is not connected to unless you say so.`,
      admitting(host, missing.map(networkFor), rules)
    )
  return { _tag: "Allow", addresses: [...new Set(found.map(({ address }) => address))] }
}

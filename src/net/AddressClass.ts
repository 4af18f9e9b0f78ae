/**
 * What an IP address is, as far as it matters to whoever is about to connect to it: pure (R section 8.11).
 *
 * Only what is known to be public is `public`; every other block of the IANA special-purpose registries has a class
 * that forbids it. An IPv6 address that carries an IPv4 address is judged by what it carries, since a translator or
 * tunnel on the way delivers it there: mapped addresses are that IPv4 address; the others (NAT64, 6to4, ISATAP) are
 * public around a public address and `embedded` around anything else. Where the embedding itself is obsolete or local
 * to a network (compatible, Teredo, SIIT, 64:ff9b:1::/48) the class is `reserved` whatever it carries.
 */
import ipaddr from "ipaddr.js"
import { isIP } from "node:net"

/** Class of an address. `loopback` and `private` can be admitted by the user's rules; the rest, but `public`, never. */
export type AddressClass =
  | "public"
  | "loopback"
  | "private"
  | "metadata"
  | "unspecified"
  | "link_local"
  | "multicast"
  | "shared"
  | "benchmarking"
  | "documentation"
  | "reserved"
  | "embedded"
  | "invalid"

/** An address in its shortest form (a mapped one as IPv4), and its class. */
export interface Classified {
  readonly address: string
  readonly class: AddressClass
}

/** First match counts. Metadata services: AWS (also ECS, EKS), Azure, Alibaba, Oracle; GCP uses the first one. */
const blocks4: ReadonlyArray<readonly [string, AddressClass]> = [
  ["169.254.169.254/32", "metadata"],
  ["169.254.170.2/32", "metadata"],
  ["169.254.170.23/32", "metadata"],
  ["168.63.129.16/32", "metadata"],
  ["100.100.100.200/32", "metadata"],
  ["192.0.0.192/32", "metadata"],
  ["0.0.0.0/8", "unspecified"],
  ["127.0.0.0/8", "loopback"],
  ["10.0.0.0/8", "private"],
  ["172.16.0.0/12", "private"],
  ["192.168.0.0/16", "private"],
  ["169.254.0.0/16", "link_local"],
  ["100.64.0.0/10", "shared"],
  ["192.0.0.0/24", "reserved"],
  ["192.0.2.0/24", "documentation"],
  ["198.51.100.0/24", "documentation"],
  ["203.0.113.0/24", "documentation"],
  ["192.88.99.0/24", "reserved"],
  ["198.18.0.0/15", "benchmarking"],
  ["224.0.0.0/4", "multicast"],
  ["240.0.0.0/4", "reserved"],
  ["0.0.0.0/0", "public"]
]

/** First match counts; a number is the byte at which an IPv4 address is embedded. */
const blocks6: ReadonlyArray<readonly [string, AddressClass | number]> = [
  ["fd00:ec2::254/128", "metadata"],
  ["fd00:ec2::23/128", "metadata"],
  ["fd20:ce::254/128", "metadata"],
  ["::/128", "unspecified"],
  ["::1/128", "loopback"],
  ["64:ff9b::/96", 12],
  ["2002::/16", 2],
  ["2001:db8::/32", "documentation"],
  ["3fff::/20", "documentation"],
  ["2001::/23", "reserved"],
  ["fc00::/7", "private"],
  ["fe80::/10", "link_local"],
  ["ff00::/8", "multicast"],
  ["2000::/3", "public"],
  ["::/0", "reserved"]
]

const table4 = blocks4.map(([block, kind]) => ({ range: ipaddr.IPv4.parseCIDR(block), kind }))
const table6 = blocks6.map(([block, kind]) => ({ range: ipaddr.IPv6.parseCIDR(block), kind }))

const classOf4 = (address: ipaddr.IPv4): AddressClass =>
  table4.find(({ range }) => address.match(range))?.kind ?? "reserved"

/** The class of what an IPv6 address carries at `offset`. */
const carried = (bytes: ReadonlyArray<number>, offset: number): AddressClass =>
  classOf4(new ipaddr.IPv4(bytes.slice(offset, offset + 4))) === "public" ? "public" : "embedded"

/** ISATAP (RFC 5214): the interface id ::0:5efe:a.b.c.d, under any prefix, with or without the universal bit. */
const isIsatap = (bytes: ReadonlyArray<number>): boolean =>
  (bytes[8] === 0 || bytes[8] === 2) && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe

const classOf6 = (address: ipaddr.IPv6): AddressClass => {
  const bytes = address.toByteArray()
  const kind = table6.find(({ range }) => address.match(range))?.kind ?? "reserved"
  const found = typeof kind === "number" ? carried(bytes, kind) : kind
  return found === "public" && isIsatap(bytes) ? carried(bytes, 12) : found
}

/** The address behind a text of the usual form; no zone, no other number bases. */
const parse = (text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined => {
  const family = isIP(text)
  if (family === 0 || text.includes("%")) return undefined
  // ipaddr.js takes ::a.b.c.d for a mapped address; the system does not. The URL parser spells it in groups.
  const address = ipaddr.parse(family === 4 ? text : new URL(`http://[${text}]`).hostname.slice(1, -1))
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address
}

/** Judges one address; what is no plain address, or names a zone, is `invalid`. */
export const classify = (text: string): Classified => {
  const address = parse(text)
  if (address === undefined) return { address: text, class: "invalid" }
  return {
    address: address.toString(),
    class: address instanceof ipaddr.IPv4 ? classOf4(address) : classOf6(address)
  }
}

/** Whether an address lies in a network such as `10.0.0.0/8`; a text that is no network holds nothing. */
export const liesIn = (address: string, network: string): boolean => {
  const parsed = parse(address)
  if (parsed === undefined || !ipaddr.isValidCIDR(network)) return false
  const [base, bits] = ipaddr.parseCIDR(network)
  if (parsed instanceof ipaddr.IPv4) return base instanceof ipaddr.IPv4 && parsed.match(base, bits)
  return base instanceof ipaddr.IPv6 && parsed.match(base, bits)
}

/** The smallest network that the class of an admissible address suggests: all of loopback, else this one address. */
export const networkFor = ({ address, class: kind }: Classified): string => {
  if (address.includes(":")) return `${address}/128`
  return kind === "loopback" ? "127.0.0.0/8" : `${address}/32`
}

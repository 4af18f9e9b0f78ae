/**
 * W3C Baggage as text: names with values that travel with a trace. Pure; limits are those of the specification.
 *
 * Values are percent-encoded UTF-8 on the wire and plain text here; properties of a member are kept as written.
 * A member that is not valid is left out, the others stay.
 */

/** Members that are passed on (W3C Baggage 3.3.2). */
export const MAX_MEMBERS = 64
/** Bytes of the whole (W3C Baggage 3.3.2); the printed form is ASCII. */
export const MAX_BYTES = 8_192

/** One entry. */
export interface Member {
  /** A token of RFC 7230. */
  readonly key: string
  /** Decoded. */
  readonly value: string
  /** Properties as written, without the leading semicolon; empty when there are none. */
  readonly properties: string
}

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
// baggage-octet: visible ASCII but for the quote, comma, semicolon and backslash.
const octets = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*$/
const property =
  /^[ \t]*[!#$%&'*+\-.^_`|~0-9A-Za-z]+[ \t]*(?:=[ \t]*[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*[ \t]*)?$/

const trim = (text: string): string => text.replace(/^[ \t]+|[ \t]+$/g, "")

/** Percent-decoding that, as the specification asks, puts U+FFFD where the bytes are no UTF-8. */
const decode = (text: string): string => {
  if (!text.includes("%")) return text
  try {
    return decodeURIComponent(text)
  } catch {
    const bytes = text.replace(/%([0-9A-Fa-f]{2})/g, (_, pair: string) =>
      String.fromCharCode(Number.parseInt(pair, 16))
    )
    return Buffer.from(bytes, "latin1").toString("utf8")
  }
}

/** Everything that is no baggage-octet, and the percent sign, as escapes of its UTF-8 bytes. */
const encode = (text: string): string =>
  Array.from(Buffer.from(text, "utf8"), (byte) => {
    const character = String.fromCharCode(byte)
    return byte < 0x80 && byte !== 0x25 && octets.test(character)
      ? character
      : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`
  }).join("")

const parseMember = (text: string): Member | undefined => {
  const [pair = "", ...properties] = text.split(";")
  const at = pair.indexOf("=")
  if (at < 0) return undefined
  const key = trim(pair.slice(0, at))
  const value = trim(pair.slice(at + 1))
  if (!token.test(key) || !octets.test(value) || !properties.every((one) => property.test(one))) return undefined
  return { key, value: decode(value), properties: properties.map(trim).join(";") }
}

/** Reads baggage; what is not valid or beyond the limits is left out. */
export const parse = (text: string): ReadonlyArray<Member> => {
  if (text === "" || text.length > MAX_BYTES) return []
  const members: Array<Member> = []
  for (const part of text.split(",")) {
    const member = parseMember(part)
    if (member !== undefined) members.push(member)
    if (members.length === MAX_MEMBERS) break
  }
  return members
}

/** Prints baggage within the limits: members that no longer fit are left out whole. */
export const print = (members: ReadonlyArray<Member>): string => {
  let printed = ""
  for (const { key, value, properties } of members.slice(0, MAX_MEMBERS)) {
    const part = `${key}=${encode(value)}${properties === "" ? "" : `;${properties}`}`
    const longer = printed === "" ? part : `${printed},${part}`
    if (longer.length <= MAX_BYTES) printed = longer
  }
  return printed
}

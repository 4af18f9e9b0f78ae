/**
 * The headers that go with every message of a client: checked once, before anything is recorded or dialled (R
 * section 1.4, run-time rules).
 */
import * as Redacted from "effect/Redacted"
import { KIB } from "../base/Units.ts"
import { VERSION } from "../base/Version.ts"
import { type NetError, notSent } from "./NetError.ts"

/** Names and values of a client's own headers together (R section 1.4). */
export const MAX_HEADER_BYTES = 32 * KIB

/** One header that the user configured. */
export interface ProfileHeader {
  readonly name: string
  readonly value: Redacted.Redacted
  /** Whether it proves who the user is, so that it needs TLS. A name that says so counts as well. */
  readonly credential: boolean
}

/** What the protocol or this client sets itself. */
const owned = new Set([
  "host",
  "content-length",
  "transfer-encoding",
  "connection",
  "accept",
  "accept-encoding",
  "content-type",
  "origin",
  "user-agent",
  "mcp-protocol-version",
  "mcp-session-id",
  "last-event-id",
  "cookie",
  "set-cookie",
  "proxy-authorization",
  "referer",
  "te",
  "trailer",
  "upgrade",
  "expect",
  "keep-alive",
  "proxy-connection"
])

/** Headers of an answer that would say two things at once if they came twice (R section 8.2). */
const critical = [
  "content-type",
  "content-length",
  "content-encoding",
  "transfer-encoding",
  "location",
  "mcp-session-id",
  "mcp-protocol-version"
]

/** Sent with every message; the answer must not be compressed, or its size could not be bounded. */
export const fixedHeaders: { readonly [name: string]: string } = {
  "user-agent": `sigil/${VERSION}`,
  "accept-encoding": "identity"
}

/** Whether a name says that its value is a secret. */
export const isSensitive = (name: string): boolean => {
  const plain = name.toLowerCase().replaceAll(/[-_]/g, "")
  return plain === "authorization" || /apikey|token|secret|credential/.test(plain)
}

/** Whether any header makes TLS necessary. */
export const holdsCredential = (headers: ReadonlyArray<ProfileHeader>): boolean =>
  headers.some(({ name, credential }) => credential || isSensitive(name))

const isToken = (name: string): boolean => /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/.test(name)
/** Printable Latin-1: what a header line can carry. */
const isSendable = (value: string): boolean => /^[\u0020-\u007e\u0080-\u00ff]+$/.test(value)

/** The first thing wrong with the headers, by name, never by value. */
export const headersFault = (headers: ReadonlyArray<ProfileHeader>): NetError | undefined => {
  const fault = (reason: string, text: string): NetError => notSent("SIGIL_CONFIG_INVALID", reason, text)
  const seen = new Set<string>()
  let bytes = 0
  for (const { name, value } of headers) {
    const key = name.toLowerCase()
    const text = Redacted.value(value)
    if (!isToken(name)) return fault("header_invalid", "The name of a configured header is not an HTTP token.")
    if (owned.has(key)) return fault("header_owned", `The header '${name}' is set by sigil and cannot be configured.`)
    if (seen.has(key)) return fault("header_duplicate", `The header '${name}' is configured more than once.`)
    if (!isSendable(text))
      return fault(
        "header_invalid",
        `The value of the header '${name}' is empty or holds characters that cannot be sent.`
      )
    seen.add(key)
    bytes += name.length + text.length
  }
  return bytes > MAX_HEADER_BYTES
    ? fault("header_too_large", `The configured headers hold ${bytes} bytes; at most ${MAX_HEADER_BYTES} are sent.`)
    : undefined
}

/** The name of a header that came more than once and must not have. */
export const doubled = (headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }) =>
  critical.find((name) => Array.isArray(headers[name]))

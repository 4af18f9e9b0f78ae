/**
 * What a server says when it asks for input, made fit to be shown (R section 9.5). Pure.
 *
 * The text stands beside a form that somebody trusts because sigil shows it. It may not steer the terminal, turn text
 * round or send people somewhere: escape sequences go, addresses are replaced. An address to open has a mode of its
 * own, in which sigil shows where it leads.
 */
import { isIP } from "node:net"
import { domainToUnicode } from "node:url"
import { KIB } from "../base/Units.ts"

/** Bytes of a message (R section 9.5). */
export const MAX_MESSAGE_BYTES = 4 * KIB
/** Bytes of an address to open. */
export const MAX_URL_BYTES = 4 * KIB
/** What stands for an address in a message. */
const OMITTED = "[url omitted]"
/** What is shown for a message without words. */
const GENERIC = "The server asks for input."

/* eslint-disable no-control-regex */
// OSC, DCS, SOS, PM and APC strings with their end, or to the end of the text without one.
const strings =
  /(?:\u001b[\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c|$)?/g
// CSI sequences, then two-character escapes (ECMA-48).
const sequences = /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]?|\u001b[ -/]*[0-~]?/g
// What is left of C0 and C1 but newline and tab, DEL, and everything that is invisible or turns text round.
const unseen =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g
/* eslint-enable no-control-regex */
const addresses = /\b(?:[a-z][a-z0-9+.-]{0,30}:\/\/|www\.|(?:mailto|javascript|data|file):)\S+/gi

/** A text without escape sequences, controls and marks that turn text round; newlines and tabs stay. */
export const withoutControls = (text: string): string =>
  text.replaceAll("\r\n", "\n").replace(strings, "").replace(sequences, "").replace(unseen, "")

/** A message as it may be shown, before secrets are hidden in it. */
export const cleanMessage = (message: string): string => {
  const clean = withoutControls(message)
    .replace(addresses, OMITTED)
    .replace(/[ \t]+\n/g, "\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim()
  return clean === "" ? GENERIC : clean
}

/** An address that may be shown, or why not. */
export type SafeUrl =
  | { readonly _tag: "Url"; readonly url: string; readonly host: string; readonly warnings: ReadonlyArray<string> }
  | { readonly _tag: "Refused"; readonly text: string }

/** What is odd about where an address leads. */
const warningsOf = (url: URL): ReadonlyArray<string> => {
  const host = url.hostname
  const read = domainToUnicode(host)
  const bare = host.replace(/^\[|\]$/g, "")
  return [
    ...(host.split(".").some((label) => label.startsWith("xn--"))
      ? [`The host holds letters that may look like others (Punycode): it reads '${read}', and is really '${host}'.`]
      : []),
    ...(isIP(bare) === 0 ? [] : ["The host is a bare IP address, not a name."]),
    ...(url.port === "" ? [] : [`The address names the unusual port ${url.port}.`])
  ]
}

/** An address that a server wants opened: https, without a user name. Nothing is looked up or fetched. */
export const readUrl = (text: unknown): SafeUrl => {
  const refused = (why: string): SafeUrl => ({ _tag: "Refused", text: why })
  if (typeof text !== "string") return refused("'url' is not a text.")
  if (Buffer.byteLength(text) > MAX_URL_BYTES) return refused(`The address is longer than ${MAX_URL_BYTES} bytes.`)
  if (!URL.canParse(text)) return refused("'url' is not an address.")
  const url = new URL(text)
  if (url.protocol !== "https:") return refused("Only https addresses can be opened.")
  // `https://bank.example@evil.example/` leads to the second one.
  if (url.username !== "" || url.password !== "") return refused("The address holds a user name or password.")
  return { _tag: "Url", url: url.href, host: url.hostname, warnings: warningsOf(url) }
}

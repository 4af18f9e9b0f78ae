/**
 * Hides secrets in the bytes that a server sends as base64: images, audio, blobs of resources.
 *
 * Such bytes become files, so they are searched as what they are. Text gets the placeholder; anything else keeps its
 * length and has the secret's bytes overwritten, which most readers of binary formats survive. Base64 that spells a
 * secret itself, before it is decoded, is overwritten too.
 */
import { isUtf8 } from "node:buffer"
import { PLACEHOLDER, type SecretSearch } from "./SecretSearch.ts"
import * as Spans from "./TextSpans.ts"

/** Overwrites a byte of a binary format. */
const FILLER = "*".charCodeAt(0)

/** Both alphabets, line ends allowed: what the decoder reads without passing anything over. */
const base64 = /^[\w+/\s-]*={0,2}\s*$/

/** Whether a base64 text or its bytes hold a secret. */
export const finds = (encoded: string, search: SecretSearch): boolean =>
  search.finds(encoded) || (base64.test(encoded) && search.finds(Buffer.from(encoded, "base64").toString("latin1")))

/** The base64 text without the secrets of its bytes; the same string when there are none. */
export const hide = (encoded: string, search: SecretSearch): string => {
  if (!base64.test(encoded)) return search.hide(encoded)
  const bytes = Buffer.from(encoded, "base64")
  const spans = search.spans(bytes.toString("latin1"))
  const safe =
    spans === undefined ? encoded : (isUtf8(bytes) ? replaced(bytes, spans) : filled(bytes, spans)).toString("base64")
  const spelled = search.spans(safe)
  return spelled === undefined ? safe : overwritten(safe, spelled)
}

const replaced = (bytes: Buffer, spans: ReadonlyArray<number>): Buffer => {
  // One character per byte, so the parts hold for both; the placeholder is ASCII.
  return Buffer.from(Spans.replace(bytes.toString("latin1"), spans, PLACEHOLDER), "latin1")
}

const filled = (bytes: Buffer, spans: ReadonlyArray<number>): Buffer => {
  for (let at = 0; at < spans.length; at += 2) bytes.fill(FILLER, spans[at], spans[at + 1])
  return bytes
}

const overwritten = (text: string, spans: ReadonlyArray<number>): string => {
  let out = ""
  let at = 0
  for (let index = 0; index < spans.length; index += 2) {
    const from = spans[index] ?? 0
    const to = spans[index + 1] ?? 0
    out += text.slice(at, from) + "A".repeat(to - from)
    at = to
  }
  return out + text.slice(at)
}

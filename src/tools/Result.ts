/**
 * What of a tool's result a model or a terminal sees, and where the rest is kept (spec section 9, "Results").
 *
 * Takes a result that is already redacted, so no cut can leave half of a secret. Every kind of block survives;
 * each datum is shown once; base64 never is. Content that is cut carries no marker, a separate last block of fixed
 * words and numbers says how much is missing and which artifact has the whole. `isError` is never lost.
 */
import * as Effect from "effect/Effect"
import { canonicalize } from "json-canonicalize"
import { clip, escapeBlock, escapeLine } from "../base/Display.ts"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { KIB } from "../base/Units.ts"
import { holdsLossless, parse, stringify } from "../protocol/Codec.ts"
import type { Stored } from "./Artifacts.ts"
import { hasFailed } from "../protocol/ResultShape.ts"
import * as Tokens from "./Tokens.ts"

/** Bounds of what is shown. */
export interface Limits {
  readonly bytes: number
  readonly lines: number
  readonly tokens: number
}

/** 32 KiB, 2,000 lines, 25,000 tokens: whichever is reached first (spec section 9). */
export const defaultLimits: Limits = { bytes: 32 * KIB, lines: 2_000, tokens: 25_000 }
/** The whole result. */
export const noLimits: Limits = { bytes: Infinity, lines: Infinity, tokens: Infinity }

/** The limits with the token cap of the environment; anything but a positive number is the default. */
export const limitsFrom = (get: (name: string) => string | undefined): Limits => {
  const text = get("SIGIL_MAX_MCP_OUTPUT_TOKENS") ?? get("MAX_MCP_OUTPUT_TOKENS")
  const tokens = Math.floor(Number(text))
  return text !== undefined && Number.isFinite(tokens) && tokens > 0 ? { ...defaultLimits, tokens } : defaultLimits
}

/** A result as it is shown. */
export interface Shown {
  /** Blocks as on the wire; media without data, texts cut. */
  readonly content: ReadonlyArray<JsonObject>
  /** Absent when equal to the text, or cut. */
  readonly structuredContent?: Json
  readonly isError: boolean
  /** The same as one text. */
  readonly text: string
  readonly truncated: boolean
  readonly limits: Limits
  readonly returnedBytes: number
  readonly totalBytes: number
  /** The whole, when something was cut. */
  readonly artifact?: Stored
  readonly warnings: ReadonlyArray<string>
}

/** Keeps bytes; `undefined` when that failed. */
export type Keep = (bytes: Uint8Array, extension: string) => Effect.Effect<Stored | undefined>

/** Part of a result: the block a document has, and the text a reader sees of it. */
interface Part {
  readonly block: JsonObject | undefined
  readonly text: string
  /** The block with its text replaced by what was kept of it. */
  readonly withText?: (text: string) => JsonObject
}

const extensions: { readonly [type: string]: string } = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/gif": "gif",
  "image/webp": "webp",
  "image/svg+xml": "svg",
  "audio/wav": "wav",
  "audio/mpeg": "mp3",
  "audio/ogg": "ogg",
  "application/pdf": "pdf",
  "application/json": "json",
  "text/plain": "txt"
}

/** File extension of a media type. */
export const extensionOf = (mimeType: string): string =>
  Object.hasOwn(extensions, mimeType) ? (extensions[mimeType] ?? "bin") : "bin"

const text = (value: Json | undefined): string => (typeof value === "string" ? value : "")

const artifactDocument = (stored: Stored | undefined): JsonObject =>
  stored === undefined ? {} : { artifact: { handle: stored.handle, path: stored.path, bytes: stored.bytes } }

const without = (object: JsonObject, ...keys: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)))

/** Characters of a server's word inside a line of ours. */
const MAX_WORD = 512
/** Bytes of everything in a block that is not its text or data. */
const MAX_EXTRAS = 4 * KIB

/** A server's word inside a line of ours: it must not be able to end the line and begin another. */
const word = (value: string): string => clip(escapeLine(value), MAX_WORD)

const mediaLine = (kind: string, mimeType: string, bytes: number, stored: Stored | undefined): string =>
  `[${word(kind)}${mimeType === "" ? "" : ` ${word(mimeType)}`}, ${bytes} bytes${stored === undefined ? "" : `, artifact ${stored.handle}`}]`

/** Members that stay when the rest of a block is too much. */
const essential = ["type", "name", "title", "uri", "mimeType"]

/** A block without members that nobody sees, when they are large: they would pass the bounds unseen. */
const slim = (block: JsonObject, ...content: ReadonlyArray<string>): JsonObject => {
  const extras = without(block, ...content)
  if (Buffer.byteLength(stringify(extras)) <= MAX_EXTRAS) return block
  return Object.fromEntries(
    Object.entries(block)
      .filter(([key]) => content.includes(key) || essential.includes(key))
      .map(([key, value]) => [key, typeof value === "string" && !content.includes(key) ? clip(value, MAX_WORD) : value])
  )
}

/** A block of a type that is not known, without the base64 that such blocks carry. */
const unknownPart = (block: JsonObject): Part => {
  const lean: JsonObject = Object.fromEntries(
    Object.entries(block).map(([key, value]) =>
      (key === "data" || key === "blob") && typeof value === "string" && value.length > MAX_WORD
        ? [key, `[${value.length} characters]`]
        : [key, value]
    )
  )
  return { block: lean, text: stringify(lean) }
}

const mediaPart = (block: JsonObject, keep: Keep): Effect.Effect<Part> =>
  Effect.gen(function* () {
    const bytes = Buffer.from(text(own(block, "data")), "base64")
    const mimeType = text(own(block, "mimeType"))
    const stored = yield* keep(bytes, extensionOf(mimeType))
    return {
      block: {
        ...slim(without(block, "data", "mimeType")),
        mime_type: mimeType,
        bytes: bytes.length,
        ...artifactDocument(stored)
      },
      text: mediaLine(text(own(block, "type")), mimeType, bytes.length, stored)
    }
  })

const resourcePart = (block: JsonObject, keep: Keep): Effect.Effect<Part> =>
  Effect.gen(function* () {
    const resource = own(block, "resource")
    if (!isJsonObject(resource)) return unknownPart(block)
    const uri = text(own(resource, "uri"))
    const blob = own(resource, "blob")
    if (typeof blob !== "string") {
      const lean = { ...slim(block, "resource"), resource: slim(resource, "text") }
      const withText = (kept: string): JsonObject => ({ ...lean, resource: { ...lean.resource, text: kept } })
      return { block: lean, text: text(own(resource, "text")), withText }
    }
    const bytes = Buffer.from(blob, "base64")
    const mimeType = text(own(resource, "mimeType"))
    const stored = yield* keep(bytes, extensionOf(mimeType))
    return {
      block: {
        ...slim(block, "resource"),
        resource: {
          ...slim(without(resource, "blob", "mimeType")),
          mime_type: mimeType,
          bytes: bytes.length,
          ...artifactDocument(stored)
        }
      },
      text: mediaLine(`resource ${uri}`, mimeType, bytes.length, stored)
    }
  })

const partOf = (block: JsonObject, keep: Keep): Effect.Effect<Part> => {
  switch (own(block, "type")) {
    case "text": {
      const lean = slim(block, "text")
      return Effect.succeed({
        block: lean,
        text: text(own(block, "text")),
        withText: (kept) => ({ ...lean, text: kept })
      })
    }
    case "image":
    case "audio":
      return mediaPart(block, keep)
    case "resource":
      return resourcePart(block, keep)
    case "resource_link": {
      const name = text(own(block, "name"))
      const description = text(own(block, "description"))
      return Effect.succeed({
        block: slim(block),
        text: `[resource link ${name === "" ? "" : `${word(name)} `}${word(text(own(block, "uri")))}${description === "" ? "" : `: ${word(description)}`}]`
      })
    }
    default:
      return Effect.succeed(unknownPart(block))
  }
}

const blocksOf = (result: JsonObject): ReadonlyArray<JsonObject> => {
  const content = own(result, "content")
  // Servers of the first hour answered with a plain string (R section 10).
  if (typeof content === "string") return [{ type: "text", text: content }]
  return Array.isArray(content) ? (content as ReadonlyArray<Json>).filter(isJsonObject) : []
}

/** The base64 text of a block that carries bytes. */
const encodedOf = (block: JsonObject): string | undefined => {
  const data = own(block, "data")
  if (typeof data === "string") return data
  const resource = own(block, "resource")
  const blob = isJsonObject(resource) ? own(resource, "blob") : undefined
  return typeof blob === "string" ? blob : undefined
}

/** Both alphabets of RFC 4648, line ends allowed: what the decoder reads without passing anything over. */
const BASE64_FORM = /^[\w+/\s-]*={0,2}\s*$/

/** What a result has that is shown differently from how it was meant. */
const odditiesOf = (result: JsonObject): ReadonlyArray<string> => {
  const content = own(result, "content")
  const found: Array<string> = []
  if (content === undefined && own(result, "structuredContent") === undefined) found.push("The answer has no content.")
  else if (content !== undefined && typeof content !== "string" && !Array.isArray(content))
    found.push("The answer's content is not a list; it is left out.")
  const dropped = Array.isArray(content) ? content.length - blocksOf(result).length : 0
  if (dropped > 0) found.push(`${dropped} entries of the answer's content are not content blocks; they are left out.`)
  for (const [index, block] of blocksOf(result).entries()) {
    if (own(block, "type") === "text" && typeof own(block, "text") !== "string")
      found.push(`Content block ${index + 1} is a text without a text.`)
    const encoded = encodedOf(block)
    if (encoded !== undefined && !BASE64_FORM.test(encoded))
      found.push(`The data of content block ${index + 1} is not valid base64; what could be decoded is kept.`)
  }
  return found
}

const canonical = (value: Json): string => (holdsLossless(value) ? stringify(value) : (canonicalize(value) ?? ""))

/** Whether a text says exactly what the structured value says. */
const saysTheSame = (said: string, structured: Json): boolean => {
  const trimmed = said.trimStart()
  if (trimmed === "") return false
  try {
    return canonical(parse(said)) === canonical(structured)
  } catch {
    return typeof structured === "string" && said === structured
  }
}

/** The longest prefix inside the limits; never half a character. */
const cut = (value: string, limits: Limits): string => {
  let kept = value
  if (Buffer.byteLength(kept) > limits.bytes) {
    const bytes = Buffer.from(kept)
    let end = Math.max(0, limits.bytes)
    while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
    kept = bytes.subarray(0, end).toString("utf8")
  }
  if (limits.lines !== Infinity) {
    let at = -1
    for (let line = 0; line < limits.lines; line += 1) {
      at = kept.indexOf("\n", at + 1)
      if (at < 0) break
    }
    if (at >= 0) kept = kept.slice(0, at)
    if (limits.lines <= 0) kept = ""
  }
  while (kept !== "" && Tokens.estimate(kept) > limits.tokens) {
    const share = Math.min(0.98, limits.tokens / Tokens.estimate(kept))
    kept = kept.slice(0, Math.floor(kept.length * share))
    if (/[\ud800-\udbff]$/.test(kept)) kept = kept.slice(0, -1)
  }
  return kept
}

/** Bounds a redacted result. `escape` shows control characters as escapes: for terminals. */
export const show = (
  result: JsonObject,
  options: { readonly limits: Limits; readonly escape: boolean; readonly keep: Keep }
): Effect.Effect<Shown> =>
  Effect.gen(function* () {
    const { limits, keep } = options
    const escape = options.escape ? escapeBlock : (value: string) => value
    const parts: Array<Part> = []
    for (const block of blocksOf(result)) parts.push(yield* partOf(block, keep))
    const structured = own(result, "structuredContent")
    const repeated = structured !== undefined && parts.some((part) => saysTheSame(part.text, structured))
    if (structured !== undefined && !repeated) parts.push({ block: undefined, text: stringify(structured, 2) })

    const texts = parts.map((part) => escape(part.text))
    const whole = texts.join("\n")
    const totalBytes = Buffer.byteLength(whole)
    // One cut through the whole: the bounds hold for all blocks together, line ends between them included.
    const returned = cut(whole, limits)
    const truncated = returned !== whole
    const content: Array<JsonObject> = []
    let structuredWhole = true
    let start = 0
    for (const [index, part] of parts.entries()) {
      const end = start + (texts[index] ?? "").length
      const complete = end <= returned.length
      if (part.block === undefined) structuredWhole = complete
      else if (complete) content.push(part.block)
      else if (start < returned.length && part.withText !== undefined)
        content.push(part.withText(returned.slice(start)))
      start = end + 1
    }
    const returnedBytes = Buffer.byteLength(returned)
    const stored = truncated ? yield* keep(Buffer.from(whole), "txt") : undefined
    const notice = truncated
      ? `[sigil: ${returnedBytes} of ${totalBytes} bytes are shown; ${stored === undefined ? "the rest could not be kept" : `artifact ${stored.handle} has the whole`}]`
      : undefined
    return {
      content: notice === undefined ? content : [...content, { type: "text", text: notice }],
      ...(structured === undefined || repeated || !structuredWhole ? {} : { structuredContent: structured }),
      isError: hasFailed(result),
      text: notice === undefined ? returned : `${returned}\n${notice}`,
      truncated,
      limits,
      returnedBytes,
      totalBytes,
      ...(stored === undefined ? {} : { artifact: stored }),
      warnings: odditiesOf(result)
    }
  })

/** The bytes of the only binary block of a result; `undefined` when there is none or more than one. */
export const onlyBinary = (result: JsonObject): Buffer | undefined => {
  const found = blocksOf(result).flatMap((block) => {
    const encoded = encodedOf(block)
    return encoded === undefined ? [] : [Buffer.from(encoded, "base64")]
  })
  return found.length === 1 ? found[0] : undefined
}

/**
 * One record of the audit log, and the arithmetic that chains records (spec section 13).
 *
 * A record's hash covers its RFC 8785 form without `hash`, and `prev` is the hash of the record before it, so a
 * changed, removed, inserted or swapped record no longer fits its neighbours. A line of the log is the RFC 8785
 * form of the whole record: there is one way to write a record, so a line that says the same in other bytes is
 * a changed line. Everything here is pure; texts in payloads were redacted by whoever made them.
 */
import * as crypto from "node:crypto"
import { canonicalize } from "json-canonicalize"
import * as Schema from "effect/Schema"
import type { JsonObject } from "../base/Json.ts"
import { MIB } from "../base/Units.ts"

/** Largest canonical payload, bytes (R section 12.1); a larger one is replaced by its size. */
export const MAX_PAYLOAD_BYTES = MIB
/** `prev` of the first record: there is none before it. */
export const GENESIS = `sha256:${"0".repeat(64)}`
/** The form of every hash. */
export const HASH_FORM = /^sha256:[0-9a-f]{64}$/

/** Every kind that sigil writes (R section 12.2, and sigil's own). Readers keep unknown ones. */
export const kinds = [
  "admission_refused",
  "approval_resolved",
  "egress_decision_recorded",
  "egress_disclosure_presented",
  "extension_process_lifecycle_recorded",
  "mcp_transport_authorization",
  "pin_recorded",
  "project_decision",
  "session_entry_recorded",
  "tool_execution_started",
  "tool_execution_finished",
  "workspace_mutation_detected",
  /** The log itself: a torn line was moved aside, a missing head was made again. */
  "audit_log_repaired"
] as const

/** A kind of record. */
export type Kind = (typeof kinds)[number]

/** What somebody wants recorded. The log adds the rest. */
export interface AuditEntry {
  readonly kind: Kind
  /** Redacted by the caller. Holds no numbers in lossless form. */
  readonly payload: JsonObject
  /**
   * The RFC 8785 text of the payload, from a caller that makes many records of one form. Then `payload` is not
   * looked at, and the caller answers for the form: `verify` would find any other.
   */
  readonly payloadText?: string | undefined
  /** Id of the call it belongs to. */
  readonly call?: string | undefined
  /** Exact name of the server it belongs to. */
  readonly server?: string | undefined
  /** On the disk before `append` returns, whatever `[audit] sync` says. */
  readonly durable?: boolean | undefined
}

/** A record as it is read back (spec section 1a). Keys of newer versions survive. */
export const AuditRecord = Schema.Struct({
  /** Counts from 1, across all files. */
  seq: Schema.Number.pipe(Schema.int(), Schema.positive()),
  /** RFC 3339, UTC, with milliseconds. */
  time: Schema.String,
  kind: Schema.String,
  /** Id of the run of sigil that wrote it. */
  run: Schema.String,
  call: Schema.optional(Schema.String),
  server: Schema.optional(Schema.String),
  prev: Schema.String.pipe(Schema.pattern(HASH_FORM)),
  payload: Schema.Record({ key: Schema.String, value: Schema.Unknown }),
  hash: Schema.String.pipe(Schema.pattern(HASH_FORM))
})
/** A record as it is read back. */
export type AuditRecord = typeof AuditRecord.Type

const isRecord = Schema.is(AuditRecord)

/** Where a chain stands: how many records there are, and the hash of the last one. */
export interface Link {
  readonly count: number
  readonly hash: string
}

/** The chain before its first record. */
export const emptyChain: Link = { count: 0, hash: GENESIS }

/** Whether plain JSON text of the value already is its RFC 8785 form: keys in order, numbers finite. */
const isOrdered = (value: unknown): boolean => {
  if (typeof value === "number") return Number.isFinite(value)
  if (typeof value !== "object" || value === null) return typeof value !== "bigint"
  if (Array.isArray(value)) return value.every(isOrdered)
  let before: string | undefined
  for (const [key, member] of Object.entries(value)) {
    if (before !== undefined && before > key) return false
    if (!isOrdered(member)) return false
    before = key
  }
  return true
}

/**
 * The RFC 8785 text of a JSON value.
 *
 * @throws TypeError or Error when the value is not JSON (cycles, bigints). Numbers that JSON does not have become null.
 */
export const canonicalText = (value: JsonObject): string => {
  // Keys that come in order, as those of the payload builders do, need no second printer.
  if (isOrdered(value)) return JSON.stringify(value)
  try {
    return canonicalize(value)
  } catch {
    // The printer takes one object that stands in two places for a cycle; a copy has no such object. It also has
    // null for numbers that JSON does not have: that is no reason to refuse what the record is about.
    const copy: unknown = JSON.parse(JSON.stringify(value))
    return canonicalize(copy)
  }
}

/**
 * The canonical text of a payload within bounds.
 *
 * @throws as `canonicalText`.
 */
export const payloadText = (payload: JsonObject): string => {
  const text = canonicalText(payload)
  if (text.length <= MAX_PAYLOAD_BYTES / 3) return text
  const bytes = Buffer.byteLength(text)
  return bytes <= MAX_PAYLOAD_BYTES ? text : canonicalText({ payload_omitted: true, payload_total_bytes: bytes })
}

/** `sha256:` and 64 hex digits of a text's UTF-8 bytes. */
export const hashOf: (text: string) => string =
  // One call instead of an object per record, where Node has it (20.12 and later).
  typeof crypto.hash === "function"
    ? (text) => `sha256:${crypto.hash("sha256", text, "hex")}`
    : (text) => `sha256:${crypto.createHash("sha256").update(text).digest("hex")}`

/** What a record is made of, payload as canonical text. */
export interface Parts {
  readonly time: string
  readonly kind: string
  readonly run: string
  readonly call?: string | undefined
  readonly server?: string | undefined
  readonly payload: string
}

/** The line of the next record of a chain, without its newline, and the chain after it. */
export const makeLine = (parts: Parts, before: Link): { readonly line: string; readonly after: Link } => {
  const count = before.count + 1
  const server = parts.server === undefined ? "" : `"server":${JSON.stringify(parts.server)},`
  // RFC 8785 order: call, hash, kind, payload, prev, run, seq, server, time.
  const head = parts.call === undefined ? "{" : `{"call":${JSON.stringify(parts.call)},`
  const rest =
    `"kind":${JSON.stringify(parts.kind)},"payload":${parts.payload},"prev":"${before.hash}",` +
    `"run":${JSON.stringify(parts.run)},"seq":${count},${server}"time":${JSON.stringify(parts.time)}}`
  const hash = hashOf(head + rest)
  return { line: `${head}"hash":"${hash}",${rest}`, after: { count, hash } }
}

/** The next record of a chain, as a value. */
export const make = (parts: Omit<Parts, "payload"> & { readonly payload: JsonObject }, before: Link): AuditRecord => {
  const { line } = makeLine({ ...parts, payload: payloadText(parts.payload) }, before)
  // Made by `makeLine` in exactly this form.
  return JSON.parse(line) as AuditRecord
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The record of a line, read leniently for showing; `undefined` when it is none. */
export const parseLine = (line: Uint8Array): AuditRecord | undefined => {
  try {
    const value: unknown = JSON.parse(decoder.decode(line))
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** What `verifyLine` found: the record where there is one, and everything that is wrong with it. */
export interface Verified {
  readonly record: AuditRecord | undefined
  readonly faults: ReadonlyArray<string>
}

/** Judges one line (without newline) as the next of a chain. */
export const verifyLine = (line: Uint8Array, before: Link): Verified => {
  if (line.length === 0) return { record: undefined, faults: ["the line is empty"] }
  const record = parseLine(line)
  if (record === undefined) return { record, faults: ["the line is not an audit record"] }
  const faults: Array<string> = []
  try {
    const { hash, ...rest } = record
    if (hashOf(canonicalize(rest)) !== hash) faults.push("the record was changed: its hash does not fit its content")
    else if (canonicalize(record) !== decoder.decode(line)) {
      faults.push("the line was changed: it is not the canonical form of its record")
    }
  } catch {
    faults.push("the line is not an audit record")
  }
  if (record.seq !== before.count + 1) {
    faults.push(
      `record ${record.seq} stands where record ${before.count + 1} belongs: records were removed, inserted or swapped`
    )
  }
  if (record.prev !== before.hash) {
    faults.push("the record does not follow the one before it: that one was changed, removed, inserted or swapped")
  }
  return { record, faults }
}

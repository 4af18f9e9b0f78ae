/**
 * Facts about servers that may stand in an audit record: bounded, and never a path, command, argument or secret
 * (R sections 7.6 and 7.7). Names come from servers and repositories, so a label that looks like a path or a
 * credential is replaced, whatever it is.
 */
import type { JsonObject } from "../base/Json.ts"
import { KIB } from "../base/Units.ts"
import { PLACEHOLDER } from "../policy/SecretSearch.ts"

/** Longest label, characters. */
const MAX_LABEL = 256
/** Longest text of metadata, bytes. */
export const MAX_METADATA_BYTES = 512
/** Grant names: how many, bytes of each, bytes of all. */
const MAX_GRANTS = 32
const MAX_GRANT_BYTES = 128
const MAX_ALL_GRANTS_BYTES = 4 * KIB
/** A word this long is more likely a key than a name. */
const MAX_WORD = 48

const pathLike = /[/\\~]|\.\.|^[A-Za-z]:/
const secretLike =
  /secret|password|passwd|api[-_]?key|private[-_]?key|bearer|authorization|credential|(?:^|[^A-Za-z0-9])(?:sk-|ghp_|github_pat_|xoxb-|xoxp-|akia|aiza)/i

/** A name as it may be recorded (R section 7.7). */
export const safeLabel = (text: string): string =>
  text.length > MAX_LABEL ||
  pathLike.test(text) ||
  secretLike.test(text) ||
  text.split(/\s/).some((word) => word.length >= MAX_WORD)
    ? PLACEHOLDER
    : text

/** A text of metadata under `key`; one that is too long is replaced by its size (R section 7.6). */
export const metadataText = (key: string, text: string, limit: number = MAX_METADATA_BYTES): JsonObject => {
  const bytes = Buffer.byteLength(text)
  return bytes <= limit ? { [key]: text } : { [key]: "", [`${key}_omitted`]: true, [`${key}_total_bytes`]: bytes }
}

/** Names that fit the bounds of R section 7.6, and how many did not. */
export const boundedNames = (
  names: ReadonlyArray<string>
): { readonly names: ReadonlyArray<string>; readonly omitted: number } => {
  let room = MAX_ALL_GRANTS_BYTES
  const kept: Array<string> = []
  for (const name of names) {
    const bytes = Buffer.byteLength(name)
    if (kept.length === MAX_GRANTS || bytes > MAX_GRANT_BYTES || bytes > room) continue
    room -= bytes
    kept.push(name)
  }
  return { names: kept, omitted: names.length - kept.length }
}

/** Where a declaration comes from, as it may be recorded. */
export interface DeclarationFacts {
  /** Name as declared. */
  readonly declaredName: string
  /** Exact server name after the merge. */
  readonly effectiveName: string
  readonly originKind: "user_root" | "plugin" | "builtin" | "project" | "command_line"
  /** What a relative command is relative to, e.g. `workspace`. */
  readonly executionBaseKind: string
  /** Keyed or public fingerprint of the entry; never a plain digest of a secret. */
  readonly fingerprint: string
}

/** The safe projection of a declaration (R section 7.7). */
export const declarationProjection = (facts: DeclarationFacts): JsonObject => ({
  declaration_fingerprint: facts.fingerprint,
  declared_name: safeLabel(facts.declaredName),
  effective_name: safeLabel(facts.effectiveName),
  execution_base_kind: safeLabel(facts.executionBaseKind),
  origin_kind: facts.originKind
})

/** What a server said about itself and what it runs with. */
export interface IdentityFacts {
  readonly protocolVersion: string
  readonly name: string
  readonly version: string
  readonly transportFingerprint?: string | undefined
  readonly staticFingerprint?: string | undefined
  readonly liveFingerprint?: string | undefined
  readonly grantNames?: ReadonlyArray<string>
}

const present = (key: string, value: string | undefined): JsonObject => (value === undefined ? {} : { [key]: value })

/** The projection of a server's identity (R section 7.6). Texts were redacted by the caller. */
export const identityProjection = (facts: IdentityFacts): JsonObject => {
  const { names, omitted } = boundedNames(facts.grantNames ?? [])
  return {
    environment_grant_names: names,
    ...(omitted === 0 ? {} : { environment_grant_names_omitted: omitted }),
    ...present("live_fingerprint", facts.liveFingerprint),
    ...metadataText("name", facts.name),
    ...metadataText("protocol_version", facts.protocolVersion),
    ...present("static_fingerprint", facts.staticFingerprint),
    ...present("transport_fingerprint", facts.transportFingerprint),
    ...metadataText("version", facts.version)
  }
}

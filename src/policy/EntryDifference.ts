/**
 * What changed in an entry since it was approved, readable and without secrets: pure.
 *
 * What is kept beside an approval is the entry with credentials in `env` and headers replaced by a short digest, so
 * a difference can be told although no credential is ever stored or shown.
 */
import { createHash } from "node:crypto"
import { canonicalize } from "json-canonicalize"
import { isCredentialName, literalCredentials, looksLikeCredential } from "../config/Credentials.ts"
import type { ServerDeclaration } from "../config/ServerDeclaration.ts"
import { isJsonObject, type Json, type JsonObject } from "../base/Json.ts"

const valueFields = new Set(["env", "headers", "http_headers", "httpHeaders", "oauth"])

const digest = (text: string): string => `[hidden ${createHash("sha256").update(text).digest("hex").slice(0, 8)}]`

/**
 * A value as it may be shown: credentials as a digest, everything else as it is. What a repository sets for a server
 * decides what the server runs (NODE_OPTIONS, PATH), so whoever approves it has to see it.
 */
export const shownValue = (name: string, text: string): string =>
  !/^\$\{[^}]*\}$/.test(text) && (isCredentialName(name) || looksLikeCredential(text)) ? digest(text) : text

const hide = (value: Json | undefined, name: string): Json => {
  if (typeof value === "string") return shownValue(name, value)
  if (isJsonObject(value))
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, hide(inner, key)]))
  return value ?? null
}

const hiddenArguments = (args: ReadonlyArray<Json>): Json => {
  const secret = new Set(literalCredentials({ args }).map(({ field }) => field))
  return args.map((arg, index) => (typeof arg === "string" && secret.has(`args[${index}]`) ? digest(arg) : arg))
}

/** User information and the values of a query are credentials as often as not; templates of variables are none. */
const hiddenUrl = (url: string): string =>
  url
    .replace(/(:\/\/)([^/?#@]+)@/, (_, slashes: string, user: string) => `${slashes}${digest(user)}@`)
    .replace(/([?&][^=&#]*=)([^&#]+)/g, (whole, name: string, value: string) =>
      /^\$\{[^}]*\}$/.test(value) ? whole : `${name}${digest(value)}`
    )

/** The entry as it may be kept beside its approval. */
export const keepable = (raw: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(raw)
      .filter(([key]) => key !== "enabled")
      .map(([key, value]) => {
        if (key === "args" && Array.isArray(value)) return [key, hiddenArguments(value)]
        if (key === "url" && typeof value === "string") return [key, hiddenUrl(value)]
        return [key, valueFields.has(key) ? hide(value, key) : (value ?? null)]
      })
  )

/** The declaration as it may be kept beside its approval: its entry, and for a plugin the digest of its manifest. */
export const keptOf = ({ plugin, raw }: Pick<ServerDeclaration, "plugin" | "raw">): JsonObject =>
  plugin === undefined ? keepable(raw) : { ...keepable(raw), "plugin.toml": plugin.manifest }

/** One difference. */
export interface Difference {
  /** Changed top-level fields, sorted. */
  readonly fields: ReadonlyArray<string>
  /** Lines `- field: before` and `+ field: after`. */
  readonly diff: string
}

/** The difference between what was approved and what is written now; both as `keepable` gives them. */
export const difference = (before: JsonObject, after: JsonObject): Difference => {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
  const text = (entry: JsonObject, name: string): string | undefined =>
    Object.hasOwn(entry, name) ? canonicalize(entry[name]) : undefined
  const fields = names.filter((name) => text(before, name) !== text(after, name))
  const lines = fields.flatMap((name) => [
    ...(Object.hasOwn(before, name) ? [`- ${name}: ${text(before, name)}`] : []),
    ...(Object.hasOwn(after, name) ? [`+ ${name}: ${text(after, name)}`] : [])
  ])
  return { fields, diff: lines.join("\n") }
}

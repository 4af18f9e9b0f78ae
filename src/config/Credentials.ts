/**
 * Recognises literal credentials before they are written to, or shown from, a configuration file.
 *
 * This is a guard for people who type a token into a shared file, not the redactor: it knows well-known
 * prefixes and names that say what they hold. `${NAME}` templates are never credentials.
 */
import { isJsonObject, type Json, type JsonObject } from "../base/Json.ts"

/** Well-known formats: vendor prefixes with the length that real ones have at least. */
const formats: ReadonlyArray<RegExp> = [
  /\bsk-[A-Za-z0-9_-]{16,}/,
  /\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{12,}/,
  /\bgh[pousr]_[A-Za-z0-9]{20,}/,
  /\bgithub_pat_[A-Za-z0-9_]{20,}/,
  /\bglpat-[A-Za-z0-9_-]{16,}/,
  /\bxox[abeoprs]-[A-Za-z0-9-]{10,}/,
  /\bxapp-[A-Za-z0-9-]{10,}/,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/,
  /\bAIza[A-Za-z0-9_-]{30,}/,
  /\bnpm_[A-Za-z0-9]{30,}/,
  /\bhf_[A-Za-z0-9]{30,}/,
  /\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}/,
  /\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----/
]

/** Names that say that they hold a credential. */
const credentialName =
  /token|secret|passw(?:or)?d|passphrase|credential|authorization|api-?_?key|(?:access|private|auth|signing|encryption)[-_]?key|(?:^|[-_.])(?:key|pwd|pat)(?:$|[-_.])/i
/** Names that hold a place, a size or a number instead. */
const harmlessName = /(?:path|file|dir|directory|url|uri|host|port|name|limit|size|count|ttl|timeout|expiry)$/i

/** Whether a text contains something in the format of a well-known credential. */
export const looksLikeCredential = (text: string): boolean => formats.some((format) => format.test(text))

/** Whether a variable, header or option of this name would hold a credential. */
export const isCredentialName = (name: string): boolean => credentialName.test(name) && !harmlessName.test(name)

const isTemplate = (text: string): boolean => /\$\{[^}]+\}/.test(text)

/** A value under a credential's name that can be nothing secret: empty, a switch, a small number, a path. */
const isPlain = (value: string): boolean =>
  /^(?:|true|false|yes|no|on|off|none|null|\d{1,6}|(?:\.{0,2}|~)\/.*)$/i.test(value)

/** A literal credential: where it stands and the variable name that should replace it. */
export interface LiteralCredential {
  readonly field: string
  readonly variable: string
}

const variableName = (text: string): string => {
  const name = text
    .replace(/^-+/, "")
    .replace(/[^A-Za-z0-9]+/g, "_")
    .replace(/^_+|_+$/g, "")
    .toUpperCase()
  return /^[A-Z]/.test(name) ? name : `TOKEN_${name}`.replace(/_$/, "")
}

const inPair = (name: string, value: string): boolean =>
  !isTemplate(value) && (looksLikeCredential(value) || (isCredentialName(name) && !isPlain(value)))

const inArgs = (args: ReadonlyArray<unknown>): ReadonlyArray<LiteralCredential> =>
  args.flatMap((arg, index): ReadonlyArray<LiteralCredential> => {
    if (typeof arg !== "string") return []
    const field = `args[${index}]`
    const option = /^(--?[A-Za-z][\w.-]*|[A-Za-z_]\w*)=(.*)$/s.exec(arg)
    const [, name, value] = option ?? []
    if (name !== undefined && value !== undefined)
      return inPair(name, value) ? [{ field, variable: variableName(name) }] : []
    const before = args[index - 1]
    const named = typeof before === "string" && /^--?[A-Za-z][\w.-]*$/.test(before) ? before : undefined
    if (named !== undefined && !arg.startsWith("-") && inPair(named, arg))
      return [{ field, variable: variableName(named) }]
    const header = /^([A-Za-z][A-Za-z0-9-]*):\s*(.+)$/s.exec(arg)
    if (
      header?.[1] !== undefined &&
      header[2] !== undefined &&
      !header[2].startsWith("//") &&
      inPair(header[1], header[2])
    )
      return [{ field, variable: variableName(header[1]) }]
    return !isTemplate(arg) && (looksLikeCredential(arg) || credentialInUrl(arg)) ? [{ field, variable: "TOKEN" }] : []
  })

/** User info with a password, or a query parameter that is named like a credential. */
const credentialInUrl = (text: string): boolean => {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text) || !URL.canParse(text)) return false
  const url = new URL(text)
  return url.password !== "" || [...url.searchParams].some(([name, value]) => inPair(name, value))
}

/** Every literal credential of an entry as it would be written, in either spelling. Values are never returned. */
export const literalCredentials = (fields: JsonObject): ReadonlyArray<LiteralCredential> =>
  Object.entries(fields).flatMap(([key, value]): ReadonlyArray<LiteralCredential> => {
    if (key === "args" && Array.isArray(value)) return inArgs(value)
    if (key === "url" && typeof value === "string")
      return !isTemplate(value) && (looksLikeCredential(value) || credentialInUrl(value))
        ? [{ field: "url", variable: "TOKEN" }]
        : []
    if (!["env", "headers", "http_headers", "httpHeaders", "oauth"].includes(key)) return []
    if (typeof value !== "object" || value === null || Array.isArray(value)) return []
    return Object.entries(value).flatMap(([name, text]) =>
      typeof text === "string" && inPair(name, text) ? [{ field: `${key}.${name}`, variable: variableName(name) }] : []
    )
  })

/** Fields of an entry whose texts may hold a credential. */
const textFields = new Set(["args", "url", "env", "headers", "http_headers", "httpHeaders", "oauth"])

/** Every place of an entry that holds a value which `variableOf` knows. Values are never returned. */
export const knownCredentials = (
  fields: JsonObject,
  variableOf: (text: string) => string | undefined
): ReadonlyArray<LiteralCredential> => {
  const within = (value: Json | undefined, field: string): ReadonlyArray<LiteralCredential> => {
    if (typeof value === "string") {
      const variable = variableOf(value)
      return variable === undefined ? [] : [{ field, variable }]
    }
    if (Array.isArray(value)) return value.flatMap((inner: Json, index) => within(inner, `${field}[${index}]`))
    if (value === undefined || !isJsonObject(value)) return []
    return Object.entries(value).flatMap(([name, inner]) => within(inner, `${field}.${name}`))
  }
  return Object.entries(fields).flatMap(([key, value]) => (textFields.has(key) ? within(value, key) : []))
}

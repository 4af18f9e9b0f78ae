/**
 * What must never be shown, and what must not be sent: known values and exact secret key names (spec section 9).
 *
 * One mutable set per runtime: values only ever join it, before the process or connection that could echo them
 * exists. Redaction keeps shapes and returns unchanged input by identity. Schemas, descriptions, cursors and
 * tokens of the protocol are never hidden by key, numbers and booleans never at all.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LosslessNumber } from "lossless-json"
import type { Json, JsonObject } from "../base/Json.ts"
import * as SecretMatcher from "./SecretMatcher.ts"

/** Stands for a hidden value. */
export const PLACEHOLDER = "[hidden]"

/** Keys whose string values are secrets in results, separators and case aside (spec section 9). */
const secretKeys = new Set([
  "password",
  "passwd",
  "secret",
  "clientsecret",
  "apikey",
  "accesstoken",
  "refreshtoken",
  "authorization",
  "privatekey"
])

/** Whether a key names a secret. */
export const isSecretKey = (key: string): boolean => secretKeys.has(key.replace(/[^A-Za-z0-9]/g, "").toLowerCase())

/** Where a value stands: results are searched by key too, schemas and protocol fields by value only. */
export type Place = "result" | "schema" | "protocol"

/** Known secrets of one runtime. */
export class Secrets extends Context.Tag("sigil/policy/Secrets")<
  Secrets,
  {
    /** Adds values; from now on none of them is shown. */
    readonly register: (values: ReadonlyArray<string>) => Effect.Effect<void>
    /** The text with every known value hidden. */
    readonly redactText: (text: string) => string
    /** The value with every known value hidden, keys included; the same object when nothing was hidden. */
    readonly redactJson: (value: Json, place: Place) => Json
    /** The first place that holds a known value or a secret under a secret key, as a JSON pointer. */
    readonly containsSecret: (value: Json) => { readonly path: string } | undefined
  }
>() {}

const pointer = (path: string, key: string): string => `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`

/** Secrets over one matcher. */
export const make = (matcher: SecretMatcher.SecretMatcher): Context.Tag.Service<Secrets> => {
  const text = (value: string): string => matcher.replace(value, PLACEHOLDER)

  const json = (value: Json, place: Place): Json => {
    if (typeof value === "string") return text(value)
    if (typeof value !== "object" || value === null || value instanceof LosslessNumber) return value
    if (Array.isArray(value)) {
      let changed = false
      const items = value.map((item: Json) => {
        const next = json(item, place)
        if (next !== item) changed = true
        return next
      })
      return changed ? items : value
    }
    // What is left is an object: the union has nothing else.
    const object = value as JsonObject
    let changed = false
    const entries = Object.entries(object).map(([key, inner]): readonly [string, Json | undefined] => {
      const hidden = place === "result" && typeof inner === "string" && inner !== "" && isSecretKey(key)
      const next = inner === undefined ? undefined : hidden ? PLACEHOLDER : json(inner, place)
      const name = text(key)
      if (next !== inner || name !== key) changed = true
      return [name, next]
    })
    return changed ? Object.fromEntries(entries) : object
  }

  const find = (value: Json, path: string): string | undefined => {
    if (typeof value === "string") return matcher.finds(value) ? path : undefined
    if (typeof value !== "object" || value === null || value instanceof LosslessNumber) return undefined
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) {
        const found = find(item, `${path}/${index}`)
        if (found !== undefined) return found
      }
      return undefined
    }
    for (const [key, inner] of Object.entries(value as JsonObject)) {
      if (inner === undefined) continue
      // The pointer never repeats a key that is itself a secret.
      if (matcher.finds(key)) return pointer(path, PLACEHOLDER)
      if (typeof inner === "string" && inner !== "" && isSecretKey(key)) return pointer(path, key)
      const found = find(inner, pointer(path, key))
      if (found !== undefined) return found
    }
    return undefined
  }

  return {
    register: (values) =>
      Effect.sync(() => {
        for (const value of values) matcher.add(value)
      }),
    redactText: text,
    redactJson: json,
    containsSecret: (value) => {
      const path = find(value, "")
      return path === undefined ? undefined : { path }
    }
  }
}

/** An empty set that grows with the servers that are started. */
export const layer: Layer.Layer<Secrets> = Layer.sync(Secrets, () => make(SecretMatcher.make()))

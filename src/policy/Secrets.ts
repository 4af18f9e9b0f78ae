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

/** Longest key that is looked at: the longest name with a separator after each character. */
const MAX_KEY = 32
/** Lower-case first letters of the names, a cheap look before the exact one. */
const firstLetters = /^[^A-Za-z0-9]*[psarc]/i

/** Whether a key names a secret. */
export const isSecretKey = (key: string): boolean =>
  key.length >= 6 &&
  key.length <= MAX_KEY &&
  firstLetters.test(key) &&
  secretKeys.has(key.replace(/[^A-Za-z0-9]/g, "").toLowerCase())

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
    /**
     * The first string that holds the placeholder, as a JSON pointer; only once this runtime has hidden something
     * in a result. Sending it would replace a real value by the placeholder (`SIGIL_REDACTED_WRITEBACK`).
     */
    readonly containsPlaceholder: (value: Json) => { readonly path: string } | undefined
  }
>() {}

const pointer = (path: string, key: string): string => `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`

/** Deeper values are hidden whole: nothing may be shown that was not looked at. */
const MAX_DEPTH = 2_000

/** A free key for a hidden one: `[hidden]`, `[hidden] 2` and so on, so that no member is lost. */
const freeKey = (wanted: string, taken: ReadonlyMap<string, unknown>): string => {
  if (!taken.has(wanted)) return wanted
  let number = 2
  while (taken.has(`${wanted} ${number}`)) number += 1
  return `${wanted} ${number}`
}

/** The path of the first string or key that `test` finds, or of the first member that `member` finds. */
const search = (
  root: Json,
  test: (text: string) => boolean,
  member: (key: string, value: Json) => boolean
): { readonly path: string } | undefined => {
  const find = (value: Json, path: string, depth: number): string | undefined => {
    if (typeof value === "string") return test(value) ? path : undefined
    if (typeof value !== "object" || value === null || value instanceof LosslessNumber) return undefined
    if (depth > MAX_DEPTH) return path
    if (Array.isArray(value)) {
      for (const [index, item] of (value as ReadonlyArray<Json>).entries()) {
        const found = find(item, `${path}/${index}`, depth + 1)
        if (found !== undefined) return found
      }
      return undefined
    }
    // What is left is an object: the union has nothing else.
    for (const [key, inner] of Object.entries(value as JsonObject)) {
      if (inner === undefined) continue
      // The pointer never repeats a key that is itself a secret.
      if (test(key)) return pointer(path, PLACEHOLDER)
      if (member(key, inner)) return pointer(path, key)
      const found = find(inner, pointer(path, key), depth + 1)
      if (found !== undefined) return found
    }
    return undefined
  }
  const path = find(root, "", 0)
  return path === undefined ? undefined : { path }
}

const isSecretMember = (key: string, value: Json): boolean =>
  typeof value === "string" && value !== "" && isSecretKey(key)

/** Secrets over one matcher. */
export const make = (matcher: SecretMatcher.SecretMatcher): Context.Tag.Service<Secrets> => {
  let hidInResult = false

  const text = (value: string): string => matcher.replace(value, PLACEHOLDER)

  /** Copies on the first change only: most values hold nothing, and they are returned as they are. */
  const json = (value: Json, place: Place, depth: number): Json => {
    if (typeof value === "string") return text(value)
    if (typeof value !== "object" || value === null || value instanceof LosslessNumber) return value
    if (depth > MAX_DEPTH) return PLACEHOLDER
    if (Array.isArray(value)) return list(value, place, depth)
    // What is left is an object: the union has nothing else.
    const object = value as JsonObject
    const byKey = place === "result"
    let changed: Map<string, Json | undefined> | undefined
    const keys = Object.keys(object)
    for (let index = 0; index < keys.length; index += 1) {
      const key = keys[index] ?? ""
      const inner = object[key]
      const name = text(key)
      const next =
        inner === undefined ? inner : byKey && isSecretMember(key, inner) ? PLACEHOLDER : json(inner, place, depth + 1)
      if (changed === undefined && (next !== inner || name !== key)) {
        changed = new Map(keys.slice(0, index).map((earlier) => [earlier, object[earlier]]))
      }
      changed?.set(freeKey(name, changed), next)
    }
    // Through entries, so that a key such as `__proto__` stays plain data.
    return changed === undefined ? object : Object.fromEntries(changed)
  }

  const list = (items: ReadonlyArray<Json>, place: Place, depth: number): ReadonlyArray<Json> => {
    let changed: Array<Json> | undefined
    for (let index = 0; index < items.length; index += 1) {
      // The index is inside the array.
      const item = items[index] as Json
      const next = json(item, place, depth + 1)
      if (changed === undefined && next !== item) changed = items.slice(0, index)
      changed?.push(next)
    }
    return changed ?? items
  }

  return {
    register: (values) =>
      Effect.sync(() => {
        for (const value of values) matcher.add(value)
      }),
    redactText: text,
    redactJson: (value, place) => {
      const hidden = json(value, place, 0)
      if (hidden !== value && place === "result") hidInResult = true
      return hidden
    },
    containsSecret: (value) => search(value, matcher.finds, isSecretMember),
    containsPlaceholder: (value) =>
      hidInResult
        ? search(
            value,
            (one) => one.includes(PLACEHOLDER),
            () => false
          )
        : undefined
  }
}

/** An empty set that grows with the servers that are started. */
export const layer: Layer.Layer<Secrets> = Layer.sync(Secrets, () => make(SecretMatcher.make()))

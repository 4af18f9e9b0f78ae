/**
 * What must never be shown, and what must not be sent: known values, credentials of well-known formats, and strings
 * under exact secret key names (spec section 9).
 *
 * One mutable set per runtime: values only ever join it, before the process or connection that could echo them
 * exists. Redaction keeps shapes and returns unchanged input by identity. Schemas, descriptions, cursors and
 * tokens of the protocol are never hidden by key, numbers and booleans never at all.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LosslessNumber } from "lossless-json"
import { isJsonObject, type Json, type JsonObject, own, pointerSegment } from "../base/Json.ts"
import { hideBy } from "../platform/DefectText.ts"
import { hideInAnswer } from "./ResultTexts.ts"
import * as SecretBytes from "./SecretBytes.ts"
import { isSecretKey, keyedSpans } from "./SecretKeys.ts"
import * as SecretMatcher from "./SecretMatcher.ts"
import * as SecretSearch from "./SecretSearch.ts"
import * as SecretStream from "./SecretStream.ts"
import * as Spans from "./TextSpans.ts"

const { PLACEHOLDER } = SecretSearch

/**
 * Where a value stands. Results and arguments are searched by key too, schemas and protocol fields by value only; what
 * was hidden in a result is watched for in later arguments.
 */
export type Place = "result" | "arguments" | "schema" | "protocol"

/** Known secrets of one runtime. */
export class Secrets extends Context.Tag("sigil/policy/Secrets")<
  Secrets,
  {
    /** Adds values; from now on none of them is shown. */
    readonly register: (values: ReadonlyArray<string>) => Effect.Effect<void>
    /** The text with every secret hidden. */
    readonly redactText: (text: string) => string
    /** A place where texts come one after the other and are read as one, such as a log. */
    readonly redactStream: () => SecretStream.SecretStream
    /** The value with every secret hidden, keys included; the same object when nothing was hidden. */
    readonly redactJson: (value: Json, place: Place) => Json
    /** The first place that holds a secret, as a JSON pointer. */
    readonly containsSecret: (value: Json) => { readonly path: string } | undefined
    /**
     * The first string that holds the placeholder, as a JSON pointer; only once this runtime has hidden something
     * in a result. Sending it would replace a real value by the placeholder (`SIGIL_REDACTED_WRITEBACK`).
     */
    readonly containsPlaceholder: (value: Json) => { readonly path: string } | undefined
  }
>() {}

const pointer = (path: string, key: string): string => `${path}/${pointerSegment(key)}`

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

/** Blocks that carry bytes name them so: `data` beside the type of the medium, `blob` beside the address. */
const carriesBytes = (object: JsonObject, key: string): boolean => {
  const type = key === "data" ? own(object, "type") : undefined
  return type === "image" || type === "audio" || (key === "blob" && typeof own(object, "uri") === "string")
}

/** The placeholder as it is, or as an address has it. */
const placeholder = /\[hidden\]|%5Bhidden%5D/i

/** Secrets over one matcher. */
export const make = (matcher: SecretMatcher.SecretMatcher): Context.Tag.Service<Secrets> => {
  let hidInResult = false
  const found = SecretSearch.make(matcher)
  const text = found.hide

  const textOf = (value: string, byKey: boolean): string => {
    const keyed = byKey ? keyedSpans(value) : undefined
    return keyed === undefined ? text(value) : Spans.replace(value, Spans.union(found.spans(value), keyed), PLACEHOLDER)
  }
  const bytes = (value: string): string => SecretBytes.hide(value, found)

  /** Copies on the first change only: most values hold nothing, and they are returned as they are. */
  const json = (value: Json, place: Place, depth: number): Json => {
    const byKey = place === "result" || place === "arguments"
    if (typeof value === "string") return textOf(value, byKey)
    if (typeof value !== "object" || value === null || value instanceof LosslessNumber) return value
    if (depth > MAX_DEPTH) return PLACEHOLDER
    if (Array.isArray(value)) return list(value, place, depth)
    // What is left is an object: the union has nothing else.
    const object = value as JsonObject
    let changed: Map<string, Json | undefined> | undefined
    const keys = Object.keys(object)
    for (let index = 0; index < keys.length; index += 1) {
      const key = keys[index] ?? ""
      const inner = object[key]
      const name = text(key)
      const next = memberOf(object, key, inner, place, depth)
      if (changed === undefined && (next !== inner || name !== key)) {
        changed = new Map(keys.slice(0, index).map((earlier) => [earlier, object[earlier]]))
      }
      changed?.set(freeKey(name, changed), next)
    }
    // Through entries, so that a key such as `__proto__` stays plain data.
    return changed === undefined ? object : Object.fromEntries(changed)
  }

  const memberOf = (object: JsonObject, key: string, inner: Json | undefined, place: Place, depth: number) => {
    if (inner === undefined) return inner
    if ((place === "result" || place === "arguments") && isSecretMember(key, inner)) return PLACEHOLDER
    if (place === "result" && typeof inner === "string" && carriesBytes(object, key)) return bytes(inner)
    return json(inner, place, depth + 1)
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
        // What the placeholder itself says can be no secret: it would be found in what was hidden.
        for (const value of values) if (!PLACEHOLDER.includes(value)) matcher.add(value)
      }),
    redactText: text,
    redactStream: () => SecretStream.make(found),
    redactJson: (value, place) => {
      const joined = place === "result" && isJsonObject(value) ? hideInAnswer(value, found) : value
      const hidden = json(joined, place, 0)
      if (hidden !== value && place === "result") hidInResult = true
      return hidden
    },
    containsSecret: (value) => search(value, found.finds, isSecretMember),
    containsPlaceholder: (value) =>
      hidInResult
        ? search(
            value,
            (one) => placeholder.test(one),
            () => false
          )
        : undefined
  }
}

/** An empty set that grows with the servers that are started. */
export const layer: Layer.Layer<Secrets> = Layer.sync(Secrets, () => {
  const secrets = make(SecretMatcher.make())
  hideBy(secrets.redactText)
  return secrets
})

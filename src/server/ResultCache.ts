/**
 * Results that a server allows to be kept: `ttlMs` and `cacheScope` of the stateless revision (K section 9.16).
 *
 * One cache per generation, so nothing crosses from one credential to another, whatever the scope says. Keyed by
 * method and what the result depends on; announcements throw away what they concern. Nothing is fetched by time.
 */
import { type JsonObject, own } from "../base/Json.ts"
import { MIB } from "../base/Units.ts"
import { stringify } from "../protocol/Codec.ts"

/** Results kept, and their size together in characters. */
const MAX_ENTRIES = 128
const MAX_SIZE = 8 * MIB

/** The cache of one generation. */
export interface ResultCache {
  /** A result that is still fresh. */
  readonly get: (method: string, key: string, now: number) => JsonObject | undefined
  /** Keeps a result as long as it says. */
  readonly put: (method: string, key: string, result: JsonObject, now: number) => void
  /** Forgets one result, or all of a method. */
  readonly drop: (method: string, key?: string) => void
}

/** How long a result stays fresh, ms; 0 when it does not say, or says something odd. */
export const ttlOf = (result: JsonObject): number => {
  const ttl = own(result, "ttlMs")
  return typeof ttl === "number" && ttl > 0 ? Math.min(ttl, 24 * 3_600_000) : 0
}

/** An empty cache. */
export const make = (): ResultCache => {
  const entries = new Map<string, { readonly result: JsonObject; readonly until: number; readonly size: number }>()
  let size = 0
  const remove = (name: string): void => {
    size -= entries.get(name)?.size ?? 0
    entries.delete(name)
  }
  return {
    get: (method, key, now) => {
      const name = `${method}\0${key}`
      const found = entries.get(name)
      if (found === undefined) return undefined
      if (now < found.until) return found.result
      remove(name)
      return undefined
    },
    put: (method, key, result, now) => {
      const name = `${method}\0${key}`
      remove(name)
      const ttl = ttlOf(result)
      if (ttl === 0) return
      let length: number
      try {
        length = stringify(result).length
      } catch {
        return
      }
      if (length > MAX_SIZE) return
      entries.set(name, { result, until: now + ttl, size: length })
      size += length
      for (const oldest of entries.keys()) {
        if (entries.size <= MAX_ENTRIES && size <= MAX_SIZE) break
        remove(oldest)
      }
    },
    drop: (method, key) => {
      if (key !== undefined) return remove(`${method}\0${key}`)
      for (const name of entries.keys()) if (name.startsWith(`${method}\0`)) remove(name)
    }
  }
}

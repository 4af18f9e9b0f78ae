/**
 * Which era a server turned out to speak, remembered so that its next start need not ask again (K section 9.7).
 *
 * Only a shortcut: a verdict that does not hold is found out at the next start and replaced, a store that cannot be
 * read or written is an empty one, and after a week everything is asked anew, so that a server which learns a newer
 * revision is noticed. Keys say nothing of the launch: they are digests.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { createHash } from "node:crypto"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { SECOND_MS } from "../base/Units.ts"
import { Locations } from "../config/Locations.ts"
import * as AtomicFile from "../platform/AtomicFile.ts"
import type { Plan } from "../transport/Transport.ts"

/** How long a verdict is believed, ms. */
export const BELIEVED_MS = 7 * 24 * 3_600 * SECOND_MS
/** Verdicts that are kept; the oldest go first. */
const MAX_VERDICTS = 500
const SCHEMA = "sigil.eras/1"

/** What a server speaks: the stateless revision, a handshake, or the handshake over HTTP with two endpoints. */
export type Era = "stateless" | "handshake" | "sse"

/** Remembers verdicts. */
export interface Eras {
  readonly recall: (key: string) => Effect.Effect<Era | undefined>
  readonly remember: (key: string, era: Era) => Effect.Effect<void>
  /** Takes a verdict back that did not help. */
  readonly forget: (key: string) => Effect.Effect<void>
}

/** The store of this runtime; remembers nothing unless somebody gives one. */
export class EraStore extends Context.Reference<EraStore>()("sigil/server/EraStore", {
  defaultValue: (): Eras => ({
    recall: () => Effect.succeed(undefined),
    remember: () => Effect.void,
    forget: () => Effect.void
  })
}) {}

/** The key of a launch or of an address. */
export const keyOf = (plan: Plan): string => {
  const facts = plan._tag === "stdio" ? [plan.file, plan.command, plan.args, plan.cwd] : [plan.transport, plan.url]
  return `${plan._tag}:${createHash("sha256").update(JSON.stringify(facts)).digest("hex")}`
}

const verdicts = (text: string | undefined): JsonObject => {
  if (text === undefined) return {}
  try {
    // What JSON.parse gives is JSON.
    const whole = JSON.parse(text) as Json
    const eras = isJsonObject(whole) && own(whole, "schema") === SCHEMA ? own(whole, "eras") : undefined
    return isJsonObject(eras) ? eras : {}
  } catch {
    return {}
  }
}

const eraOf = (entry: Json | undefined, now: number): Era | undefined => {
  if (!isJsonObject(entry)) return undefined
  const era = own(entry, "era")
  const at = own(entry, "at")
  if (typeof at !== "number" || at > now || now - at > BELIEVED_MS) return undefined
  return era === "stateless" || era === "handshake" || era === "sse" ? era : undefined
}

const timeOf = (entry: Json | undefined): number => {
  const at = isJsonObject(entry) ? own(entry, "at") : undefined
  return typeof at === "number" ? at : 0
}

/** Verdicts in a file of the cache directory. */
export const make = (file: string): Effect.Effect<Eras> =>
  Effect.map(Effect.clock, (clock) => ({
    recall: (key) =>
      AtomicFile.readOwnText(file).pipe(
        Effect.map((text) => eraOf(own(verdicts(text), key), clock.unsafeCurrentTimeMillis())),
        Effect.catchAll(() => Effect.succeed(undefined))
      ),
    remember: (key, era) =>
      AtomicFile.update(file, (text) => {
        const known = verdicts(text)
        const at = clock.unsafeCurrentTimeMillis()
        const eras = Object.entries({ ...known, [key]: { era, at } })
          .sort(([, left], [, right]) => timeOf(right) - timeOf(left))
          .slice(0, MAX_VERDICTS)
        return Effect.succeed(`${JSON.stringify({ schema: SCHEMA, eras: Object.fromEntries(eras) })}\n`)
      }).pipe(Effect.ignore),
    forget: (key) =>
      AtomicFile.update(file, (text) => {
        const { [key]: gone, ...eras } = verdicts(text)
        return Effect.succeed(gone === undefined ? undefined : `${JSON.stringify({ schema: SCHEMA, eras })}\n`)
      }).pipe(Effect.ignore)
  }))

/** The store beside sigil's other caches. */
export const layer: Layer.Layer<never, never, Locations> = Layer.effect(
  EraStore,
  Effect.flatMap(Locations, ({ eras }) => make(eras))
)

/** A store in memory, for tests. */
export const layerMemory = (known: Map<string, Era> = new Map()): Layer.Layer<never> =>
  Layer.succeed(EraStore, {
    recall: (key) => Effect.sync(() => known.get(key)),
    remember: (key, era) => Effect.sync(() => void known.set(key, era)),
    forget: (key) => Effect.sync(() => void known.delete(key))
  })

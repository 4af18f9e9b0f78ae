/**
 * The lists of one generation as they were last read whole: tools from the start, the others from their first use.
 *
 * The old list stays until a new one is valid, so a server that changes its list badly takes nothing away. A list
 * that cannot be read marks its surface, not the server (spec section 7).
 */
import * as Effect from "effect/Effect"
import type { ConnectionError, RemoteError } from "./ServerError.ts"
import type { Ask } from "./Asking.ts"
import { listAll, type Listing } from "./Listing.ts"
import type { Surface } from "./ServerState.ts"

/** A list that a server can be asked for. */
export type ListKind = "tools" | "resources" | "templates" | "prompts"

/** How a list is called on the wire. */
export const wireNames: { readonly [kind in ListKind]: { readonly method: string; readonly member: string } } = {
  tools: { method: "tools/list", member: "tools" },
  resources: { method: "resources/list", member: "resources" },
  templates: { method: "resources/templates/list", member: "resourceTemplates" },
  prompts: { method: "prompts/list", member: "prompts" }
}

/** The lists that a `list_changed` of a surface is about. */
const kindsOf: { readonly [surface in Surface]: ReadonlyArray<ListKind> } = {
  tools: ["tools"],
  resources: ["resources", "templates"],
  prompts: ["prompts"]
}

/** The time that one whole list may take. */
export interface Budget {
  readonly remainingMs: () => number
  /** Field that sets it; named by the error. */
  readonly deadlineField: string
  /** Nobody asked for it. */
  readonly background?: boolean
}

/** The lists of one generation. */
export interface Lists {
  /** The last valid list; `undefined` until one was read. */
  readonly known: (kind: ListKind) => Listing | undefined
  /** Why the last attempt to read a list failed; empty when it did not. */
  readonly failures: () => ReadonlyMap<ListKind, string>
  /** Reads a list whole and keeps it when it is valid. */
  readonly read: (kind: ListKind, budget: Budget) => Effect.Effect<Listing, ConnectionError | RemoteError>
  /** The list as it is known while it is fresh, else read whole (`ttlMs`; K section 9.16). */
  readonly current: (kind: ListKind, budget: Budget) => Effect.Effect<Listing, ConnectionError | RemoteError>
  /** What is known of a surface is not fresh any more. */
  readonly expire: (surface: Surface) => void
  /** Whether a change of this surface concerns anything that was read. */
  readonly concerns: (surface: Surface) => boolean
  /** Reads again what was read of a surface. */
  readonly reread: (surface: Surface, budget: () => Budget) => Effect.Effect<void, ConnectionError | RemoteError>
}

/** The lists of a server; nothing is read yet. `now` gives ms of the Clock. */
export const make = (ask: Ask, server: string, now: () => number): Lists => {
  const known = new Map<ListKind, Listing>()
  const failures = new Map<ListKind, string>()
  const freshUntil = new Map<ListKind, number>()
  const read: Lists["read"] = (kind, budget) =>
    listAll(ask, { server, ...wireNames[kind], ...budget }).pipe(
      Effect.tapBoth({
        onFailure: (error) => Effect.sync(() => failures.set(kind, error.text)),
        onSuccess: (listing) =>
          Effect.sync(() => {
            failures.delete(kind)
            known.set(kind, listing)
            freshUntil.set(kind, now() + (listing.freshMs ?? 0))
          })
      })
    )
  const concerned = (surface: Surface): ReadonlyArray<ListKind> => kindsOf[surface].filter((kind) => known.has(kind))
  return {
    known: (kind) => known.get(kind),
    failures: () => failures,
    read,
    current: (kind, budget) =>
      Effect.suspend(() => {
        const listing = known.get(kind)
        return listing !== undefined && now() < (freshUntil.get(kind) ?? 0)
          ? Effect.succeed(listing)
          : read(kind, budget)
      }),
    expire: (surface) => {
      for (const kind of kindsOf[surface]) freshUntil.delete(kind)
    },
    concerns: (surface) => concerned(surface).length > 0,
    reread: (surface, budget) => Effect.forEach(concerned(surface), (kind) => read(kind, budget()), { discard: true })
  }
}

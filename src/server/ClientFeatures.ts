/**
 * What this runtime offers to servers beyond answering: forms, addresses to open, sampling (spec section 6).
 *
 * An interactive capability is declared only where somebody can answer. Who composes a face says so with this value;
 * without it nothing is declared, which is right for a run without a person.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { JsonObject } from "../base/Json.ts"

/** Answers `sampling/createMessage`; only a library user gives one. */
export type SamplingHandler = (
  params: JsonObject,
  facts: { readonly server: string }
) => Effect.Effect<JsonObject, { readonly code: number; readonly message: string }>

/** What may be declared. */
export interface Features {
  /** Callers can answer forms. */
  readonly forms: boolean
  /** Callers can open addresses; counts only with `[mcp] elicitation_url = true`. */
  readonly urls: boolean
  /** Nothing is called in this run, so nobody needs to be there: servers that count on forms start without any. */
  readonly looking?: boolean
  readonly sampling?: SamplingHandler
}

/** The features of this runtime; none unless somebody says otherwise. */
export class ClientFeatures extends Context.Reference<ClientFeatures>()("sigil/server/ClientFeatures", {
  defaultValue: (): Features => ({ forms: false, urls: false })
}) {}

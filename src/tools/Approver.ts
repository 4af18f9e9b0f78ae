/**
 * Asking somebody for consent to one call. Who may be asked is a value of the caller, not a layer: a gateway has
 * many callers over one generation (design.md, "shapes").
 */
import type * as Effect from "effect/Effect"
import type { JsonObject } from "../base/Json.ts"
import type { AllowRule } from "../policy/permission/Remedy.ts"

/**
 * What is asked: one call, or with `kind: "start"` whether a server may be started under a network policy that asks;
 * `tool` is then the name of the activation. Texts come from outside: whoever shows them escapes them.
 */
export interface Question {
  /** A call, where absent. */
  readonly kind?: "call" | "start"
  readonly server: string
  readonly tool: string
  readonly visibleName: string
  readonly trustClass: string
  readonly description: string
  readonly destructive: boolean
  /** The arguments, with known secrets hidden. */
  readonly args: JsonObject
  /** Which facets ask, e.g. `source`, `network`. */
  readonly facets: ReadonlyArray<string>
  /** The rule or default that asked. */
  readonly why: string
  /** Whether `session` may be offered: a grant would answer every ask of this call. */
  readonly grantable: boolean
  /** The entry that `always` writes; absent where no rule would allow the call, and `always` is not to be offered. */
  readonly rule?: AllowRule
}

/** `once`: this call. `session`: this exact tool until the runtime ends. `always`: a rule in the user's file. */
export type Answer = "once" | "session" | "always" | "deny"

/** Asks; `unavailable` when nobody can be asked. */
export interface Approver {
  readonly ask: (question: Question) => Effect.Effect<Answer | "unavailable">
}

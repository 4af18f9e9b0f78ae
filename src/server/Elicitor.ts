/**
 * Whoever answers what a server asks in the middle of a call: forms and addresses to open (MCP elicitation).
 *
 * Who may be asked is a value of the caller, not a layer: a gateway has many callers over one generation (design.md).
 * Texts come from the server; they are cleaned before they get here, and whoever shows them escapes them.
 */
import type * as Effect from "effect/Effect"
import type { JsonObject } from "../base/Json.ts"
import type { Form } from "../protocol/Form.ts"

/** A form that a server wants filled in. */
export interface FormRequest {
  /** Exact name of the server that asks. */
  readonly server: string
  /** What it says, cleaned and within bounds. */
  readonly message: string
  readonly form: Form
}

/** An address that a server wants a person to open (MCP mode `url`). */
export interface UrlRequest {
  readonly server: string
  readonly message: string
  /** The whole address; nothing of it was fetched. */
  readonly url: string
  /** Its host as people should read it. */
  readonly host: string
  /** What is odd about it, e.g. Punycode; one line each. */
  readonly warnings: ReadonlyArray<string>
}

/** What came of it. `unanswered`: nobody was there for these fields; the call fails with their names. */
export type FormAnswer =
  | { readonly action: "accept"; readonly content: JsonObject }
  | { readonly action: "decline" }
  | { readonly action: "cancel" }
  | { readonly action: "unanswered"; readonly fields: ReadonlyArray<string> }

/** Consent to open an address; says nothing of what happened there. */
export type UrlAnswer = { readonly action: "accept" | "decline" | "cancel" }

/** Answers for one caller. */
export interface Elicitor {
  /** Fills in a form; the answer is completed with defaults and checked by who asks. */
  readonly form: (request: FormRequest) => Effect.Effect<FormAnswer>
  /** Shows an address and asks for consent to open it. Absent: this caller can open none. */
  readonly url?: (request: UrlRequest) => Effect.Effect<UrlAnswer>
}

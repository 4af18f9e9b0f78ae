/**
 * The shape that every reported failure has, whatever its class.
 *
 * Each room defines its own `Schema.TaggedError` classes, one per decision a caller can make, from
 * `failureFields`. Faces (CLI, gateway, TUI) see only this shape and map it once. The text is complete: it says
 * what happened; `where` says where; `fix` says what to do next (the catalogue's line stands in when absent).
 */
import * as Schema from "effect/Schema"
import { catalogue, type Code, exitOf, isCode } from "./Codes.ts"

const CodeSchema = Schema.String.pipe(Schema.filter((text): text is Code => isCode(text)))

/** Where a failure happened; every part that is known. Lines and columns start at 1. */
export const Where = Schema.Struct({
  file: Schema.optional(Schema.String),
  line: Schema.optional(Schema.Number),
  column: Schema.optional(Schema.Number),
  field: Schema.optional(Schema.String),
  server: Schema.optional(Schema.String),
  tool: Schema.optional(Schema.String),
  operation: Schema.optional(Schema.String)
})
/** Where a failure happened. */
export type Where = typeof Where.Type

/** Fields shared by all failure classes. */
export const failureFields = {
  /** Stable code, see `Codes.ts`. */
  code: CodeSchema,
  /** Literal reason inside the code, e.g. `configuration_invalid`, `frame_too_large`. */
  reason: Schema.String,
  /** What happened, in one or more complete sentences, safe to show. */
  text: Schema.String,
  /** What to do next; the catalogue's fix when absent. */
  fix: Schema.optional(Schema.String),
  where: Schema.optional(Where),
  /** Near names, best first. */
  candidates: Schema.optional(Schema.Array(Schema.String)),
  /** Structured facts (R section 4.4 names them for connection faults). */
  details: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
}

/** What every failure class looks like from outside. */
export interface Failure {
  readonly _tag: string
  readonly code: Code
  readonly reason: string
  readonly text: string
  readonly fix?: string | undefined
  readonly where?: Where | undefined
  readonly candidates?: ReadonlyArray<string> | undefined
  readonly details?: { readonly [key: string]: unknown } | undefined
}

/** Whether a value is a failure of sigil. */
export const isFailure = (value: unknown): value is Failure =>
  typeof value === "object" &&
  value !== null &&
  "code" in value &&
  typeof value.code === "string" &&
  isCode(value.code) &&
  "text" in value

/** The exit code of a failure. */
export const exitCodeOf = (failure: Failure): number => exitOf(failure.code)

/** What to do next. */
export const fixOf = (failure: Failure): string => failure.fix ?? catalogue[failure.code].fix

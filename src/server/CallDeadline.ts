/**
 * How long one call may take, and which field says so (spec section 7): the caller's own wish, the tool's, the entry's.
 *
 * With `timeout_mode = "idle"` progress starts the deadline anew, up to a hard maximum: as written, or ten times the
 * deadline of this very call. The maximum also bounds a deadline that is longer.
 */
import { DAY_MS, SECOND_MS } from "../base/Units.ts"
import { own } from "../base/Json.ts"
import type { ServerDeclaration } from "../config/ServerDeclaration.ts"
import type { RequestOptions } from "./Connection.ts"

/** Deadline for 0 and less, ms: never "without end". */
const DEFAULT_MS = 30 * SECOND_MS
/** The hard maximum when none is written, in deadlines. */
const MAX_FACTOR = 10

/** The part of a request's options that is about time. */
export type CallDeadline = Pick<
  RequestOptions,
  "deadlineMs" | "deadlineField" | "deadlineHint" | "idleMaxMs" | "idleMaxField"
>

/** A deadline that somebody asked for, ms: 0 or negative is the default of 30 s, at most 24 h. */
export const asked = (ms: number): number => (ms > 0 ? Math.min(ms, DAY_MS) : DEFAULT_MS)

/** The field of the entry that sets its call deadline, as the entry spells it. */
const fieldOf = ({ format, raw }: ServerDeclaration): { readonly field: string; readonly hint?: string } => {
  if (format === "toml") return { field: "tool_timeout_secs" }
  const written = ["toolTimeoutSecs", "tool_timeout_secs"].find((key) => own(raw, key) !== undefined)
  if (written !== undefined) return { field: written }
  return own(raw, "timeout") === undefined
    ? { field: "toolTimeoutSecs" }
    : { field: "timeout", hint: "timeout (in milliseconds)" }
}

const withMaximum = (declaration: ServerDeclaration, deadline: CallDeadline): CallDeadline =>
  declaration.timeoutMode === "idle"
    ? {
        ...deadline,
        idleMaxMs: declaration.toolTimeoutMaxMs ?? Math.min(DAY_MS, deadline.deadlineMs * MAX_FACTOR),
        idleMaxField: declaration.format === "toml" ? "tool_timeout_max_secs" : "toolTimeoutMaxSecs"
      }
    : deadline

/** The deadline of a call of a tool, or of another operation when no tool is given. */
export const of = (
  declaration: ServerDeclaration,
  call: { readonly tool?: string; readonly askedMs?: number | undefined }
): CallDeadline => {
  const { askedMs, tool } = call
  if (askedMs !== undefined) {
    return withMaximum(declaration, { deadlineMs: asked(askedMs), deadlineField: "--timeout" })
  }
  const single = tool !== undefined && Object.hasOwn(declaration.toolTimeoutsMs, tool)
  const ofTool = single ? declaration.toolTimeoutsMs[tool] : undefined
  if (ofTool !== undefined) {
    const deadlineField = `tool_timeouts.${tool}`
    return withMaximum(declaration, {
      deadlineMs: ofTool,
      deadlineField,
      ...(declaration.format === "json" ? { deadlineHint: `${deadlineField} (in milliseconds)` } : {})
    })
  }
  const { field, hint } = fieldOf(declaration)
  return withMaximum(declaration, {
    deadlineMs: declaration.toolTimeoutMs,
    deadlineField: field,
    ...(hint === undefined ? {} : { deadlineHint: hint })
  })
}

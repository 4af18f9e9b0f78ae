/** One finding of the doctor. */
import type { Where } from "../base/Failure.ts"

/** What a check found. `error` makes the command exit with 1. */
export interface Finding {
  /** Stable name of the check, e.g. `config:load`, `mcp:command`. */
  readonly code: string
  /** What was looked at: a file, a server's name. */
  readonly subject: string
  readonly status: "ok" | "warn" | "error"
  readonly message: string
  readonly fix?: string
  readonly where?: Where
}

/** A finding without trouble. */
export const fine = (code: string, subject: string, message: string): Finding => ({
  code,
  subject,
  status: "ok",
  message
})

/**
 * Builds `ConfigError`s with file, line, column and field, and words for what was found.
 *
 * A value from a file is never printed unless it is one short word that cannot be a credential: a secret that
 * stands at the wrong place must not reach a terminal or a log.
 */
import type { Code } from "../base/Codes.ts"
import { ConfigError } from "./ConfigError.ts"
import type { LocatedNode, Position } from "./Located.ts"
import { looksLikeCredential } from "./Credentials.ts"

/** Shortest list of a found word that may be repeated in a message. */
const MAX_SHOWN = 40

/** One thing that is wrong, before the file and server are known. */
export interface Issue {
  readonly field: string
  readonly at: Position
  /** What was found and what is expected, without the field's name. */
  readonly text: string
  readonly code?: Code
  readonly reason?: string
  readonly fix?: string
}

/** Where issues are collected while an entry or a file is decoded. */
export type Issues = Array<Issue>

/** An issue as an error of `file` (and of `server`, for an entry); further issues travel in `details.further`. */
export const toError = (
  issue: Issue,
  context: { readonly file: string; readonly server?: string; readonly further?: ReadonlyArray<Issue> }
): ConfigError =>
  new ConfigError({
    code: issue.code ?? "SIGIL_CONFIG_INVALID",
    reason: issue.reason ?? "configuration_invalid",
    text: issue.field === "" ? issue.text : `${issue.field}: ${issue.text}`,
    fix: issue.fix,
    where: {
      file: context.file,
      line: issue.at.line,
      column: issue.at.column,
      ...(issue.field === "" ? {} : { field: issue.field }),
      ...(context.server === undefined ? {} : { server: context.server })
    },
    ...(context.further === undefined || context.further.length === 0
      ? {}
      : {
          details: {
            further: context.further.map(({ field, at, text }) => ({ field, line: at.line, column: at.column, text }))
          }
        })
  })

/** A file that exists but cannot be used at all. */
export const unreadable = (file: string, text: string, at?: Position, fix?: string): ConfigError =>
  new ConfigError({
    code: "SIGIL_CONFIG_UNREADABLE",
    reason: "unreadable",
    text,
    fix,
    where: { file, ...(at === undefined ? {} : { line: at.line, column: at.column }) }
  })

const kinds: { readonly [kind in LocatedNode["kind"]]: string } = {
  object: "a table of keys",
  array: "a list",
  string: "a string",
  number: "a number",
  boolean: "true or false",
  null: "null",
  date: "a date"
}

/** What kind of value stands there, never the value. */
export const kindText = (node: LocatedNode): string => kinds[node.kind]

/** The value itself when it is a harmless short word or number, else its kind. */
export const foundText = (node: LocatedNode): string => {
  if (node.kind === "number") return String(node.value)
  if (node.kind === "boolean") return String(node.value)
  if (node.kind !== "string") return kindText(node)
  if (node.value === "") return "an empty string"
  const harmless = node.value.length <= MAX_SHOWN && /^[\w.+: -]+$/.test(node.value) && !looksLikeCredential(node.value)
  return harmless ? `"${node.value}"` : kindText(node)
}

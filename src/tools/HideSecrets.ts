/**
 * Failures without secrets: a server's words reach errors too, in messages, names, near names and details.
 *
 * The failures of admission and start hold nothing of a server that was not hidden when they were made; those of a
 * call come from many places, so they are gone over once, where they leave the pipeline.
 */
import type * as Context from "effect/Context"
import { type Json, pointerKey, pointerSegment } from "../base/Json.ts"
import type { Secrets } from "../policy/Secrets.ts"
import type { CallRefused } from "./CallRefused.ts"
import type { CallError } from "./Pipeline.ts"

/** The same failure with every secret hidden; the same object when there is none. */
export const hideIn = (secrets: Context.Tag.Service<Secrets>, error: CallError): CallError => {
  switch (error._tag) {
    case "RemoteError":
    case "ConnectionError":
    case "CallRefused":
      return hidden(secrets, error)
    default:
      return error
  }
}

/** The same for one refusal. */
export const hideRefused = (secrets: Context.Tag.Service<Secrets>, error: CallRefused): CallRefused =>
  hidden(secrets, error)

/** A JSON pointer whose segments hold no secret: they are read before they are searched. */
export const hideInPointer = (redact: (text: string) => string, pointer: string): string =>
  redact(
    pointer
      .split("/")
      .map((segment) => redact(pointerKey(segment)))
      .map(pointerSegment)
      .join("/")
  )

const hidden = <E extends Extract<CallError, { readonly _tag: "RemoteError" | "ConnectionError" | "CallRefused" }>>(
  secrets: Context.Tag.Service<Secrets>,
  error: E
): E => {
  const { text, fix, where, candidates, details } = error
  // Details are made of JSON: names, numbers, what did not fit.
  const said = { text, fix, where, candidates, details } as Json
  const safe = secrets.redactJson(said, "schema")
  if (safe === said) return error
  // The same class with some fields replaced: these classes take exactly their own fields.
  const Class = error.constructor as new (fields: object) => E
  return new Class({ ...error, ...(safe as object) })
}

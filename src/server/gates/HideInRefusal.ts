/** Refusals without secrets: what a gate says may hold values that variables brought into the entry. */
import type * as Context from "effect/Context"
import type { Json } from "../../base/Json.ts"
import type { Secrets } from "../../policy/Secrets.ts"
import type { Refusal } from "./Gate.ts"

/** The same refusal with every secret hidden; the same object when there is none. */
export const hideInRefusal = (
  secrets: Pick<Context.Tag.Service<typeof Secrets>, "redactJson">,
  refusal: Refusal
): Refusal => {
  const { text, fix, details } = refusal
  // Names and numbers, as all details are.
  const said = { text, fix, details } as Json
  const safe = secrets.redactJson(said, "schema")
  if (safe === said) return refusal
  // The same class with some fields replaced: these classes take exactly their own fields.
  const Class = refusal.constructor as new (fields: object) => Refusal
  return new Class({ ...refusal, ...(safe as object) })
}

/** Arguments that are null where a tool knows no null: models write it for "not given". Pure. */
import { type JsonObject, own, pointerSegment } from "../base/Json.ts"

/**
 * Arguments without those that are null where the tool wants another type and does not require one: models write null
 * for "not given". `undefined` when that is not all that is wrong.
 */
export const withoutNulls = (
  schema: JsonObject,
  args: JsonObject,
  problems: ReadonlyArray<{ readonly path: string }>
): JsonObject | undefined => {
  const required = own(schema, "required")
  const nulls = Object.keys(args).filter(
    (key) => args[key] === null && !(Array.isArray(required) && required.includes(key))
  )
  const pointers = new Set(nulls.map((key) => `/${pointerSegment(key)}`))
  if (!problems.every(({ path }) => pointers.has(path))) return undefined
  return Object.fromEntries(Object.entries(args).filter(([key]) => !nulls.includes(key)))
}

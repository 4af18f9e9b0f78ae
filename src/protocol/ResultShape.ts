/** What the answer to a call or to a surface's method must have, and what it says by that. */
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"

/** Whether a tool's result says that it failed. A value of a wrong type says so too: the mark is never lost. */
export const hasFailed = (result: JsonObject): boolean => {
  const mark = own(result, "isError")
  return mark !== undefined && mark !== null && mark !== false
}

const isText = (value: Json | undefined): boolean => typeof value === "string"

const badItem = (items: Json | undefined, field: string, fits: (item: JsonObject) => boolean): string | undefined => {
  if (!Array.isArray(items)) return field
  const index = items.findIndex((item: Json) => !isJsonObject(item) || !fits(item))
  return index < 0 ? undefined : `${field}[${index}]`
}

/** The first member that is missing or of the wrong type, as a path; `undefined` when the answer fits. */
export const misshapen = (method: string, answer: JsonObject): string | undefined => {
  if (method === "resources/read") {
    return badItem(
      own(answer, "contents"),
      "contents",
      (item) => isText(own(item, "uri")) && (isText(own(item, "text")) || isText(own(item, "blob")))
    )
  }
  if (method === "prompts/get") {
    return badItem(own(answer, "messages"), "messages", (item) => {
      const content = own(item, "content")
      // Text alone instead of a block is a slip of old servers, and says all that is needed.
      return isText(own(item, "role")) && (isText(content) || isJsonObject(content))
    })
  }
  if (method === "completion/complete") {
    const completion = own(answer, "completion")
    if (!isJsonObject(completion)) return "completion"
    const values = own(completion, "values")
    if (!Array.isArray(values)) return "completion.values"
    const index = values.findIndex((value: Json) => !isText(value))
    return index < 0 ? undefined : `completion.values[${index}]`
  }
  return undefined
}

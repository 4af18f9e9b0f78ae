/**
 * `x-mcp-header`: arguments that travel in an HTTP header as well (MCP 2026-07-28, SEP-2243; K section 9.10). Pure.
 *
 * A tool whose annotations break a rule is left out of what can be called over HTTP: its calls would be refused by
 * every server that checks headers.
 */
import { isJsonObject, type Json, type JsonObject, own, pointerSegment } from "../base/Json.ts"

/** The property of a schema that names the header. */
const ANNOTATION = "x-mcp-header"
/** RFC 9110 token. */
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const annotatable = new Set(["string", "integer", "boolean"])
/** Levels of nested objects that are looked at; a schema is guarded separately. */
const MAX_LEVELS = 32

/** One argument that is repeated in a header. */
export interface ParamHeader {
  /** Keys from the arguments' root. */
  readonly path: ReadonlyArray<string>
  /** The whole header name, `mcp-param-` included, in lower case. */
  readonly header: string
}

/** What is wrong with an annotation, and where (JSON pointer into the input schema). */
export interface AnnotationFault {
  readonly path: string
  readonly message: string
}

/** The annotated arguments of an input schema, or the first rule that it breaks. */
export const paramHeadersOf = (inputSchema: JsonObject): ReadonlyArray<ParamHeader> | AnnotationFault => {
  const found: Array<ParamHeader> = []
  const names = new Set<string>()
  const walk = (
    schema: JsonObject,
    path: ReadonlyArray<string>,
    pointer: string,
    reachable: boolean
  ): AnnotationFault | undefined => {
    if (path.length > MAX_LEVELS) return undefined
    const name = own(schema, ANNOTATION)
    if (name !== undefined) {
      const at = `${pointer}/${ANNOTATION}`
      if (!reachable || path.length === 0)
        return { path: at, message: "it stands where the argument is not reached through properties alone" }
      if (typeof name !== "string" || !token.test(name))
        return { path: at, message: "it is no token of HTTP (RFC 9110)" }
      const type = own(schema, "type")
      if (typeof type !== "string" || !annotatable.has(type))
        return { path: at, message: "only a string, an integer or a boolean can travel in a header" }
      if (names.has(name.toLowerCase())) return { path: at, message: "two arguments name the same header" }
      names.add(name.toLowerCase())
      found.push({ path, header: `mcp-param-${name.toLowerCase()}` })
    }
    for (const [key, value] of Object.entries(schema)) {
      const inner = `${pointer}/${pointerSegment(key)}`
      if (key === "properties" && isJsonObject(value)) {
        for (const [property, child] of Object.entries(value)) {
          if (!isJsonObject(child)) continue
          const fault = walk(child, [...path, property], `${inner}/${pointerSegment(property)}`, reachable)
          if (fault !== undefined) return fault
        }
      } else if (key !== "default" && key !== "const" && key !== "enum" && key !== "examples") {
        for (const child of childrenOf(value)) {
          const fault = walk(child, [...path, key], inner, false)
          if (fault !== undefined) return fault
        }
      }
    }
    return undefined
  }
  return walk(inputSchema, [], "", true) ?? found
}

const childrenOf = (value: Json | undefined): ReadonlyArray<JsonObject> => {
  if (isJsonObject(value)) return [value]
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

/** Whether the check found a fault. */
export const isAnnotationFault = (checked: ReadonlyArray<ParamHeader> | AnnotationFault): checked is AnnotationFault =>
  !Array.isArray(checked)

/** A header value as it may travel: plain where it can, else UTF-8 in base64 behind a sentinel. */
export const encodeHeaderValue = (text: string): string =>
  /^[\x20-\x7e\t]*$/.test(text) && text.trim() === text && !/^=\?base64\?.*\?=$/i.test(text)
    ? text
    : `=?base64?${Buffer.from(text).toString("base64")}?=`

/** The value at a path of the arguments; `undefined` where there is none. */
const valueAt = (args: JsonObject, path: ReadonlyArray<string>): Json | undefined => {
  let value: Json | undefined = args
  for (const key of path) value = isJsonObject(value) ? own(value, key) : undefined
  return value
}

/** The arguments that cannot travel in a header: integers beyond what every reader of it counts exactly. */
export const unsendable = (annotated: ReadonlyArray<ParamHeader>, args: JsonObject): ReadonlyArray<ParamHeader> =>
  annotated.filter(({ path }) => {
    const value = valueAt(args, path)
    if (typeof value === "number") return !Number.isSafeInteger(value)
    return typeof value === "object" && value !== null && "isLosslessNumber" in value
  })

/** The headers of one call's arguments; absent and null arguments have none. */
export const paramHeaderValues = (
  annotated: ReadonlyArray<ParamHeader>,
  args: JsonObject
): { readonly [name: string]: string } => {
  const headers: { [name: string]: string } = {}
  for (const { header, path } of annotated) {
    const value = valueAt(args, path)
    if (value === undefined || value === null) continue
    if (typeof value === "string") headers[header] = encodeHeaderValue(value)
    else if (typeof value === "number" || typeof value === "boolean") headers[header] = String(value)
    else if ("isLosslessNumber" in value && typeof value["value"] === "string") headers[header] = value["value"]
  }
  return headers
}

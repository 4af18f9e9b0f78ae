/**
 * The tools of live generations under the names a model may use, each with a verdict.
 *
 * Definitions come from hostile servers: each is guarded before anything else looks at it, and one bad tool
 * costs one tool (spec section 9). Descriptions and schemas are shown with known secrets hidden; validation uses
 * the original. Ownership is (exact server, generation, exact tool); visible names are output only.
 */
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import type { GenerationId } from "../base/Ids.ts"
import type { Generation } from "../server/Generation.ts"
import { isAnnotationFault, type ParamHeader, paramHeadersOf } from "../protocol/ParamHeaders.ts"
import { possibleNames, type ToolKey, visibleNames } from "./Naming.ts"
import { toolGuard } from "./SchemaGuard.ts"
import * as Tokens from "./Tokens.ts"

/** Why a tool cannot be called. */
export interface ToolReason {
  readonly code: string
  /** JSON pointer into the definition. */
  readonly path: string
  readonly message: string
}

/** One tool of one generation. */
export interface CatalogTool {
  readonly server: string
  readonly generation: GenerationId
  /** Exact wire name. */
  readonly name: string
  readonly visibleName: string
  /** Every name it can be shown under, in this list and in others. */
  readonly possibleNames: ReadonlyArray<string>
  readonly title: string | undefined
  readonly description: string
  readonly status: "available" | "quarantined" | "filtered"
  readonly reason: ToolReason | undefined
  /** The definition as it came; never shown before redaction. */
  readonly definition: JsonObject
  readonly inputSchema: JsonObject
  readonly outputSchema: JsonObject | undefined
  readonly annotations: JsonObject | undefined
  /** Arguments that are repeated in headers; empty where calls have none (K section 9.10). */
  readonly headers: ReadonlyArray<ParamHeader>
  /** Whether a call may become a task (K section 9.17). */
  readonly tasks: "none" | "optional" | "required"
}

/** Characters of a description that are shown (S section 6.1). */
export const MAX_DESCRIPTION = 2_048

const objectOf = (value: Json | undefined): JsonObject | undefined => (isJsonObject(value) ? value : undefined)

const filtered = (generation: Generation, name: string): ToolReason | undefined => {
  const { includeTools, excludeTools } = generation.declaration
  const reason = (field: string): ToolReason => ({
    code: "filtered",
    path: "",
    message: `left out by ${field} of the server's entry`
  })
  // The most restrictive wins (spec section 10).
  if (excludeTools.includes(name)) return reason("excludeTools")
  if (includeTools.length > 0 && !includeTools.includes(name)) return reason("includeTools")
  return undefined
}

/**
 * Visible names of tools whose own names may hold secrets: what is hidden goes before a name is made, because a made
 * name is cut, cleaned and hashed. Tools that differ only in what is hidden are numbered.
 */
export const shownNames = (
  tools: ReadonlyArray<{ readonly server: string; readonly name: string }>,
  redact: (text: string) => string
): ReadonlyArray<string> => visibleNames(shownKeys(tools, redact))

const shownKeys = (
  tools: ReadonlyArray<{ readonly server: string; readonly name: string }>,
  redact: (text: string) => string
): ReadonlyArray<ToolKey> => {
  const numbers = new Map<string, Map<string, number>>()
  return tools.map(({ server, name }) => {
    const shown = redact(name)
    if (shown === name) return { server, tool: name }
    const alike = numbers.get(`${server}\0${shown}`) ?? new Map<string, number>()
    numbers.set(`${server}\0${shown}`, alike)
    const number = alike.get(name) ?? alike.size + 1
    alike.set(name, number)
    return { server, tool: number === 1 ? shown : `${shown} ${number}` }
  })
}

const tasksOf = (definition: JsonObject): CatalogTool["tasks"] => {
  const execution = objectOf(own(definition, "execution"))
  const support = execution === undefined ? undefined : own(execution, "taskSupport")
  return support === "optional" || support === "required" ? support : "none"
}

/** All tools of the given generations, in their servers' order; `redact` hides secrets in what becomes a name. */
export const catalogue = (
  generations: ReadonlyArray<Generation>,
  redact: (text: string) => string = (text) => text
): ReadonlyArray<CatalogTool> => {
  const found: Array<Omit<CatalogTool, "visibleName" | "possibleNames">> = []
  for (const generation of generations) {
    const seen = new Set<string>()
    const hasHeaders = generation.revision.era === "stateless" && generation.declaration.endpoint._tag === "remote"
    for (const raw of generation.tools) {
      const definition = objectOf(raw) ?? {}
      const rawName = own(definition, "name")
      const name = typeof rawName === "string" ? rawName : ""
      const guarded = toolGuard(definition)
      const twice: ToolReason | undefined = seen.has(name)
        ? { code: "duplicate_name", path: "/name", message: "the server lists this name more than once" }
        : undefined
      seen.add(name)
      const inputSchema = objectOf(own(definition, "inputSchema")) ?? {}
      const headers = hasHeaders && guarded.ok ? paramHeadersOf(inputSchema) : []
      const unsendable: ToolReason | undefined = isAnnotationFault(headers)
        ? { code: "invalid_header_annotation", path: `/inputSchema${headers.path}`, message: headers.message }
        : undefined
      const bad = guarded.ok ? (twice ?? unsendable) : guarded.reason
      const left = bad === undefined ? filtered(generation, name) : undefined
      const description = own(definition, "description")
      const title = own(definition, "title")
      found.push({
        server: generation.server,
        generation: generation.id,
        name,
        title: typeof title === "string" ? title : undefined,
        description: typeof description === "string" ? description : "",
        status: bad !== undefined ? "quarantined" : left !== undefined ? "filtered" : "available",
        reason: bad ?? left,
        definition,
        inputSchema,
        outputSchema: objectOf(own(definition, "outputSchema")),
        annotations: objectOf(own(definition, "annotations")),
        headers: isAnnotationFault(headers) ? [] : headers,
        tasks: tasksOf(definition)
      })
    }
  }
  const keys = shownKeys(found, redact)
  const names = visibleNames(keys)
  return found.map((tool, index) => ({
    ...tool,
    visibleName: names[index] ?? tool.name,
    possibleNames: possibleNames(keys[index] ?? { server: tool.server, tool: tool.name })
  }))
}

/** Estimated tokens a tool's definition costs a model. */
export const tokensOf = (tool: CatalogTool): number =>
  tool.status === "quarantined"
    ? 0
    : Tokens.estimate(tool.visibleName) +
      Tokens.estimate(tool.description) +
      Tokens.estimate(JSON.stringify(tool.inputSchema))

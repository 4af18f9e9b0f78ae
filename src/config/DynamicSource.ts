/**
 * Servers that a program declares as values: scope `dynamic` (spec section 2).
 *
 * The values go through the decoder of the JSON files, so an entry means the same wherever it is written. There is
 * no text with lines: positions are 1:1 of `servers`, and the field's path says where a fault is. A server that
 * lives in this process has no launch of its own; a label stands for its command.
 */
import type { DecodeContext } from "./DecodeEntry.ts"
import { decodeJson } from "./DecodeJson.ts"
import type { Decoded } from "./DecodeToml.ts"
import { type LocatedNode, MAX_DEPTH, type Position } from "./Located.ts"
import { type Entry, inProcessCommand, nameOf } from "./ServerDeclaration.ts"
import { contextOf, type SourceContext } from "./Sources.ts"

/** Name of this source in positions. */
export const DYNAMIC = "servers"

/** One server as a value. */
export interface DynamicEntry {
  /** Keys as in `.mcp.json`; whatever else a program hands over is refused as an entry of a file would be. */
  readonly entry: unknown
  /** Whether the server lives in this process; `entry` then names no command. */
  readonly inProcess: boolean
  /** `ide` for a server that an IDE declares. */
  readonly origin?: "ide" | undefined
}

/** Values have no lines. */
const at: Position = { line: 1, column: 1 }

/** A value as the decoder wants it. What JSON cannot hold becomes null and is refused by the field's own rule. */
const located = (value: unknown, depth = 0): LocatedNode => {
  if (typeof value === "string") return { kind: "string", at, value }
  if (typeof value === "boolean") return { kind: "boolean", at, value }
  if (typeof value === "number" && Number.isFinite(value)) return { kind: "number", at, value }
  if (typeof value !== "object" || value === null || depth >= MAX_DEPTH) return { kind: "null", at }
  if (Array.isArray(value)) return { kind: "array", at, items: value.map((item) => located(item, depth + 1)) }
  return {
    kind: "object",
    at,
    properties: Object.entries(value).flatMap(([key, inner]) =>
      inner === undefined ? [] : [{ key, at, value: located(inner, depth + 1) }]
    )
  }
}

/** Never `undefined`: such an entry would be left out as if nobody had written it. */
const labelled = (name: string, { entry, inProcess }: DynamicEntry): unknown =>
  inProcess && typeof entry === "object"
    ? { ...entry, transport: "stdio", command: inProcessCommand(name) }
    : (entry ?? null)

/** Decodes the values where the facts of a run are known. */
export const decodeDynamic =
  (servers: { readonly [name: string]: DynamicEntry }) =>
  (facts: SourceContext): Decoded =>
    decodeDynamicIn(servers)(contextOf("dynamic", DYNAMIC, facts))

/** Decodes the values; a faulty one is a broken entry that claims its name. */
export const decodeDynamicIn =
  (servers: { readonly [name: string]: DynamicEntry }) =>
  (context: DecodeContext): Decoded => {
    const root = located({
      mcpServers: Object.fromEntries(Object.entries(servers).map(([name, server]) => [name, labelled(name, server)]))
    })
    const decoded = decodeJson(root, { infer: true, mayBeBare: false }, context)
    const marked = (entry: Entry): Entry => {
      const given = Object.hasOwn(servers, nameOf(entry)) ? servers[nameOf(entry)] : undefined
      if (entry._tag === "Broken" || given === undefined) return entry
      const marks = {
        ...(given.inProcess ? { inProcess: true as const } : {}),
        ...(given.origin === undefined ? {} : { origin: given.origin })
      }
      return { _tag: "Valid", declaration: { ...entry.declaration, ...marks } }
    }
    return { entries: decoded.entries.map(marked), problems: decoded.problems }
  }

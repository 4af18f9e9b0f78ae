/**
 * `mcpServers` of a JSON file (S sections 1.2 to 1.4): settings.json, `.mcp.json`, mcp.local.json, `--mcp-config`.
 *
 * These files are shared with other hosts: unknown keys are kept, said once and count in the fingerprint. The
 * transport is inferred except in settings.json, where its absence costs that entry.
 */
import { SECOND_MS } from "../base/Units.ts"
import { decodeEntry, type DecodeContext, type EntryFormat, type TransportChoice } from "./DecodeEntry.ts"
import { type Decoded, MAX_DECLARATIONS } from "./DecodeToml.ts"
import { transportOfUrl } from "./EndpointUrl.ts"
import type { FieldReader } from "./Fields.ts"
import { childPath, duplicatesOf, type LocatedNode, type LocatedObject, propertyOf } from "./Located.ts"
import { foundText, type Issue, kindText, toError } from "./Problem.ts"
import type { ConfigError } from "./ConfigError.ts"
import type { Entry, RemoteTransport } from "./ServerDeclaration.ts"

/** Start budget of a JSON entry, ms (S section 3.7). */
const STARTUP_MS = 30 * SECOND_MS
/** Call deadline of a JSON entry, ms (S section 3.7). */
const CALL_MS = 120 * SECOND_MS

/** JSON spellings of transports (S sections 1.2, 1.3). */
const transports: { readonly [word: string]: "stdio" | RemoteTransport } = {
  stdio: "stdio",
  http: "streamable_http",
  "streamable-http": "streamable_http",
  streamable_http: "streamable_http",
  "http-json": "http-json",
  sse: "sse",
  ws: "ws"
}
const expected = '"stdio", "http", "sse", "ws" or "http-json"'

const stringOf = (node: LocatedNode | undefined): string | undefined =>
  node?.kind === "string" ? node.value : undefined

/** The value that inference gives: `type`, else by `command`, else by `url` and its scheme (S section 1.3). */
const inferred = (reader: FieldReader): string | undefined => {
  const type = stringOf(propertyOf(reader.object, "type")?.value)
  if (type !== undefined && type !== "") return type === "streamable-http" ? "http" : type
  if (reader.has("command")) return "stdio"
  const url = reader.object.properties.findLast(({ key }) => key === "url")
  return url === undefined ? undefined : transportOfUrl(stringOf(url.value) ?? "")
}

const transportOf =
  (infer: boolean) =>
  (reader: FieldReader): TransportChoice => {
    const type = reader.takeExact("type")
    const property = reader.take("transport")
    const written = stringOf(property?.value)
    if (property !== undefined && written !== "") {
      const known = written !== undefined && Object.hasOwn(transports, written) ? transports[written] : undefined
      if (known === undefined)
        reader.add(
          reader.pathOf(property),
          property.value.at,
          `found ${foundText(property.value)}, expected ${expected}`
        )
      return known
    }
    const guess = inferred(reader)
    if (!infer) {
      const at = property?.value.at ?? reader.object.at
      reader.add(
        reader.missingPath("transport"),
        at,
        `the transport is missing, and this file needs it; write "transport": "${guess ?? "stdio"}"`
      )
      return undefined
    }
    if (guess === undefined) {
      reader.add(
        reader.path,
        reader.object.at,
        "the entry has neither command nor url, so its transport cannot be known"
      )
      return undefined
    }
    const known = Object.hasOwn(transports, guess) ? transports[guess] : undefined
    if (known === undefined && type !== undefined)
      reader.add(reader.pathOf(type), type.value.at, `found ${foundText(type.value)}, expected ${expected}`)
    return known
  }

/** Where the entries of a JSON file stand. */
export interface ServerMap {
  /** `mcpServers`, `mcp_servers`, or the empty string when the file itself is the map. */
  readonly key: string
  readonly object: LocatedObject
}

/** Keys of a bare map that are not servers. */
const annotations = new Set(["$schema", "$comment", "inputs"])

/**
 * Finds the entries (S section 1.4): `mcpServers`, `mcp_servers`, or the file itself where it may be a bare map.
 * `undefined` when the file has none; a fault when the key holds something else.
 */
export const serverMap = (root: LocatedObject, mayBeBare: boolean): ServerMap | Issue | undefined => {
  const named = root.properties.filter(({ key }) => key === "mcpServers" || key === "mcp_servers")
  const [first, second] = named
  if (first !== undefined && second !== undefined)
    return {
      field: second.key,
      at: second.at,
      text: `the servers are already declared under ${first.key}; keep one of the two keys`
    }
  if (first !== undefined)
    return first.value.kind === "object"
      ? { key: first.key, object: first.value }
      : { field: first.key, at: first.value.at, text: `found ${kindText(first.value)}, expected a table of servers` }
  return mayBeBare ? { key: "", object: root } : undefined
}

/** Options of one JSON source. */
export interface JsonSource {
  /** Whether the transport may be inferred (everywhere but settings.json). */
  readonly infer: boolean
  /** Whether the file itself may be the map of servers. */
  readonly mayBeBare: boolean
}

/** Decodes the servers of a parsed JSON text. */
export const decodeJson = (root: LocatedNode, source: JsonSource, context: DecodeContext): Decoded => {
  const problem = (issue: Issue): ConfigError => toError(issue, { file: context.file })
  if (root.kind !== "object")
    return {
      entries: [],
      problems: [
        problem({
          field: "",
          at: root.at,
          text: `found ${kindText(root)}, expected an object with the key "mcpServers"`
        })
      ]
    }
  const map = serverMap(root, source.mayBeBare)
  if (map === undefined) return { entries: [], problems: [] }
  if ("text" in map) return { entries: [], problems: [problem(map)] }
  const bare = map.key === ""
  const properties = map.object.properties.filter(({ key }) => !(bare && annotations.has(key)))
  if (properties.length > MAX_DECLARATIONS)
    return {
      entries: [],
      problems: [
        problem({
          field: map.key,
          at: map.object.at,
          reason: "mcp_server_limit_exceeded",
          text: `the file declares ${properties.length} servers; at most ${MAX_DECLARATIONS} are allowed`
        })
      ]
    }
  const format: EntryFormat = {
    spelling: "json",
    transport: transportOf(source.infer),
    startupMs: STARTUP_MS,
    callMs: CALL_MS,
    required: false,
    strictKeys: false
  }
  const twice = duplicatesOf(map.object)
  const entries: Array<Entry> = []
  for (const { key: name, at, value } of properties) {
    const path = childPath(map.key, name)
    const entrySource = { file: context.file, line: at.line, column: at.column }
    const broken = (issue: Issue): void => {
      if (entries.some((entry) => entry._tag === "Broken" && entry.broken.name === name)) return
      entries.push({
        _tag: "Broken",
        broken: {
          name,
          scope: context.scope,
          source: entrySource,
          error: toError(issue, { file: context.file, server: name })
        }
      })
    }
    const again = twice.get(name)
    if (again !== undefined)
      broken({
        field: path,
        at: again,
        code: "SIGIL_DUPLICATE_NAME",
        reason: "duplicate_mcp_server_name",
        text: "the file declares this name twice, so neither entry is used"
      })
    else if (value.kind !== "object")
      broken({ field: path, at: value.at, text: `found ${kindText(value)}, expected a server entry` })
    else entries.push(decodeEntry(value, { name, at, path }, format, context))
  }
  return { entries, problems: [] }
}

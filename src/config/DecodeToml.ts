/**
 * `[[mcp_servers]]` of a TOML file (R sections 1.2 to 1.5).
 *
 * The transport is always written, never inferred, and an unknown key refuses its entry: a typo in a safety field
 * must not pass as if it were not there.
 */
import { SECOND_MS } from "../base/Units.ts"
import { decodeEntry, type DecodeContext, type EntryFormat } from "./DecodeEntry.ts"
import { transportOfUrl } from "./EndpointUrl.ts"
import type { FieldReader } from "./Fields.ts"
import { type LocatedObject, propertyOf } from "./Located.ts"
import { type Issue, kindText, toError } from "./Problem.ts"
import type { ConfigError } from "./ConfigError.ts"
import type { Entry, RemoteTransport } from "./ServerDeclaration.ts"

/** Start budget of a TOML entry, ms (R section 1.2). */
const STARTUP_MS = 10 * SECOND_MS
/** Call deadline of a TOML entry, ms (R section 1.7). */
const CALL_MS = 30 * SECOND_MS
/** Most declarations of one file, and of all files together (R section 1.2). */
export const MAX_DECLARATIONS = 4_096

/** TOML spellings of transports (S section 12.1). */
const transports: { readonly [word: string]: "stdio" | RemoteTransport } = {
  stdio: "stdio",
  streamable_http: "streamable_http",
  sse: "sse",
  ws: "ws",
  http_json: "http-json"
}
const words = Object.keys(transports)

const transportOf = (reader: FieldReader): "stdio" | RemoteTransport | undefined => {
  const property = reader.take("transport")
  if (property === undefined) {
    const url = reader.has("command") ? undefined : propertyOf(reader.object, "url")?.value
    const likely =
      url === undefined
        ? "stdio"
        : url.kind === "string" && transportOfUrl(url.value) === "ws"
          ? "ws"
          : "streamable_http"
    reader.add(
      reader.missingPath("transport"),
      reader.object.at,
      `the transport is missing; write transport = "${likely}"`
    )
    return undefined
  }
  const word = reader.choiceIn(property, words)
  return word === undefined ? undefined : transports[word]
}

/** What a source says: usable and broken entries by name, and faults that belong to no name. */
export interface Decoded {
  readonly entries: ReadonlyArray<Entry>
  readonly problems: ReadonlyArray<ConfigError>
}

/** Decodes the `mcp_servers` of a parsed TOML file; a file without them has no entries. */
export const decodeToml = (root: LocatedObject, context: DecodeContext): Decoded => {
  const property = propertyOf(root, "mcp_servers")
  if (property === undefined) return { entries: [], problems: [] }
  const problem = (issue: Issue): ConfigError => toError(issue, { file: context.file })
  if (property.value.kind !== "array")
    return {
      entries: [],
      problems: [
        problem({
          field: "mcp_servers",
          at: property.at,
          text: `found ${kindText(property.value)}, expected entries that begin with [[mcp_servers]]`
        })
      ]
    }
  if (property.value.items.length > MAX_DECLARATIONS)
    return {
      entries: [],
      problems: [
        problem({
          field: "mcp_servers",
          at: property.at,
          reason: "mcp_server_limit_exceeded",
          text: `the file declares ${property.value.items.length} servers; at most ${MAX_DECLARATIONS} are allowed`
        })
      ]
    }
  const format: EntryFormat = {
    spelling: "toml",
    transport: transportOf,
    startupMs: STARTUP_MS,
    callMs: context.defaults.tomlToolTimeoutMs ?? CALL_MS,
    // What a plugin brings along is no reason to refuse a run; whoever needs it says so.
    required: context.scope !== "plugin",
    strictKeys: true
  }
  const entries: Array<Entry> = []
  const problems: Array<ConfigError> = []
  for (const [index, item] of property.value.items.entries()) {
    const path = `mcp_servers[${index}]`
    if (item.kind !== "object") {
      problems.push(problem({ field: path, at: item.at, text: `found ${kindText(item)}, expected a server entry` }))
      continue
    }
    const name = propertyOf(item, "name")
    if (name === undefined || name.value.kind !== "string") {
      problems.push(
        problem({
          field: `${path}.name`,
          at: name?.value.at ?? item.at,
          text:
            name === undefined
              ? "the entry has no name, so it is not used"
              : `found ${kindText(name.value)}, expected a string`
        })
      )
      continue
    }
    entries.push(decodeEntry(item, { name: name.value.value, at: item.at, path, nameKey: "name" }, format, context))
  }
  return { entries, problems }
}

/**
 * Decodes the endpoint of a remote server: URL, headers, sign-in (R section 1.4, S sections 1.2 and 12.3 row 36).
 *
 * TOML splits headers into literal ones, ones from variables and the bearer variable; JSON has one map with
 * `${VAR}`. Both obey the same bounds. A literal value under a name that says it is secret is refused where other
 * people read the file, and in TOML; in the user's own JSON it is a warning.
 */
import type { JsonObject } from "../base/Json.ts"
import { KIB } from "../base/Units.ts"
import { isEncrypted, urlFault } from "./EndpointUrl.ts"
import { environmentNameText, type FieldReader, isEnvironmentName } from "./Fields.ts"
import { childPath, type LocatedProperty, objectToJson, type Position, record } from "./Located.ts"
import type { RemoteEndpoint, RemoteTransport, Scope } from "./ServerDeclaration.ts"

/** Most headers of one entry, the bearer variable included. */
const MAX_HEADERS = 32
/** Longest header name in bytes. */
const MAX_HEADER_NAME = 128
/** Longest literal header value in bytes. */
const MAX_HEADER_VALUE = 8 * KIB
/** Most bytes of all names, values and variable names together. */
const MAX_HEADER_BYTES = 32 * KIB
/** Most scopes, longest scope and most bytes of scopes together of one sign-in. */
const MAX_SCOPES = 32
const MAX_SCOPE = 256
const MAX_SCOPE_BYTES = 4 * KIB

const headerToken = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** Headers that the transport itself writes. */
const ownedHeaders = new Set([
  "accept",
  "connection",
  "content-length",
  "content-type",
  "host",
  "mcp-protocol-version",
  "mcp-session-id"
])
const sensitiveHeaders = new Set(["authorization", "proxy-authorization", "cookie", "set-cookie"])

/** Whether a header of this name carries a credential. */
export const isSensitiveHeader = (name: string): boolean => {
  const low = name.toLowerCase()
  return sensitiveHeaders.has(low) || /api-?key|token|secret/.test(low)
}

const hasVariable = (text: string): boolean => /\$\{[^}]*\}/.test(text)

interface Header {
  readonly name: string
  readonly value: string
  readonly field: string
  readonly at: Position
  readonly from: "literal" | "variable"
}

const headersOf = (
  reader: FieldReader,
  name: string,
  from: Header["from"]
): { readonly list: ReadonlyArray<Header>; readonly map: { readonly [key: string]: string } } => {
  const found = reader.stringMap(name)
  if (found === undefined) return { list: [], map: record([]) }
  const inner = found.property.value.kind === "object" ? found.property.value.properties : []
  const at = (key: string): Position => inner.find((property) => property.key === key)?.at ?? found.property.at
  const list = Object.entries(found.map).map(([key, value]) => ({
    name: key,
    value,
    field: childPath(reader.pathOf(found.property), key),
    at: at(key),
    from
  }))
  return { list, map: found.map }
}

const checkHeader = (header: Header, reader: FieldReader, scope: Scope, warnings: Array<string>): void => {
  const { name, value, field, at } = header
  const fault = (text: string): void => reader.add(field, at, text)
  if (!headerToken.test(name) || name.length > MAX_HEADER_NAME)
    return fault(`expected the name of an HTTP header, at most ${MAX_HEADER_NAME} characters`)
  if (ownedHeaders.has(name.toLowerCase())) return fault("sigil sets this header itself; remove it")
  if (header.from === "variable") return isEnvironmentName(value) ? undefined : fault(`expected ${environmentNameText}`)
  if (/[\r\n\0]/.test(value)) return fault("the value holds a line break or NUL")
  if (Buffer.byteLength(value) > MAX_HEADER_VALUE) return fault(`the value has more than ${MAX_HEADER_VALUE} bytes`)
  if (!isSensitiveHeader(name) || hasVariable(value)) return undefined
  if (reader.spelling === "json" && scope !== "project" && scope !== "imported" && scope !== "plugin") {
    warnings.push(`${field} holds a literal credential; \${NAME} keeps it out of the file`)
    return undefined
  }
  return reader.add(field, at, "the value of this header is a credential and may not be written into the file", {
    code: "SIGIL_LITERAL_CREDENTIAL",
    reason: "literal_credential",
    fix:
      reader.spelling === "toml"
        ? `Move it to env_http_headers: "${name}" = "NAME_OF_A_VARIABLE".`
        : `Write "${name}": "\${NAME_OF_A_VARIABLE}" and set the variable.`
  })
}

const checkTogether = (headers: ReadonlyArray<Header>, bearer: string | undefined, reader: FieldReader): void => {
  const count = headers.length + (bearer === undefined ? 0 : 1)
  if (count > MAX_HEADERS)
    reader.add(reader.path, reader.object.at, `the entry has ${count} headers; at most ${MAX_HEADERS} are allowed`)
  const bytes = headers.reduce((sum, { name, value }) => sum + Buffer.byteLength(name) + Buffer.byteLength(value), 0)
  if (bytes > MAX_HEADER_BYTES)
    reader.add(reader.path, reader.object.at, `the headers have more than ${MAX_HEADER_BYTES} bytes together`)
  const seen = new Map<string, string>(bearer === undefined ? [] : [["authorization", "bearer_token_env_var"]])
  for (const { name, field, at } of headers) {
    const other = seen.get(name.toLowerCase())
    if (other !== undefined) reader.add(field, at, `the same header is also given by ${other}; keep one of them`)
    else seen.set(name.toLowerCase(), field)
  }
}

/** Reads the fields of a remote endpoint; every fault goes to the reader's issues. */
export const decodeRemote = (
  reader: FieldReader,
  transport: RemoteTransport,
  scope: Scope,
  warnings: Array<string>
): RemoteEndpoint => {
  const urlProperty = reader.object.properties.findLast(({ key }) => key === "url")
  const url = reader.text("url")
  if (urlProperty === undefined)
    reader.add(reader.missingPath("url"), reader.object.at, `a server with transport "${transport}" needs a url`)
  if (url !== undefined && urlProperty !== undefined && !hasVariable(url)) {
    const fault = urlFault(url, transport)
    if (fault !== undefined) reader.add(reader.pathOf(urlProperty), urlProperty.value.at, fault)
  }
  const literal = headersOf(reader, "http_headers", "literal")
  const json =
    reader.spelling === "json" ? headersOf(reader, "headers", "literal") : { list: [], map: record<string>([]) }
  const variable = headersOf(reader, "env_http_headers", "variable")
  const bearerProperty = reader.object.properties.findLast(
    ({ key }) => key === "bearer_token_env_var" || (reader.spelling === "json" && key === "bearerTokenEnvVar")
  )
  const bearer = reader.text("bearer_token_env_var")
  if (bearer !== undefined && bearerProperty !== undefined && !isEnvironmentName(bearer))
    reader.add(reader.pathOf(bearerProperty), bearerProperty.value.at, `expected ${environmentNameText}`)
  const headers = [...literal.list, ...json.list, ...variable.list]
  for (const header of headers) checkHeader(header, reader, scope, warnings)
  checkTogether(headers, bearer, reader)
  const oauth = decodeOauth(reader, {
    url,
    authorized: bearer !== undefined || headers.some(({ name }) => name.toLowerCase() === "authorization")
  })
  const auth = reader.choice("auth", ["backend"])
  const credentials =
    bearer !== undefined ||
    oauth !== undefined ||
    auth !== undefined ||
    variable.list.length > 0 ||
    headers.some(({ name }) => isSensitiveHeader(name))
  if (
    url !== undefined &&
    !hasVariable(url) &&
    URL.canParse(url) &&
    credentials &&
    !isEncrypted(url) &&
    urlProperty !== undefined
  )
    reader.add(
      reader.pathOf(urlProperty),
      urlProperty.value.at,
      "credentials are never sent over plain http; use https"
    )
  return {
    _tag: "remote",
    transport,
    url: url ?? "",
    headers: record([...Object.entries(literal.map), ...Object.entries(json.map)]),
    envHeaders: variable.map,
    ...(bearer === undefined ? {} : { bearerTokenEnvVar: bearer }),
    ...(oauth === undefined ? {} : { oauth }),
    ...(auth === undefined ? {} : { auth }),
    clientCapabilities: capabilities(reader)
  }
}

const capabilities = (reader: FieldReader): RemoteEndpoint["clientCapabilities"] => {
  const seen = new Set<string>()
  const names = reader.strings("client_capabilities", (text) => {
    if (text !== "roots" && text !== "elicitation") return 'expected "roots" or "elicitation"'
    if (seen.has(text)) return "this capability is listed twice"
    seen.add(text)
    return undefined
  })
  return (names ?? []).filter((name) => name === "roots" || name === "elicitation")
}

const scopeFault = (text: string): string | undefined =>
  text.length === 0 || text.length > MAX_SCOPE || !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(text)
    ? `expected a scope of 1 to ${MAX_SCOPE} visible ASCII characters without quotes and backslashes`
    : undefined

const decodeOauth = (
  entry: FieldReader,
  facts: { readonly url: string | undefined; readonly authorized: boolean }
): JsonObject | undefined => {
  const property: LocatedProperty | undefined = entry.object.properties.findLast(({ key }) => key === "oauth")
  const reader = entry.table("oauth")
  if (reader === undefined || property === undefined) return undefined
  const clientId = reader.text("client_id")
  // eslint-disable-next-line no-control-regex
  if (clientId !== undefined && (Buffer.byteLength(clientId) > KIB || /[\s\u0000-\u001f\u007f]/.test(clientId)))
    reader.add(reader.missingPath("client_id"), reader.object.at, "expected 1 to 1024 bytes without white space")
  reader.text("client_secret")
  const listed = reader.strings("scopes", scopeFault) ?? []
  const scopes = [...listed, ...(reader.string("scope") ?? "").split(" ").filter((text) => text !== "")]
  if (scopes.length > MAX_SCOPES || scopes.join(" ").length > MAX_SCOPE_BYTES)
    reader.add(
      reader.path,
      reader.object.at,
      `at most ${MAX_SCOPES} scopes of ${MAX_SCOPE_BYTES} bytes together are allowed`
    )
  if (new Set(scopes).size !== scopes.length) reader.add(reader.path, reader.object.at, "a scope is listed twice")
  const metadata = reader.text("auth_server_metadata_url")
  if (metadata !== undefined && !/^https:\/\//i.test(metadata))
    reader.add(
      reader.missingPath("auth_server_metadata_url"),
      reader.object.at,
      "expected a URL that begins with https://"
    )
  reader.number("callback_port", { min: 1, max: 65_535, integer: true, unit: "" })
  if (reader.spelling === "toml") reader.refuseUnused("oauth")
  if (facts.authorized)
    reader.add(
      reader.path,
      property.at,
      "sign-in cannot be combined with another source of the Authorization header; keep one"
    )
  return objectToJson(reader.object)
}

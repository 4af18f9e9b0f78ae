/**
 * `${VAR}` and `${VAR:-default}` in an entry, expanded at use (spec section 2, S section 1.10).
 *
 * One pass, no nesting, no escape: the body runs to the first `}`, the name to the first `:-`, and everything after
 * that is the default. A variable that is set to the empty string is set. The template is what is stored, shown and
 * fingerprinted; an expanded copy lives only as long as one start. Values that came from variables are returned
 * beside it, because they must never be shown. In entries of plugins `${PLUGIN_ROOT}` is the plugin's directory; it
 * is no variable of the user and no secret.
 */
import * as Either from "effect/Either"
import { ConfigError } from "./ConfigError.ts"
import { urlFault } from "./EndpointUrl.ts"
import { childPath, record } from "./Located.ts"
import type { RemoteEndpoint, ServerDeclaration, StdioEndpoint } from "./ServerDeclaration.ts"

/** An endpoint with its variables filled in. */
export interface ExpandedEndpoint {
  readonly endpoint: StdioEndpoint | RemoteEndpoint
  /** What came from variables, each name once; secrets until shown otherwise. */
  readonly variableValues: ReadonlyArray<{ readonly name: string; readonly value: string }>
  /** Variables that are not set and stayed as they are written; only with `missing_env = "literal"`. */
  readonly unset?: ReadonlyArray<string>
}

/** What a template of a plugin calls the plugin's directory (S section 1.8). */
export const pluginRoot = "PLUGIN_ROOT"

/** Whether `${PLUGIN_ROOT}` means something in this field: in all but headers (S section 1.8). */
export const hasPluginRoot = (field: string): boolean => !/^(?:env_http_)?headers\b|^bearer_token_env_var$/.test(field)

/** One use of a variable. `field` is relative to the entry, e.g. `args[1]`. */
export interface VariableUse {
  readonly name: string
  readonly field: string
  readonly hasDefault: boolean
}

const template = /\$\{([^}]*)\}/g

/** Splits the body of a template. */
const parts = (body: string): { readonly name: string; readonly fallback: string | undefined } => {
  const split = body.indexOf(":-")
  return split < 0
    ? { name: body, fallback: undefined }
    : { name: body.slice(0, split), fallback: body.slice(split + 2) }
}

/** The variables of one text, in order. `${}` names nothing and stays as it is. */
const usesIn = (text: string, field: string): ReadonlyArray<VariableUse> =>
  [...text.matchAll(template)].flatMap((match) => {
    const { name, fallback } = parts(match[1] ?? "")
    return name === "" ? [] : [{ name, field, hasDefault: fallback !== undefined }]
  })

/** Every text of an endpoint that is expanded, with its field. */
const textsOf = (endpoint: StdioEndpoint | RemoteEndpoint): ReadonlyArray<readonly [field: string, text: string]> =>
  endpoint._tag === "stdio"
    ? [
        ["command", endpoint.command],
        ...endpoint.args.map((text, index) => [`args[${index}]`, text] as const),
        ...Object.entries(endpoint.env).map(([key, text]) => [childPath("env", key), text] as const)
      ]
    : [
        ["url", endpoint.url],
        ...Object.entries(endpoint.headers).map(([key, text]) => [childPath("headers", key), text] as const)
      ]

/**
 * The variables an entry wants to read: those of its templates, and those that headers name. Grants of `inherit_env`
 * are not among them; they are a list of their own.
 */
export const variablesOf = (
  declaration: Pick<ServerDeclaration, "endpoint" | "plugin">
): ReadonlyArray<VariableUse> => {
  const { endpoint, plugin } = declaration
  const inTexts = textsOf(endpoint)
    .flatMap(([field, text]) => usesIn(text, field))
    .filter(({ field, name }) => plugin === undefined || name !== pluginRoot || !hasPluginRoot(field))
  if (endpoint._tag === "stdio") return inTexts
  return [
    ...inTexts,
    ...Object.entries(endpoint.envHeaders).map(([key, name]) => ({
      name,
      field: childPath("env_http_headers", key),
      hasDefault: false
    })),
    ...(endpoint.bearerTokenEnvVar === undefined
      ? []
      : [{ name: endpoint.bearerTokenEnvVar, field: "bearer_token_env_var", hasDefault: false }])
  ]
}

/**
 * Fills in the variables of an entry.
 *
 * Fails with `SIGIL_MISSING_VARIABLE` naming every variable that is not set and has no default, or with
 * `SIGIL_CONFIG_INVALID` when an expanded value cannot be used (a NUL, a line break in a header, not a URL). With
 * `whenMissing` "literal" (`[mcp] missing_env`) such a variable stays as it is written.
 */
export const expand = (
  declaration: Pick<ServerDeclaration, "name" | "source" | "endpoint" | "plugin">,
  lookup: (name: string) => string | undefined,
  whenMissing: "error" | "literal" = "error"
): Either.Either<ExpandedEndpoint, ConfigError> => {
  const { endpoint, plugin } = declaration
  const values = new Map<string, string>()
  const missing: Array<VariableUse> = []
  // Each name is read once, so that one start sees one value.
  const read = (name: string): string | undefined => {
    const known = values.get(name)
    if (known !== undefined) return known
    const value = lookup(name)
    if (value !== undefined) values.set(name, value)
    return value
  }
  const fill = (text: string, field: string): string =>
    text.replace(template, (whole, body: string) => {
      const { name, fallback } = parts(body)
      if (name === "") return whole
      if (plugin !== undefined && name === pluginRoot && hasPluginRoot(field)) return plugin.root
      const value = read(name) ?? fallback
      if (value === undefined) missing.push({ name, field, hasDefault: false })
      return value ?? whole
    })
  const fillMap = (map: { readonly [key: string]: string }, field: string): { readonly [key: string]: string } =>
    record(Object.entries(map).map(([key, text]) => [key, fill(text, childPath(field, key))] as const))

  const expanded: StdioEndpoint | RemoteEndpoint =
    endpoint._tag === "stdio"
      ? {
          ...endpoint,
          command: fill(endpoint.command, "command"),
          args: endpoint.args.map((text, index) => fill(text, `args[${index}]`)),
          env: fillMap(endpoint.env, "env")
        }
      : { ...endpoint, url: fill(endpoint.url, "url"), headers: fillMap(endpoint.headers, "headers") }

  if (missing.length > 0 && whenMissing === "error") return Either.left(missingError(declaration, missing))
  for (const [field, text] of textsOf(expanded)) {
    const fault = usableFault(field, text, expanded)
    if (fault !== undefined)
      return Either.left(
        new ConfigError({
          code: "SIGIL_CONFIG_INVALID",
          reason: "configuration_invalid",
          text: `The server '${declaration.name}' cannot be used: with its variables filled in, ${field}: ${fault}.`,
          where: { ...declaration.source, field, server: declaration.name }
        })
      )
  }
  return Either.right({
    endpoint: expanded,
    variableValues: [...values].map(([name, value]) => ({ name, value })),
    ...(missing.length === 0 ? {} : { unset: [...new Set(missing.map(({ name }) => name))] })
  })
}

const usableFault = (field: string, text: string, endpoint: StdioEndpoint | RemoteEndpoint): string | undefined => {
  if (text.includes("\0")) return "the value holds a NUL character"
  if (field === "command" && text.trim() === "") return "the command is blank"
  if (endpoint._tag === "stdio") return undefined
  // The scheme itself may have come from a variable.
  if (field === "url")
    return urlFault(text, endpoint.transport)?.replace(/^the scheme is ".*", /, "the scheme is another, ")
  return /[\r\n]/.test(text) ? "the value holds a line break" : undefined
}

const missingError = (
  declaration: Pick<ServerDeclaration, "name" | "source">,
  missing: ReadonlyArray<VariableUse>
): ConfigError => {
  const fields = new Map<string, Array<string>>()
  for (const { name, field } of missing) {
    const known = fields.get(name)
    if (known === undefined) fields.set(name, [field])
    else if (!known.includes(field)) known.push(field)
  }
  const names = [...fields.keys()]
  const list = [...fields].map(([name, places]) => `${name} (${places.join(", ")})`).join(", ")
  const plain = names.length === 1
  return new ConfigError({
    code: "SIGIL_MISSING_VARIABLE",
    reason: "missing_variable",
    text: `The server '${declaration.name}' needs ${plain ? "an environment variable that is" : "environment variables that are"} not set: ${list}.`,
    fix: `Set ${names.join(", ")}, or give ${plain ? "a default" : "defaults"} with \${NAME:-value}.`,
    where: { ...declaration.source, field: missing[0]?.field, server: declaration.name },
    details: { missing: names }
  })
}

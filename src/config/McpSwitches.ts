/**
 * `[mcp]`: the user's switches of S section 12.4. Each loosens something, is off by default, and is read from the
 * user's own files only. The same table exists in settings.json.
 */
import { protocols } from "./DecodeEntry.ts"
import type { FieldReader } from "./Fields.ts"
import type { Issue } from "./Problem.ts"

/** The switches that are written; absent = the safe default. */
export interface McpSwitches {
  readonly projectRemote?: "refuse" | "approved"
  /** Levels of the `.mcp.json` walk; default `root`. */
  readonly projectWalk?: "root" | "git_root" | "cwd" | "off"
  readonly envMode?: "isolated" | "inherit_all"
  readonly stdoutNoise?: "refuse" | "skip"
  readonly onTimeout?: "close" | "keep"
  readonly restart?: "on_failure" | "never"
  readonly protocol?: string
  readonly missingEnv?: "error" | "literal"
  readonly pluginEnvAllow?: ReadonlyArray<string>
  readonly pluginRemote?: "refuse" | "allow"
  readonly injectInstructions?: boolean
  readonly skills?: boolean
  readonly allowHttp?: boolean
  readonly oauthAuto?: boolean
  readonly oauthStore?: "os" | "file"
  readonly elicitationUrl?: boolean
  readonly compat?: "none" | "sid-code"
  readonly toolSearch?: boolean | string | number
  readonly toolSearchKeepLoaded?: ReadonlyArray<string>
}

/** Drops what is not written, so that tables can be laid over each other. */
const present = <A extends object>(values: A): { [key in keyof A]?: Exclude<A[key], undefined> } =>
  // The result has the keys of `values` whose value is not undefined, which is what the type says.
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [key in keyof A]?: Exclude<A[key], undefined>
  }

/** `true`, `false`, "auto", "auto:N" or a number (S section 6.5). */
export const decodeToolSearch = (reader: FieldReader): boolean | string | number | undefined => {
  const property = reader.take("tool_search")
  if (property === undefined) return undefined
  const { value } = property
  if (value.kind === "boolean" || (value.kind === "number" && Number.isFinite(value.value))) return value.value
  if (value.kind === "string" && /^auto(?::\d+)?$/.test(value.value)) return value.value
  reader.add(reader.pathOf(property), value.at, 'expected true, false, "auto", "auto:N" or a number')
  return undefined
}

/** Reads the table; every fault goes to the reader's issues. */
export const decodeSwitches = (reader: FieldReader): McpSwitches => {
  const switches = present({
    projectRemote: reader.choice("project_remote", ["refuse", "approved"]),
    projectWalk: reader.choice("project_walk", ["root", "git_root", "cwd", "off"]),
    envMode: reader.choice("env_mode", ["isolated", "inherit_all"]),
    stdoutNoise: reader.choice("stdout_noise", ["refuse", "skip"]),
    onTimeout: reader.choice("on_timeout", ["close", "keep"]),
    restart: reader.choice("restart", ["on_failure", "never"]),
    protocol: reader.choice("protocol", protocols),
    missingEnv: reader.choice("missing_env", ["error", "literal"]),
    pluginEnvAllow: reader.variableNames("plugin_env_allow"),
    pluginRemote: reader.choice("plugin_remote", ["refuse", "allow"]),
    injectInstructions: reader.bool("inject_instructions"),
    skills: reader.bool("skills"),
    allowHttp: reader.bool("allow_http"),
    oauthAuto: reader.bool("oauth_auto"),
    oauthStore: reader.choice("oauth_store", ["os", "file"]),
    elicitationUrl: reader.bool("elicitation_url"),
    compat: reader.choice("compat", ["none", "sid-code"]),
    toolSearch: decodeToolSearch(reader),
    toolSearchKeepLoaded: reader.strings("tool_search_keep_loaded")
  })
  reader.refuseUnused("mcp")
  return switches
}

/** Switches whose feature this build lacks; all of them only loosen, so leaving them off is safe, but it is said. */
export const unsupportedSwitches = (switches: McpSwitches, reader: FieldReader): ReadonlyArray<Issue> => {
  const asked: ReadonlyArray<readonly [name: string, on: boolean]> = [
    ["inject_instructions", switches.injectInstructions === true],
    ["skills", switches.skills === true],
    ["allow_http", switches.allowHttp === true],
    ["oauth_auto", switches.oauthAuto === true],
    ["compat", switches.compat === "sid-code"]
  ]
  return asked.flatMap(([name, on]): ReadonlyArray<Issue> => {
    const property = on ? reader.take(name) : undefined
    if (property === undefined) return []
    return [
      {
        field: reader.pathOf(property),
        at: property.at,
        code: "SIGIL_NOT_SUPPORTED",
        reason: "not_supported_yet",
        text: "this switch is not supported yet and has no effect"
      }
    ]
  })
}

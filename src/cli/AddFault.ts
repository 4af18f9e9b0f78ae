/**
 * Why `mcp add` refused an entry, in the words of its command line: the entry was never written, so there is no file in
 * which its fields could be looked up.
 */
import { ConfigError } from "../config/ConfigError.ts"

/** What of the command line a field of the entry came from; by the first part of the field's path. */
const origins: { readonly [field: string]: string } = {
  name: "NAME",
  command: "COMMAND",
  args: "ARGS",
  url: "URL",
  transport: "--transport",
  env: "--env",
  inherit_env: "--inherit-env",
  inheritEnv: "--inherit-env",
  headers: "--header",
  http_headers: "--header",
  env_http_headers: "--env-header",
  bearer_token_env_var: "--bearer-token-env-var",
  bearerTokenEnvVar: "--bearer-token-env-var",
  oauth: "--oauth",
  startup: "--startup",
  required: "--required",
  tool_timeout_secs: "--timeout",
  toolTimeoutSecs: "--timeout",
  "trust.trust_class": "--trust",
  "trust.approval_default": "--approval"
}

/** The option or argument, with the key where an option has several: `--header X-Key`. */
const originOf = (field: string): string | undefined => {
  const whole = Object.hasOwn(origins, field) ? origins[field] : undefined
  if (whole !== undefined) return whole
  const [, first = "", dotted, quoted] = /^(\w+)(?:\.(.+)|\[("(?:[^"\\]|\\.)*")\]|\[\d+\])?$/.exec(field) ?? []
  const option = Object.hasOwn(origins, first) ? origins[first] : undefined
  if (option === undefined) return undefined
  const key = dotted ?? (quoted === undefined ? undefined : String(JSON.parse(quoted)))
  return key === undefined ? option : `${option} ${key}`
}

/** The error of `addServer` with the option or argument in place of a field of an entry that was not written. */
export const spokenFault = (error: ConfigError): ConfigError => {
  const { where } = error
  const field = where?.field
  const origin = field === undefined || where?.line !== undefined ? undefined : originOf(field)
  if (field === undefined || origin === undefined) return error
  const said = error.text.startsWith(`${field}: `) ? `${origin}: ${error.text.slice(field.length + 2)}` : error.text
  const { file: _, ...place } = where ?? {}
  const { candidates, code, details, reason } = error
  const [, header] = /^--header (.+)$/.exec(origin) ?? []
  const fix =
    code === "SIGIL_LITERAL_CREDENTIAL" && header !== undefined && error.fix?.includes("NAME_OF_A_VARIABLE") === true
      ? `Give --env-header ${header}=NAME_OF_A_VARIABLE in its place.`
      : (error.fix ??
        (code === "SIGIL_CONFIG_INVALID" ? "Correct the option or argument named in the message." : undefined))
  return new ConfigError({ code, reason, text: said, fix, where: place, candidates, details })
}

/**
 * Which proxy a connection goes through: pure (R section 8.12).
 *
 * `HTTPS_PROXY` for encrypted connections, `HTTP_PROXY` for others, then `ALL_PROXY`; each before its lower-case form.
 * What `NO_PROXY` names is dialled directly, under the same rules as without a proxy.
 */
import { isIP } from "node:net"
import * as Redacted from "effect/Redacted"
import { liesIn } from "./AddressClass.ts"
import type { Destination, Refusal } from "./Destination.ts"

/** Rules of `NO_PROXY` that are read (R section 8.12). */
export const MAX_NO_PROXY_RULES = 256

/** A proxy that dials for us. */
export interface Proxy {
  /** Its scheme, host and port; never its password. */
  readonly origin: string
  /** The variable that names it, as it is spelled. */
  readonly variable: string
  readonly host: string
  readonly port: number
  /** Whether the proxy itself is spoken to over TLS. */
  readonly encrypted: boolean
  /** Value of `Proxy-Authorization`. */
  readonly authorization: Redacted.Redacted | undefined
}

/** How a destination is reached. */
export type Route = { readonly _tag: "direct" } | { readonly _tag: "proxy_remote"; readonly proxy: Proxy }

const first = (get: (name: string) => string | undefined, ...names: ReadonlyArray<string>) => {
  for (const name of names)
    for (const spelled of [name, name.toLowerCase()]) {
      const value = get(spelled)?.trim()
      if (value !== undefined && value !== "") return { name: spelled, value }
    }
  return undefined
}

const matches = (rule: string, host: string, port: number): boolean => {
  const text = rule.toLowerCase()
  if (text === "*") return true
  if (text.includes("/")) return isIP(host) !== 0 && liesIn(host, text)
  const bracketed = /^\[(.*)\](?::(\d+))?$/.exec(text)
  const [, name, given] = bracketed ?? (isIP(text) === 6 ? [text, text] : /^(.*?)(?::(\d+))?$/.exec(text)) ?? []
  if (name === undefined || name === "" || (given !== undefined && Number(given) !== port)) return false
  const domain = name.replace(/^\*?\./, "").replace(/\.$/, "")
  return domain !== "" && (host === domain || (isIP(host) === 0 && host.endsWith(`.${domain}`)))
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The route to a destination by the variables that `get` reads. */
export const routeOf = (
  { host, port, encrypted }: Pick<Destination, "host" | "port" | "encrypted">,
  get: (name: string) => string | undefined
): Route | Refusal => {
  const found = first(get, encrypted ? "HTTPS_PROXY" : "HTTP_PROXY", "ALL_PROXY")
  if (found === undefined) return { _tag: "direct" }
  const rules = (first(get, "NO_PROXY")?.value ?? "").split(/[\s,]+/).filter((rule) => rule !== "")
  if (rules.length > MAX_NO_PROXY_RULES)
    return {
      _tag: "Refuse",
      reason: "proxy_invalid",
      text: `The variable NO_PROXY holds ${rules.length} rules; at most ${MAX_NO_PROXY_RULES} are read.`,
      fix: "Shorten NO_PROXY."
    }
  if (rules.some((rule) => matches(rule, host, port))) return { _tag: "direct" }
  const text = found.value.includes("://") ? found.value : `http://${found.value}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || url.hostname === "" || (url.protocol !== "http:" && url.protocol !== "https:"))
    return {
      _tag: "Refuse",
      reason: "proxy_invalid",
      text: `The variable ${found.name} does not hold the address of an http:// or https:// proxy.`,
      fix: `Correct ${found.name}, or set [web] proxy_mode = "direct".`
    }
  const secure = url.protocol === "https:"
  const user = `${decoded(url.username)}:${decoded(url.password)}`
  return {
    _tag: "proxy_remote",
    proxy: {
      origin: url.origin,
      variable: found.name,
      host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
      port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
      encrypted: secure,
      authorization: user === ":" ? undefined : Redacted.make(`Basic ${Buffer.from(user).toString("base64")}`)
    }
  }
}

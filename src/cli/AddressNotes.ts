/**
 * What `mcp add` notes about an address: that it would not be called as things stand, or that it was typed without its
 * scheme and so became a command. Nothing is resolved, and nothing is refused here: the start decides.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { LoopbackAccess } from "../config/LoopbackAccess.ts"
import type { WebSettings } from "../config/WebSettings.ts"
import { resolve } from "../platform/Executable.ts"
import type { HostEnvironment } from "../platform/HostEnvironment.ts"

/** The note for a URL that `[web]` refuses, or none. `granted`: what the same command adds to `[web]` or speaks of. */
export const refusalNote = (
  url: string,
  given: {
    readonly credentials: boolean
    readonly web: WebSettings
    readonly granted: LoopbackAccess
    readonly get: (name: string) => string | undefined
  }
): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    // Who is called is known when the variables are.
    if (url.includes("${")) return []
    const { credentials, get, granted, web } = given
    // Loaded here: most entries are commands.
    const { judge } = yield* Effect.promise(() => import("../net/Judge.ts"))
    const verdict = judge({
      url,
      credentials,
      rules: {
        allowedPrivateHosts: [...web.allowedPrivateHosts, ...granted.allowed_private_hosts],
        allowedPrivateCidrs: [...web.allowedPrivateCidrs, ...granted.allowed_private_cidrs],
        blockedDomains: web.blockedDomains,
        allowedDomains: web.allowedDomains
      },
      proxyMode: web.proxyMode,
      get
    })
    return verdict._tag === "Refuse" ? [`It will be refused: ${verdict.text} ${verdict.fix}`] : []
  })

const LOCAL = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i

/** The host of a text that reads like a URL without its scheme; `undefined` where it reads like a command. */
const hostOf = (text: string): string | undefined => {
  const parts = /^(\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(:\d{1,5})?(?:([/?#]).*)?$/i.exec(text)
  const [, host = "", port, rest] = parts ?? []
  if (parts === null) return undefined
  // One letter before a colon is a drive.
  if (port !== undefined) return host.length > 1 ? host : undefined
  const address = LOCAL.test(host) || host.startsWith("[") || /^\d{1,3}(?:\.\d{1,3}){3}$/.test(host)
  const domain = /\.[a-z]{2,}$/i.test(host)
  // `run.sh` and `server.py` could be domains too.
  return address || (domain && rest !== undefined) || /^www\..+\./i.test(host) ? host : undefined
}

/** The note for a command that looks like an address and is nothing that could be run, or none. */
export const schemeNote = (
  command: string,
  host: Context.Tag.Service<HostEnvironment>
): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const name = hostOf(command)
    if (name === undefined) return []
    const searchPath = host.get("PATH") ?? ""
    const found = yield* Effect.either(resolve({ command, cwd: host.cwd, searchPath, platform: host.platform }))
    if (Either.isRight(found)) return []
    const scheme = LOCAL.test(name) ? "http" : "https"
    return [`'${command}' is taken as a command; write ${scheme}:// in front of it if it is an address.`]
  })

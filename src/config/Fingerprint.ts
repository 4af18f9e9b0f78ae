/**
 * Digests that tell whether something a person once agreed to is still the same.
 *
 * The approval fingerprint covers the entry as it is written; the launch fingerprint covers what is started. Both
 * are SHA-256 in the form `sha256:` and hex, and neither ever contains a variable's value.
 */
import { createHash } from "node:crypto"
import { canonicalize } from "json-canonicalize"
import type { JsonObject } from "../base/Json.ts"
import { record } from "./Located.ts"
import type { ServerDeclaration } from "./ServerDeclaration.ts"

const sha256 = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`

/** Fingerprint of an entry: RFC 8785 form of its keys as written, all but `enabled` (spec section 4). */
export const approvalFingerprint = (raw: JsonObject): string =>
  sha256(canonicalize(record(Object.entries(raw).filter(([key]) => key !== "enabled"))))

/** What an approval of a declaration binds: its entry, and for a plugin the bytes of its manifest, too (spec section 4). */
export const declarationFingerprint = ({ plugin, raw }: Pick<ServerDeclaration, "plugin" | "raw">): string =>
  plugin === undefined
    ? approvalFingerprint(raw)
    : sha256(canonicalize({ entry: approvalFingerprint(raw), manifest: plugin.manifest, plugin: plugin.id }))

/** Fingerprint of the names a server may read, without values (R section 3.3). */
export const environmentFingerprint = (grants: ReadonlyArray<string>): string =>
  sha256(JSON.stringify({ policy: "isolated", source: "parent_environment", names: [...new Set(grants)].sort() }))

/** What a stdio server is started from. */
export interface Launch {
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** Granted names; empty means the form that older pins know. */
  readonly grants: ReadonlyArray<string>
  /** Working directory with links resolved. */
  readonly workingDirectory: string
  /** Whether the entry itself names a working directory; then it is part of every form (spec section 2). */
  readonly cwdWritten: boolean
  /** Values of `env` as written, templates unexpanded. */
  readonly env: { readonly [name: string]: string }
  /** The resolved program and the SHA-256 of its content in hex. */
  readonly executable: { readonly path: string; readonly sha256: string }
}

/**
 * Fingerprint of a stdio launch (R section 3.4). Without grants it is the digest of command and arguments only, as
 * older pins have it; a written `cwd` and `env` are added when there are any. With grants it also binds the working
 * directory, the granted names and the program's content.
 */
export const launchFingerprint = (launch: Launch): string => {
  const { command, args, grants, workingDirectory, cwdWritten, env, executable } = launch
  const extra = {
    ...(cwdWritten ? { cwd: workingDirectory } : {}),
    ...(Object.keys(env).length > 0 ? { env: Object.entries(env).toSorted(([a], [b]) => (a < b ? -1 : 1)) } : {})
  }
  if (grants.length === 0) return sha256(JSON.stringify({ command, args, ...extra }))
  return sha256(
    JSON.stringify({
      version: 1,
      command,
      args,
      working_dir: workingDirectory,
      environment: environmentFingerprint(grants),
      executable: { path: executable.path, sha256: executable.sha256 },
      ...(extra.env === undefined ? {} : { env: extra.env })
    })
  )
}

/** What a remote server is dialled with, as far as the entry says it. */
export interface RemoteLaunch {
  readonly transport: string
  /** As written, templates unexpanded. */
  readonly url: string
  /** Literal headers as written, templates unexpanded; a value is left out where it is itself a credential. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string | undefined]>
  /** Header name to variable name. */
  readonly envHeaders: { readonly [name: string]: string }
  readonly bearerTokenEnvVar: string | undefined
  readonly clientCapabilities: ReadonlyArray<string>
}

const byName = <A>(entries: ReadonlyArray<readonly [string, A]>): ReadonlyArray<readonly [string, A]> =>
  entries.map(([name, value]) => [name.toLowerCase(), value] as const).toSorted(([a], [b]) => (a < b ? -1 : 1))

/** Fingerprint of a remote launch (R section 3.4). No variable is read for it; names of headers count without case. */
export const remoteLaunchFingerprint = (launch: RemoteLaunch): string =>
  sha256(
    canonicalize({
      version: "sigil.mcp.transport-pin.v1",
      transport: launch.transport,
      url: URL.canParse(launch.url) && !launch.url.includes("${") ? new URL(launch.url).href : launch.url,
      headers: byName(launch.headers).map(([name, value]) => [name, value ?? null]),
      env_headers: byName(Object.entries(launch.envHeaders)),
      bearer: launch.bearerTokenEnvVar ?? null,
      client_capabilities: [...launch.clientCapabilities].sort()
    })
  )

/**
 * Fingerprint of a launch out of a plugin (R section 3.4): the safe projection of its declaration and the program's
 * content; a remote server has none. It names no path, so the same plugin has the same fingerprint on every machine.
 */
export const pluginLaunchFingerprint = (projection: JsonObject, executableSha256: string | undefined): string =>
  sha256(
    canonicalize({
      declaration: projection,
      ...(executableSha256 === undefined ? {} : { executable: executableSha256 })
    })
  )

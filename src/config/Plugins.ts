/**
 * Servers that plugins bring: `plugin.toml` of each directory under `<workspace>/.sigil/plugins` and
 * `$SIGIL_HOME/plugins` (spec section 2, R section 1.10, S section 12.3 row 51).
 *
 * A plugin of the workspace is a repository's text and waits for approval; one of the user's home was put there by its
 * user. Both are bound by the rules for plugins: stdio, no grants, trust only tightened. A manifest counts only as it
 * was read: its digest travels with every entry and is compared again before each start. One that is broken costs
 * itself, and its names stay claimed.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { MIB } from "../base/Units.ts"
import { ConfigError } from "./ConfigError.ts"
import { exists, untrusted } from "./ConfigFile.ts"
import type { DecodeContext } from "./DecodeEntry.ts"
import { decodeToml } from "./DecodeToml.ts"
import { FieldReader } from "./Fields.ts"
import type { LocatedObject } from "./Located.ts"
import { claimsInToml } from "./NameClaims.ts"
import { type Issues, toError } from "./Problem.ts"
import { commandStays, directoryStays } from "./PluginPaths.ts"
import { realPath } from "./ProjectIdentity.ts"
import type { BrokenDeclaration, Entry, PluginOrigin } from "./ServerDeclaration.ts"
import { contextOf, type SourceContext, type SourceResult } from "./Sources.ts"

/** Name of a manifest in its plugin's directory. */
export const MANIFEST = "plugin.toml"
/** Largest manifest, bytes (R section 1.10). */
const MAX_MANIFEST_BYTES = MIB
/** Most plugins of one directory that are read. */
const MAX_PLUGINS = 1_024
/** Names of directories that can be an id: no colon, which parts the name of a server. */
const idForm = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
/** The version of the manifest's form. */
const MANIFEST_VERSION = 1

/** The exact name of a plugin's server. */
export const pluginServerName = (id: string, name: string): string => `plugin:${id}:${name}`

const refused = (
  file: string,
  reason: "plugin_invalid_path" | "plugin_read_failed" | "plugin_invalid_manifest",
  text: string,
  fix?: string
): ConfigError => new ConfigError({ code: "SIGIL_CONFIG_UNREADABLE", reason, text, fix, where: { file } })

/** A manifest as it stands on the disk. */
interface ManifestText {
  readonly text: string
  /** `sha256:` and hex, over the bytes. */
  readonly digest: string
}

/** The bytes of a manifest: a regular file itself, never a link to one, small enough, and UTF-8. */
const readManifest = (
  file: string,
  owner: SourceContext["owner"] | undefined
): Either.Either<ManifestText, ConfigError> => {
  let descriptor: number | undefined
  try {
    if (!fs.lstatSync(file).isFile())
      return Either.left(refused(file, "plugin_invalid_path", "The manifest of a plugin has to be a regular file."))
    // The file that is judged is the one that is read: a link put there meanwhile is not followed.
    descriptor = fs.openSync(
      file,
      fs.constants.O_RDONLY | (fs.constants.O_NOFOLLOW ?? 0) | (fs.constants.O_NONBLOCK ?? 0)
    )
    const stat = fs.fstatSync(descriptor)
    if (!stat.isFile())
      return Either.left(refused(file, "plugin_invalid_path", "The manifest of a plugin has to be a regular file."))
    if (stat.size > MAX_MANIFEST_BYTES)
      return Either.left(
        refused(
          file,
          "plugin_invalid_manifest",
          `The manifest has ${stat.size} bytes; at most ${MAX_MANIFEST_BYTES} are allowed.`
        )
      )
    const strangers = owner === undefined ? undefined : untrusted(file, stat, owner)
    if (strangers !== undefined) return Either.left(strangers)
    // One byte more than allowed, so that a file that grows is noticed.
    const buffer = Buffer.alloc(MAX_MANIFEST_BYTES + 1)
    let length = 0
    for (let read = -1; read !== 0 && length < buffer.length; length += read)
      read = fs.readSync(descriptor, buffer, length, buffer.length - length, null)
    if (length > MAX_MANIFEST_BYTES)
      return Either.left(
        refused(file, "plugin_invalid_manifest", `The manifest has more than ${MAX_MANIFEST_BYTES} bytes.`)
      )
    const bytes = buffer.subarray(0, length)
    const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`
    return Either.right({ text: new TextDecoder("utf-8", { fatal: true }).decode(bytes), digest })
  } catch (error) {
    const why =
      typeof error === "object" && error !== null && "code" in error ? String(error.code) : "it is not a readable text"
    return Either.left(refused(file, "plugin_read_failed", `The manifest of the plugin cannot be read: ${why}.`))
  } finally {
    if (descriptor !== undefined) fs.closeSync(descriptor)
  }
}

/** The digest of a plugin's manifest now; `undefined` when it is gone or no manifest any more. */
export const manifestDigest = (plugin: Pick<PluginOrigin, "root">): string | undefined =>
  Either.getOrUndefined(Either.map(readManifest(path.join(plugin.root, MANIFEST), undefined), ({ digest }) => digest))

/** A directory that may be a plugin. */
interface Candidate {
  readonly id: string
  readonly from: PluginOrigin["from"]
  /** As it is written; positions name it. */
  readonly directory: string
}

/** What one manifest says. */
interface Manifest {
  readonly candidate: Candidate
  readonly entries: ReadonlyArray<Entry>
  readonly problems: ReadonlyArray<ConfigError>
}

const candidatesIn = (directory: string, from: PluginOrigin["from"]): ReadonlyArray<Candidate> => {
  try {
    return fs
      .readdirSync(directory, { withFileTypes: true })
      .filter((entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith("."))
      .map(({ name }) => ({ id: name, from, directory: path.join(directory, name) }))
      .toSorted((a, b) => (a.id < b.id ? -1 : 1))
  } catch {
    return []
  }
}

/** Why a directory is no plugin. A repository's may not lead out of it; a user may keep plugins elsewhere. */
const placeFault = (candidate: Candidate, workspace: string): string | undefined => {
  const { directory, from, id } = candidate
  if (!idForm.test(id))
    return "The name of the directory cannot be the id of a plugin: letters, digits, dots, dashes and underscores, at most 64."
  if (from === "user" || realPath(directory) === path.join(workspace, ".sigil", "plugins", id)) return undefined
  return "The directory of the plugin leads elsewhere through a symbolic link."
}

/** The entries as a plugin's: with their full names, and bound to the manifest. */
const belonging =
  (plugin: PluginOrigin) =>
  (entry: Entry): Entry => {
    if (entry._tag === "Valid") {
      const name = pluginServerName(plugin.id, entry.declaration.name)
      return { _tag: "Valid", declaration: { ...entry.declaration, name, plugin } }
    }
    const name = pluginServerName(plugin.id, entry.broken.name)
    return { _tag: "Broken", broken: { ...entry.broken, name, plugin, error: about(entry.broken.error, name) } }
  }

const about = (error: ConfigError, server: string): ConfigError =>
  new ConfigError({ ...error, where: { ...error.where, server } })

const breaking =
  (error: ConfigError) =>
  (entry: Entry): Entry => {
    if (entry._tag === "Broken") return entry
    const { name, plugin, scope, source } = entry.declaration
    const broken: BrokenDeclaration = { name, scope, source, error: about(error, name) }
    return { _tag: "Broken", broken: plugin === undefined ? broken : { ...broken, plugin } }
  }

/** The tables of a manifest besides its servers. */
const manifestFault = (root: LocatedObject, file: string, id: string): ConfigError | undefined => {
  const issues: Issues = []
  const reader = new FieldReader(root, "", "toml", issues)
  reader.takeExact("mcp_servers")
  const written = reader.take("id")
  const text = reader.text("id")
  if (written === undefined)
    reader.add("id", root.at, `the id is missing; write id = "${id}", the name of the plugin's directory`)
  else if (text !== undefined && text !== id)
    reader.add("id", written.value.at, `the id has to be the name of the plugin's directory, "${id}"`)
  for (const field of ["name", "version", "description", "author", "license", "homepage"]) reader.text(field)
  reader.number("manifest_version", { min: MANIFEST_VERSION, max: MANIFEST_VERSION, integer: true, unit: "" })
  reader.refuseUnused(MANIFEST)
  const [first, ...further] = issues
  return first === undefined ? undefined : toError({ ...first, reason: "plugin_invalid_manifest" }, { file, further })
}

const contextIn = (file: string, root: string, facts: SourceContext): DecodeContext => ({
  ...contextOf("plugin", file, facts),
  plugin: {
    remote: facts.settings.mcp.pluginRemote === "allow",
    envAllow: facts.settings.mcp.pluginEnvAllow ?? [],
    ownCommand: (command) => commandStays(root, command)
  },
  insideWorkspace: (cwd) => directoryStays(root, cwd)
})

const readOne = (candidate: Candidate, facts: SourceContext): Effect.Effect<Manifest> =>
  Effect.gen(function* () {
    const { directory, from, id } = candidate
    const file = path.join(directory, MANIFEST)
    const misplaced = placeFault(candidate, facts.workspace)
    if (misplaced !== undefined)
      return { candidate, entries: [], problems: [refused(directory, "plugin_invalid_path", misplaced)] }
    if (!exists(file))
      return {
        candidate,
        entries: [],
        problems: [refused(directory, "plugin_invalid_path", `The directory of the plugin holds no ${MANIFEST}.`)]
      }
    const manifest = readManifest(file, from === "workspace" ? facts.owner : undefined)
    if (Either.isLeft(manifest)) return { candidate, entries: [], problems: [manifest.left] }
    const { digest, text } = manifest.right
    const plugin: PluginOrigin = { id, from, root: realPath(directory), manifest: digest }
    // Loaded only where there is such a file: the parser is a large part of what a command would compile.
    const Toml = yield* Effect.promise(() => import("./Toml.ts"))
    const parsed = Toml.parse(text, file)
    if (Either.isLeft(parsed)) {
      const error = new ConfigError({ ...parsed.left, reason: "plugin_invalid_manifest" })
      const entries = claimsInToml(text).map(({ line, name }): Entry => ({
        _tag: "Broken",
        broken: { name, scope: "plugin", source: { file, line, column: 1 }, error }
      }))
      return { candidate, entries: entries.map(belonging(plugin)), problems: [error] }
    }
    const { root } = parsed.right
    const decoded = decodeToml(root, contextIn(file, plugin.root, facts))
    const entries = decoded.entries.map(belonging(plugin))
    const fault = manifestFault(root, file, id)
    return fault === undefined
      ? { candidate, entries, problems: decoded.problems }
      : { candidate, entries: entries.map(breaking(fault)), problems: [fault, ...decoded.problems] }
  })

/** Two plugins of one id: neither is used, so that a repository's never passes for the user's (S section 12.3 row 4). */
const refuseTwins = (manifests: ReadonlyArray<Manifest>): ReadonlyArray<Manifest> =>
  manifests.map((manifest) => {
    const { candidate } = manifest
    const twin = manifests.find((other) => other !== manifest && other.candidate.id === candidate.id)
    if (twin === undefined) return manifest
    const error = new ConfigError({
      code: "SIGIL_DUPLICATE_NAME",
      reason: "duplicate_plugin_id",
      text: `Two plugins have the id '${candidate.id}' (${candidate.directory}, ${twin.candidate.directory}), so neither is used.`,
      fix: "Rename or remove one of the two directories.",
      where: { file: path.join(candidate.directory, MANIFEST) }
    })
    return { ...manifest, entries: manifest.entries.map(breaking(error)), problems: [...manifest.problems, error] }
  })

/** The servers of all plugins. */
export const readPlugins = (facts: SourceContext): Effect.Effect<SourceResult> =>
  Effect.gen(function* () {
    const own = facts.paths.userPlugins
    const inWorkspace = path.join(facts.workspace, ".sigil", "plugins")
    const found = [
      ...candidatesIn(own, "user"),
      // In the home directory both are one, and it is the user's.
      ...(realPath(own) === realPath(inWorkspace) ? [] : candidatesIn(inWorkspace, "workspace"))
    ]
    const manifests = refuseTwins(
      yield* Effect.forEach(found.slice(0, MAX_PLUGINS), (candidate) => readOne(candidate, facts))
    )
    const left = found.length - MAX_PLUGINS
    return {
      entries: manifests.flatMap(({ entries }) => entries),
      problems: [
        ...manifests.flatMap(({ problems }) => problems),
        ...(left > 0
          ? [
              refused(
                inWorkspace,
                "plugin_read_failed",
                `There are more than ${MAX_PLUGINS} plugins; ${left} are not read.`
              )
            ]
          : [])
      ],
      shadowed: []
    }
  })

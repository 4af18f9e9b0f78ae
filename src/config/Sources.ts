/**
 * Reads each source of servers (spec section 2): command line, the user's two files, the project's private file, the
 * `.mcp.json` walk, and what was imported. Plugins: `Plugins.ts`.
 *
 * A broken file costs that file, a broken entry that entry. Names in a broken file of the user still count as
 * claimed, as far as they can be made out, so that a typo never hands a name to a repository.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as path from "node:path"
import type { ConfigError } from "./ConfigError.ts"
import { exists, type Owner, read } from "./ConfigFile.ts"
import type { DecodeContext } from "./DecodeEntry.ts"
import { decodeJson, type JsonSource } from "./DecodeJson.ts"
import { type Decoded, decodeToml } from "./DecodeToml.ts"
import * as JsonText from "./JsonText.ts"
import { unreadable, toError } from "./Problem.ts"
import { isInside } from "../platform/Containment.ts"
import { realPath } from "./ProjectIdentity.ts"
import type { Paths } from "./Locations.ts"
import type { McpSwitches } from "./McpSwitches.ts"
import type { Shadowed } from "./Merge.ts"
import { sourceOf } from "./Merge.ts"
import { claimsInJson, claimsInToml } from "./NameClaims.ts"
import {
  type DecodedSettings,
  decodeJsonSettings,
  decodeTomlSettings,
  safetyOfUnusable,
  type Settings,
  type UnsupportedSafety
} from "./Settings.ts"
import { type Entry, nameOf, type Scope } from "./ServerDeclaration.ts"

/** Name of an inline `--mcp-config` value in positions. */
export const INLINE = "--mcp-config"

/** What the sources need to know besides their own text. */
export interface SourceContext {
  readonly paths: Paths
  readonly owner: Owner
  readonly settings: Settings
  /** Workspace root, links resolved. */
  readonly workspace: string
  readonly projectIdentity: string
}

/** What one source says. */
export interface SourceResult extends Decoded {
  /** Entries that a nearer or later text of the same scope replaced. */
  readonly shadowed: ReadonlyArray<Shadowed>
}

/** How entries of one file are decoded. */
export const contextOf = (scope: Scope, file: string, facts: SourceContext): DecodeContext => {
  const base = path.isAbsolute(file) ? path.dirname(file) : facts.paths.launchDirectory
  const { mcp, agent } = facts.settings
  return {
    scope,
    file,
    projectRemote: mcp.projectRemote === "approved",
    userFile: facts.paths.sigilToml,
    insideWorkspace: (cwd) => isInside(realPath(path.resolve(base, cwd)), facts.workspace),
    defaults: {
      tomlToolTimeoutMs: agent.toolTimeoutMs,
      ...(mcp.stdoutNoise === undefined ? {} : { stdoutNoise: mcp.stdoutNoise }),
      ...(mcp.onTimeout === undefined ? {} : { onTimeout: mcp.onTimeout }),
      ...(mcp.restart === undefined ? {} : { restart: mcp.restart }),
      ...(mcp.envMode === undefined ? {} : { envMode: mcp.envMode }),
      ...(mcp.protocol === undefined ? {} : { protocol: mcp.protocol })
    }
  }
}

const shadow = (entry: Entry, scope: Scope): Shadowed => ({
  name: nameOf(entry),
  scope,
  source: sourceOf(entry),
  by: { name: nameOf(entry), scope },
  why: "name"
})

/** Lays texts of one scope over each other: the first one that declares a name has it. */
const firstWins = (texts: ReadonlyArray<Decoded>, scope: Scope): SourceResult => {
  const taken = new Set<string>()
  const entries: Array<Entry> = []
  const shadowed: Array<Shadowed> = []
  for (const text of texts) {
    const names = new Set<string>()
    for (const entry of text.entries) {
      names.add(nameOf(entry))
      if (taken.has(nameOf(entry))) shadowed.push(shadow(entry, scope))
      else entries.push(entry)
    }
    for (const name of names) taken.add(name)
  }
  return { entries, problems: texts.flatMap(({ problems }) => problems), shadowed }
}

/** `--mcp-config`, later values over earlier ones. Fails when a value cannot be read or parsed (S section 1.9). */
export const readCommandLine = (
  values: ReadonlyArray<string>,
  facts: SourceContext
): Effect.Effect<SourceResult, ConfigError> =>
  Effect.gen(function* () {
    const texts: Array<Decoded> = []
    for (const value of values) {
      const inline = value.trimStart().startsWith("{")
      const file = inline ? INLINE : path.resolve(facts.paths.shellDirectory, value)
      const text = inline ? value : yield* read(file)
      if (text === undefined)
        return yield* unreadable(file, `The file given with --mcp-config does not exist: ${file}.`)
      const root = yield* JsonText.parse(text, file)
      texts.unshift(decodeJson(root, { infer: true, mayBeBare: true }, contextOf("cli", file, facts)))
    }
    return firstWins(texts, "cli")
  })

/** The user's TOML file: its settings over `base`, and its servers once the settings of both files are known. */
export interface UserFile {
  readonly settings: Settings
  /** Why nothing of the file counts, when it is there and cannot be used. */
  readonly unusable?: ConfigError
  readonly problems: ReadonlyArray<ConfigError>
  readonly unsupportedSafety: ReadonlyArray<UnsupportedSafety>
  readonly servers: (facts: SourceContext) => Decoded
}

const brokenEntries = (
  claims: ReadonlyArray<{ readonly name: string; readonly line: number }>,
  file: string,
  error: ConfigError
): Decoded => ({
  entries: claims.map(({ name, line }) => ({
    _tag: "Broken",
    broken: { name, scope: "user", source: { file, line, column: 1 }, error }
  })),
  problems: []
})

/** A file with a fault outside its entries declares nothing that runs, but keeps its names. */
const costsFile = (decoded: Decoded, error: ConfigError): Decoded => ({
  problems: decoded.problems,
  entries: decoded.entries.map((entry) => ({
    _tag: "Broken",
    broken: {
      name: nameOf(entry),
      scope: "user",
      source: sourceOf(entry),
      error: entry._tag === "Broken" ? entry.broken.error : error
    }
  }))
})

const absent = (base: Settings): UserFile => ({
  settings: base,
  problems: [],
  unsupportedSafety: [],
  servers: () => ({ entries: [], problems: [] })
})

const lost = (
  base: Settings,
  error: ConfigError,
  text: string | undefined,
  format: "toml" | "json",
  file: string
): UserFile => ({
  settings: base,
  unusable: error,
  problems: [error],
  unsupportedSafety: [safetyOfUnusable(error, file)],
  servers: () =>
    brokenEntries(text === undefined ? [] : format === "toml" ? claimsInToml(text) : claimsInJson(text), file, error)
})

const usable = (decoded: DecodedSettings, servers: (facts: SourceContext) => Decoded): UserFile => {
  const [first] = decoded.faults
  return {
    settings: decoded.settings,
    ...(first === undefined ? {} : { unusable: first }),
    problems: [...decoded.faults, ...decoded.remarks],
    unsupportedSafety: decoded.unsupportedSafety,
    servers: first === undefined ? servers : (facts) => costsFile(servers(facts), first)
  }
}

/** Reads sigil.toml. Fails only when `--config` names a file that does not exist. */
export const readSigilToml = (paths: Paths, base: Settings): Effect.Effect<UserFile, ConfigError> =>
  Effect.gen(function* () {
    const file = paths.sigilToml
    const text = yield* Effect.either(read(file))
    if (Either.isLeft(text)) return lost(base, text.left, undefined, "toml", file)
    if (text.right === undefined) {
      if (!paths.configGiven) return absent(base)
      return yield* unreadable(
        file,
        `The file given with --config does not exist: ${file}.`,
        undefined,
        "Correct the path, or leave --config out."
      )
    }
    // Loaded only where there is such a file: the parser is a large part of what a command would compile.
    const Toml = yield* Effect.promise(() => import("./Toml.ts"))
    const parsed = Toml.parse(text.right, file)
    if (Either.isLeft(parsed)) return lost(base, parsed.left, text.right, "toml", file)
    const { root } = parsed.right
    return usable(decodeTomlSettings(root, file, base), (facts) => decodeToml(root, contextOf("user", file, facts)))
  })

/** Reads settings.json. */
export const readSettingsJson = (paths: Paths, base: Settings): Effect.Effect<UserFile> =>
  Effect.gen(function* () {
    const file = paths.settingsJson
    const text = yield* Effect.either(read(file))
    if (Either.isLeft(text)) return lost(base, text.left, undefined, "json", file)
    if (text.right === undefined) return absent(base)
    const parsed = JsonText.parse(text.right, file)
    if (Either.isLeft(parsed)) return lost(base, parsed.left, text.right, "json", file)
    const root = parsed.right
    if (root.kind !== "object")
      return lost(
        base,
        toError({ field: "", at: root.at, text: "expected a JSON object" }, { file }),
        text.right,
        "json",
        file
      )
    return usable(decodeJsonSettings(root, file, base), (facts) =>
      decodeJson(root, { infer: false, mayBeBare: false }, contextOf("user", file, facts))
    )
  })

/** Decodes one JSON file of servers; what is wrong with the file becomes a problem. */
const readServers = (
  file: string,
  scope: Scope,
  source: JsonSource,
  facts: SourceContext,
  owner?: Owner
): Effect.Effect<Decoded> =>
  Effect.gen(function* () {
    const text = yield* Effect.either(read(file, owner))
    if (Either.isLeft(text)) return { entries: [], problems: [text.left] }
    if (text.right === undefined) return { entries: [], problems: [] }
    const parsed = JsonText.parse(text.right, file)
    if (Either.isRight(parsed)) return decodeJson(parsed.right, source, contextOf(scope, file, facts))
    const claims = scope === "local" ? claimsInJson(text.right) : []
    return {
      problems: [parsed.left],
      entries: claims.map(({ name, line }) => ({
        _tag: "Broken",
        broken: { name, scope, source: { file, line, column: 1 }, error: parsed.left }
      }))
    }
  })

/** The project's private file. */
export const readLocal = (facts: SourceContext): Effect.Effect<SourceResult> =>
  Effect.map(
    readServers(facts.paths.mcpLocalJson(facts.projectIdentity), "local", { infer: true, mayBeBare: true }, facts),
    (decoded) => ({ ...decoded, shadowed: [] })
  )

/** Directories of the walk, nearest first, the root directory included (S section 12.3 row 6). */
export const walk = (launchDirectory: string, extent: McpSwitches["projectWalk"]): ReadonlyArray<string> => {
  if (extent === "off") return []
  const start = realPath(launchDirectory)
  if (extent === "cwd") return [start]
  const directories: Array<string> = []
  for (let current = start; ; current = path.dirname(current)) {
    directories.push(current)
    if (extent === "git_root" && exists(path.join(current, ".git"))) return directories
    if (path.dirname(current) === current) break
  }
  return extent === "git_root" ? [start] : directories
}

/** The `.mcp.json` walk: every level is read, the nearest entry of a name wins whole (S section 1.5). */
export const readProject = (facts: SourceContext): Effect.Effect<SourceResult> =>
  Effect.map(
    Effect.forEach(walk(facts.paths.launchDirectory, facts.settings.mcp.projectWalk), (directory) =>
      readServers(path.join(directory, ".mcp.json"), "project", { infer: true, mayBeBare: true }, facts, facts.owner)
    ),
    (texts) => firstWins(texts, "project")
  )

/** What was imported for this project from other clients; somebody else's text until it is approved. */
export const readImported = (facts: SourceContext): Effect.Effect<SourceResult> =>
  Effect.map(
    readServers(facts.paths.importedJson(facts.projectIdentity), "imported", { infer: true, mayBeBare: true }, facts),
    (decoded) => ({ ...decoded, shadowed: [] })
  )

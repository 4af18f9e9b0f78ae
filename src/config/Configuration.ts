/**
 * The whole configuration of a run, read once (spec section 2).
 *
 * Settings come first, because they say how far sources may go; then every source; then the merge. `load` fails only
 * for what the command line itself names and cannot be used; everything else that is wrong is a broken entry or a
 * problem beside a working rest. `reload` reads again on request, and servers that a program declares meanwhile are
 * merged with what was read last (`LiveConfiguration.ts`).
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as path from "node:path"
import { DAY_MS } from "../base/Units.ts"
import { HostEnvironment } from "../platform/HostEnvironment.ts"
import { ConfigError } from "./ConfigError.ts"
import { exists } from "./ConfigFile.ts"
import { type Decoded, MAX_DECLARATIONS } from "./DecodeToml.ts"
import { DYNAMIC, type DynamicEntry } from "./DynamicSource.ts"
import { expand } from "./Expansion.ts"
import * as LiveConfiguration from "./LiveConfiguration.ts"
import type { Reading } from "./LiveConfiguration.ts"
import * as Locations from "./Locations.ts"
import * as ManagedFile from "./ManagedFile.ts"
import { merge, type Shadowed, signatureOfEndpoint } from "./Merge.ts"
import * as Plugins from "./Plugins.ts"
import { projectIdentity, realPath } from "./ProjectIdentity.ts"
import type { Entry, ServerDeclaration } from "./ServerDeclaration.ts"
import { defaultSettings, safetyOfUnusable, type Settings, type UnsupportedSafety } from "./Settings.ts"
import * as Sources from "./Sources.ts"

/** Everything that was read. */
export interface ConfigSnapshot {
  /** Root that servers and the audit work in; absolute, links resolved. */
  readonly workspace: string
  /** Directory of the start, or `--cwd`; absolute, links resolved. */
  readonly launchDirectory: string
  /** What approvals and toggles belong to (S section 2.2). */
  readonly projectIdentity: string
  /** One entry per name, highest scope first. */
  readonly servers: ReadonlyArray<Entry>
  readonly shadowed: ReadonlyArray<Shadowed>
  /** What is wrong outside single entries, and remarks. */
  readonly problems: ReadonlyArray<ConfigError>
  readonly settings: Settings
  /** Not empty: nothing may be started (spec section 3). */
  readonly unsupportedSafety: ReadonlyArray<UnsupportedSafety>
  /** The company policy of this machine as a file; absent where no file was looked for. */
  readonly managed?: ManagedFile.ManagedFacts
}

/** The configuration of a run. */
export class Configuration extends Context.Tag("sigil/config/Configuration")<
  Configuration,
  {
    /**
     * The configuration that holds: read when it is first asked for. Fails with `SIGIL_CONFIG_UNREADABLE` when a file
     * or value of the command line, or the launch directory, cannot be used.
     */
    readonly load: Effect.Effect<ConfigSnapshot, ConfigError>
    /**
     * Reads all sources again; what `load` gives from then on. Fails, and changes nothing, when a file or value of the
     * command line or a file of the user's own cannot be used: a slip of the pen in an editor must not end servers.
     */
    readonly reload: Effect.Effect<ConfigSnapshot, ConfigError>
    /**
     * Declares a server in scope `dynamic`, in place of one of the same name there; no file is read. Fails with the
     * entry's fault, and changes nothing.
     */
    readonly declare: (name: string, entry: DynamicEntry) => Effect.Effect<ConfigSnapshot, ConfigError>
    /** Takes back a server of scope `dynamic`. Fails with `SIGIL_UNKNOWN_SERVER` when there is none of this name. */
    readonly withdraw: (name: string) => Effect.Effect<ConfigSnapshot, ConfigError>
  }
>() {}

/** What the command line says about the configuration. */
export interface ConfigurationOptions {
  /** `--config`; must be the value that `Locations.layer` got. */
  readonly configPath?: string | undefined
  /** `--mcp-config` values in their order. */
  readonly mcpConfig: ReadonlyArray<string>
  /** `--strict-mcp-config`: servers of `--mcp-config` only. */
  readonly strict: boolean
  /** Servers that a program declares as values; they count under `strict` too, because no file is read for them. */
  readonly dynamic?: ((facts: Sources.SourceContext) => Decoded) | undefined
}

type Host = Context.Tag.Service<typeof HostEnvironment>

/** A deadline from the environment, ms; anything but a positive finite number is ignored (S section 3.7). */
const fromEnvironment = (host: Host, ...names: ReadonlyArray<string>): number | undefined => {
  for (const name of names) {
    const value = Math.floor(Number(host.get(name)?.trim() || Number.NaN))
    if (Number.isFinite(value) && value > 0) return Math.min(value, DAY_MS)
  }
  return undefined
}

/** Lets the environment raise the deadlines of JSON entries, never lower them (S section 12.3 row 25). */
const raiseDeadlines = (host: Host): ((entry: Entry) => Entry) => {
  const connect = fromEnvironment(host, "SIGIL_MCP_TIMEOUT", "MCP_TIMEOUT")
  const call = fromEnvironment(host, "SIGIL_MCP_TOOL_TIMEOUT", "MCP_TOOL_TIMEOUT")
  return (entry) => {
    if (entry._tag === "Broken" || entry.declaration.format === "toml") return entry
    if (connect === undefined && call === undefined) return entry
    const { declaration } = entry
    const toolTimeoutMs = Math.max(declaration.toolTimeoutMs, call ?? 0)
    const raised: ServerDeclaration = {
      ...declaration,
      startupTimeoutMs: Math.max(declaration.startupTimeoutMs, connect ?? 0),
      toolTimeoutMs
    }
    return { _tag: "Valid", declaration: raised }
  }
}

/** Root of the workspace (R section 1.1): `.` is the launch directory, other relative paths count from the file. */
const workspaceOf = (root: string | undefined, paths: Locations.Paths): string =>
  realPath(writtenWorkspace(root, paths))

/** The same with the links that the user named it by. */
export const writtenWorkspace = (root: string | undefined, paths: Locations.Paths): string =>
  root === undefined || root === "." ? paths.launchDirectory : path.resolve(path.dirname(paths.sigilToml), root)

const isDirectory = (target: string): boolean => {
  try {
    return fs.statSync(target).isDirectory()
  } catch {
    return false
  }
}

/** Safety files that no build enforces yet: their presence refuses every start. */
const safetyFiles = (directories: ReadonlyArray<string>): ReadonlyArray<UnsupportedSafety> => {
  const locks = [...new Set(directories)].map((directory) => path.join(directory, "sigil.lock")).filter(exists)
  return locks.map((file) => ({ field: "sigil.lock", source: file }))
}

const tooMany = (servers: ReadonlyArray<Entry>): ReadonlyArray<ConfigError> =>
  servers.length <= MAX_DECLARATIONS
    ? []
    : [
        new ConfigError({
          code: "SIGIL_CONFIG_INVALID",
          reason: "mcp_server_limit_exceeded",
          text: `${servers.length} servers are declared; the first ${MAX_DECLARATIONS} in order of precedence are used.`,
          fix: "Remove declarations that are not needed."
        })
      ]

const read = (host: Host, paths: Locations.Paths, options: ConfigurationOptions): Effect.Effect<Reading, ConfigError> =>
  Effect.gen(function* () {
    if (!isDirectory(paths.launchDirectory))
      return yield* new ConfigError({
        code: "SIGIL_CONFIG_UNREADABLE",
        reason: "no_such_directory",
        text: `The directory ${paths.launchDirectory} does not exist or is no directory.`,
        fix: "Correct --cwd, or start sigil in an existing directory.",
        where: { file: paths.launchDirectory }
      })
    const managed = yield* ManagedFile.read(paths.managedJson, host)
    // The TOML file lies over the JSON file where both have the [mcp] table.
    const json = yield* Sources.readSettingsJson(paths, {
      ...defaultSettings,
      company: managed.company,
      lists: managed.lists
    })
    const toml = yield* Sources.readSigilToml(paths, json.settings)
    const settings = toml.settings
    const workspace = workspaceOf(settings.workspaceRoot, paths)
    const identity = projectIdentity(paths)
    const launchDirectory = realPath(paths.launchDirectory)
    const facts: Sources.SourceContext = {
      paths,
      owner: { userId: host.userId, platform: host.platform },
      settings,
      workspace,
      projectIdentity: identity
    }
    const missingRoot: ReadonlyArray<ConfigError> = isDirectory(workspace)
      ? []
      : [
          new ConfigError({
            code: "SIGIL_CONFIG_INVALID",
            reason: "no_such_directory",
            text: `workspace.root: the directory ${workspace} does not exist.`,
            where: { file: paths.sigilToml, field: "workspace.root" }
          })
        ]
    const cli = yield* Sources.readCommandLine(options.mcpConfig, facts)
    const local = options.strict ? { entries: [], problems: [], shadowed: [] } : yield* Sources.readLocal(facts)
    const others: ReadonlyArray<Sources.SourceResult> = options.strict
      ? []
      : [
          { ...toml.servers(facts), shadowed: [] },
          { ...json.servers(facts), shadowed: [] },
          local,
          yield* Sources.readProject(facts),
          yield* Sources.readImported(facts),
          yield* Plugins.readPlugins(facts)
        ]
    const raise = raiseDeadlines(host)
    const assemble = (dynamic: Decoded): ConfigSnapshot => {
      const sources = [cli, { ...dynamic, shadowed: [] }, ...others]
      const merged = merge(
        sources.flatMap(({ entries }) => entries.map(raise)),
        (declaration) => {
          const expanded = expand(declaration, host.get, settings.mcp.missingEnv)
          return Either.isRight(expanded) ? signatureOfEndpoint(expanded.right.endpoint) : undefined
        }
      )
      return {
        workspace,
        launchDirectory,
        projectIdentity: identity,
        servers: merged.servers.slice(0, MAX_DECLARATIONS),
        shadowed: [...sources.flatMap(({ shadowed }) => shadowed), ...merged.shadowed],
        problems: [
          ...json.problems,
          ...toml.problems,
          ...missingRoot,
          ...sources.flatMap(({ problems }) => problems),
          ...tooMany(merged.servers)
        ],
        settings,
        unsupportedSafety: [
          ...managed.unsupportedSafety,
          ...safetyFiles([identity, workspace, launchDirectory]),
          ...json.unsupportedSafety,
          ...toml.unsupportedSafety,
          // Which names the private file keeps from a repository is unknown while it cannot be used.
          ...local.problems.slice(0, 1).map((problem) => safetyOfUnusable(problem, paths.mcpLocalJson(identity)))
        ],
        managed: managed.facts
      }
    }
    return {
      context: Sources.contextOf("dynamic", DYNAMIC, facts),
      initial: options.dynamic?.(facts) ?? { entries: [], problems: [] },
      // What is wrong with the private file as a whole; its entries' faults are their own.
      unusable: json.unusable ?? toml.unusable ?? local.problems[0],
      assemble
    }
  })

/** The configuration of this process. */
export const layer = (
  options: ConfigurationOptions
): Layer.Layer<Configuration, never, HostEnvironment | Locations.Locations> =>
  Layer.effect(
    Configuration,
    Effect.gen(function* () {
      const host = yield* HostEnvironment
      const given = yield* Locations.Locations
      const paths: Locations.Paths =
        options.configPath === undefined
          ? given
          : { ...given, sigilToml: path.resolve(given.shellDirectory, options.configPath), configGiven: true }
      return yield* LiveConfiguration.make(Effect.suspend(() => read(host, paths, options)))
    })
  )

/** A configuration made of given values; a function is asked again by each `reload`. */
export const layerTest = (given: ConfigSnapshot | (() => ConfigSnapshot)): Layer.Layer<Configuration> =>
  Layer.effect(
    Configuration,
    LiveConfiguration.make(
      Effect.sync(() => LiveConfiguration.readingOf(typeof given === "function" ? given() : given))
    )
  )

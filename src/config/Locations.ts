/**
 * Every path sigil reads or writes, computed once from the environment (spec section 2).
 *
 * Nothing here touches the disk. Four directories stay separate: the launch directory, the project identity (what
 * approvals, toggles and private project files belong to), the workspace (what servers and the audit work in) and
 * the walk for `.mcp.json`.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { createHash } from "node:crypto"
import * as path from "node:path"
import { HostEnvironment } from "../platform/HostEnvironment.ts"

/** Hex digits of the digest in a workspace's directory name. */
const WORKSPACE_DIGITS = 16
/** Longest readable part of a project's directory name. */
const MAX_KEY_LABEL = 80
/** Longest readable part of a workspace's directory name. */
const WORKSPACE_LABEL = 40

/** Paths of one sigil home. All absolute. */
export interface Paths {
  /** `SIGIL_HOME`, default `~/.sigil`. */
  readonly home: string
  /** `SIGIL_STATE_HOME`, default `$SIGIL_HOME/state`. */
  readonly stateHome: string
  /** `SIGIL_CACHE_HOME`, default `$SIGIL_HOME/cache`. */
  readonly cacheHome: string
  /** Home directory of the user. */
  readonly homeDirectory: string
  /** Directory sigil was started in, or `--cwd`. */
  readonly launchDirectory: string
  /** Directory that paths typed on the command line are relative to. */
  readonly shellDirectory: string
  /** The user's TOML file; `--config` replaces it. */
  readonly sigilToml: string
  /** Whether `--config` named that file, which then must exist. */
  readonly configGiven: boolean
  readonly settingsJson: string
  readonly userPlugins: string
  readonly approvals: string
  readonly oauth: string
  readonly locks: string
  readonly eras: string
  /** Company policy; root-owned. */
  readonly managedJson: string
  /** Private files of a project identity. */
  readonly projectDirectory: (identity: string) => string
  readonly mcpLocalJson: (identity: string) => string
  readonly importedJson: (identity: string) => string
  readonly mcpState: (identity: string) => string
  /** State of a workspace. */
  readonly workspaceDirectory: (workspace: string) => string
  readonly auditLog: (workspace: string) => string
  readonly auditHead: (workspace: string) => string
  readonly sessions: (workspace: string) => string
  readonly artifacts: (workspace: string) => string
  readonly logs: (workspace: string) => string
}

/** Every path sigil reads or writes. */
export class Locations extends Context.Tag("sigil/config/Locations")<Locations, Paths>() {}

/** What the command line may change. */
export interface LocationOptions {
  /** `--config PATH`, relative to the shell's directory. */
  readonly configPath?: string | undefined
  /** `--cwd DIR`, relative to the shell's directory. */
  readonly cwd?: string | undefined
}

/**
 * Directory name under `projects/` of a project identity: readable (S section 1.6), and always with a digest. Private
 * files need no approval, so two projects must never share them: `a/b` and `a-b` read alike.
 */
export const projectKey = (identity: string): string => {
  const trimmed = identity.replace(/^[\\/]+|[\\/]+$/g, "")
  const key = trimmed
    .replace(/[^A-Za-z0-9._-]/g, "-")
    .replace(/-+/g, "-")
    .replace(/^-|-$/g, "")
  // A name of dots only would be a directory of the file system's own.
  const name = key === "" || /^\.+$/.test(key) ? "default" : key
  const digest = createHash("sha256").update(identity).digest("hex").slice(0, WORKSPACE_DIGITS)
  return `${name.slice(-MAX_KEY_LABEL)}-${digest}`
}

/** Directory name under `workspaces/` of a workspace: its last name and a digest of its path. */
export const workspaceId = (workspace: string): string => {
  const label = path
    .basename(workspace)
    .replace(/[^A-Za-z0-9_-]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, WORKSPACE_LABEL)
  const digest = createHash("sha256").update(workspace).digest("hex").slice(0, WORKSPACE_DIGITS)
  return `${label === "" ? "root" : label}-${digest}`
}

/**
 * Company policy of the platform (spec section 3). Fixed text: what a variable such as ProgramData names, its user
 * may change.
 */
const managedPath = (platform: NodeJS.Platform): string => {
  if (platform === "win32") return "C:\\ProgramData\\sigil\\managed.json"
  return platform === "darwin" ? "/Library/Application Support/sigil/managed.json" : "/etc/sigil/managed.json"
}

/** Computes every path from the environment. */
export const make = (
  host: Pick<Context.Tag.Service<typeof HostEnvironment>, "get" | "cwd" | "homeDirectory" | "platform" | "managed">,
  options: LocationOptions = {}
): Paths => {
  const directory = (variable: string, fallback: string): string => {
    const value = host.get(variable)
    return value === undefined || value.trim() === "" ? fallback : path.resolve(host.cwd, value)
  }
  const home = directory("SIGIL_HOME", path.join(host.homeDirectory, ".sigil"))
  const stateHome = directory("SIGIL_STATE_HOME", path.join(home, "state"))
  const cacheHome = directory("SIGIL_CACHE_HOME", path.join(home, "cache"))
  const projectDirectory = (identity: string): string => path.join(home, "projects", projectKey(identity))
  const workspaceDirectory = (workspace: string): string => path.join(stateHome, "workspaces", workspaceId(workspace))
  return {
    home,
    stateHome,
    cacheHome,
    homeDirectory: host.homeDirectory,
    launchDirectory: path.resolve(host.cwd, options.cwd ?? "."),
    shellDirectory: host.cwd,
    sigilToml:
      options.configPath === undefined ? path.join(home, "sigil.toml") : path.resolve(host.cwd, options.configPath),
    configGiven: options.configPath !== undefined,
    settingsJson: path.join(home, "settings.json"),
    userPlugins: path.join(home, "plugins"),
    approvals: path.join(stateHome, "mcp-approvals.json"),
    oauth: path.join(stateHome, "mcp-oauth.json"),
    locks: path.join(stateHome, "locks"),
    eras: path.join(cacheHome, "eras.json"),
    managedJson: host.managed?.file ?? managedPath(host.platform),
    projectDirectory,
    mcpLocalJson: (identity) => path.join(projectDirectory(identity), "mcp.local.json"),
    importedJson: (identity) => path.join(projectDirectory(identity), "imported.json"),
    mcpState: (identity) => path.join(stateHome, "projects", projectKey(identity), "mcp-state.json"),
    workspaceDirectory,
    auditLog: (workspace) => path.join(workspaceDirectory(workspace), "audit.jsonl"),
    auditHead: (workspace) => path.join(workspaceDirectory(workspace), "audit.head"),
    sessions: (workspace) => path.join(workspaceDirectory(workspace), "sessions"),
    artifacts: (workspace) => path.join(workspaceDirectory(workspace), "artifacts"),
    logs: (workspace) => path.join(workspaceDirectory(workspace), "logs")
  }
}

/** The paths of this process's environment and command line. */
export const layer = (options: LocationOptions = {}): Layer.Layer<Locations, never, HostEnvironment> =>
  Layer.effect(
    Locations,
    Effect.map(HostEnvironment, (host) => make(host, options))
  )

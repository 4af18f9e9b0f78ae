/**
 * Whether a server can run in a sandbox, and through which command line (Linux, `bwrap` of bubblewrap).
 *
 * The launcher is two processes of `bwrap` and, for a moment, `env`. The outer one leads the group, the inner one is
 * the first of a PID namespace, the server is the second; so its end is that of `PidNamespace.ts`, the same in every
 * step. `env` is there because bwrap sets PWD and a server gets the variables of its plan, no others. They reach bwrap
 * through a pipe and not as its own: LD_PRELOAD in an entry would otherwise run code outside of the sandbox.
 *
 * What the server notices: the file system of `SandboxLayout.ts`, a /dev and a /proc of its own, no capability also as
 * root, no setuid program, no namespaces of its own where bwrap can forbid them, argv[0] as an absolute path. No
 * session of its own is asked of bwrap: sigil's children lead one already and have no terminal.
 *
 * Invariants: a receipt is made by running the very layout that a server will get (`SandboxProbe.ts`), once per layout
 * and layer, and kept, a negative one too; the program is never taken from where a server may write; bounded.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as path from "node:path"
import { SECOND_MS } from "../base/Units.ts"
import { ensurePrivateDirectory } from "./AtomicFile.ts"
import { resolve } from "./Executable.ts"
import { HostEnvironment } from "./HostEnvironment.ts"
import type { Launcher } from "./Launcher.ts"
import { isVisible, type Layout, layoutOf, type LayoutRequest, type Mount } from "./SandboxLayout.ts"
import { isInside } from "./Containment.ts"
import { trailOf } from "./SandboxPaths.ts"
import { type Proof, probeVariables, prove } from "./SandboxProbe.ts"

/** Time for all attempts together; one takes some ten milliseconds. */
const PROBE_BOUND_MS = 5 * SECOND_MS
const INSTALL =
  "Install bubblewrap (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap; " +
  "Arch: pacman -S bubblewrap), or put the directory of 'bwrap' on PATH."

/** What `bwrap` can be asked for, best first: older ones cannot forbid namespaces, root may do without one. */
const forms = (root: boolean): ReadonlyArray<ReadonlyArray<string>> => [
  ["--unshare-user", "--disable-userns"],
  ["--unshare-user"],
  ...(root ? [[]] : [])
]
const always = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--cap-drop", "ALL"]
const root = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]

/** A sandbox that was tried. */
export interface Sandbox {
  readonly _tag: "Available"
  readonly backend: "linux_bubblewrap"
  /** As the program says it, e.g. `0.8.0`. */
  readonly version: string
  /** Absolute path of `bwrap`. */
  readonly file: string
  /** Absolute path of `env`, inside. */
  readonly env: string
  /** What comes before the command of any server with this layout. */
  readonly args: ReadonlyArray<string>
  readonly network: "denied" | "shared"
  readonly workspaceAccess: "writable" | "read-only"
  readonly layout: Layout
  readonly proof: Proof
}

/** What the system can do. */
export type Receipt =
  | Sandbox
  | {
      readonly _tag: "Unavailable"
      /** `refused`: every way was tried, and the system allows none. Others: reasons of `SandboxLayout.ts`. */
      readonly reason: string
      /** One sentence. */
      readonly text: string
      /** What to install or to set; absent where nothing helps. */
      readonly fix?: string
      /** The setting to change, where it is one. */
      readonly field?: string
    }

/** Answers whether servers can run in a sandbox. */
export class Sandboxes extends Context.Tag("sigil/platform/Sandboxes")<
  Sandboxes,
  {
    /** The answer for a layout; the first question of its kind runs the sandbox, at most 6 s. */
    readonly receipt: (request: LayoutRequest) => Effect.Effect<Receipt>
  }
>() {}

/** What the sandbox did not prove of what every sandbox must; the network only where it is denied. */
export const lacks = ({ network, proof }: Sandbox): ReadonlyArray<string> => [
  ...(proof.processTree ? [] : ["that no process leaves or outlives it"]),
  ...(proof.network || network === "shared" ? [] : ["that it has no network"]),
  ...(proof.fileSystem ? [] : ["that nothing but the configured paths can be written or seen"]),
  ...(proof.privileges ? [] : ["that nothing in it can gain privileges"]),
  ...(proof.environment ? [] : ["that it passes on exactly the given variables"])
]

/** What the sandbox gives, for people. */
export const describe = ({ backend, network, version, workspaceAccess }: Sandbox): string =>
  `in a sandbox (${backend} ${version}; network ${network}, workspace ${workspaceAccess}, everything else read-only)`

/** Whether the sandbox shows a path of the host. */
export const shows = (sandbox: Sandbox, target: string): boolean => isVisible(sandbox.layout.mounts, target)

const mountArgs = ({ kind, path: place }: Mount): ReadonlyArray<string> => {
  switch (kind) {
    case "empty":
      return ["--tmpfs", place]
    case "directory":
      return ["--dir", place]
    case "read":
      return ["--ro-bind", place, place]
    case "write":
    case "pin":
      return ["--bind", place, place]
    case "cover":
      return ["--tmpfs", place, "--remount-ro", place]
    case "cover_file":
      return ["--ro-bind", "/dev/null", place]
  }
}

const argsOf = (form: ReadonlyArray<string>, network: "denied" | "shared", layout: Layout): ReadonlyArray<string> => [
  ...form,
  ...always,
  ...(network === "denied" ? ["--unshare-net"] : []),
  ...root,
  ...layout.mounts.flatMap(mountArgs),
  "--chdir",
  layout.cwd
]

/** The launcher of one server. `variables` are the server's own; only PWD is looked at. */
export const launcherOf = (
  { args, env, file }: Pick<Sandbox, "args" | "env" | "file">,
  variables: { readonly [name: string]: string }
): Launcher => ({
  file,
  args: [
    ...args,
    "--args",
    "3",
    "--",
    env,
    ...(variables["PWD"] === undefined ? ["-u", "PWD"] : [`PWD=${variables["PWD"]}`])
  ],
  variables: (given) =>
    Object.entries(given)
      .flatMap(([name, value]) => ["--setenv", name, value])
      .map((word) => `${word}\0`)
      .join("")
})

/** The answers of this system; asked on demand and kept. */
export const layer: Layer.Layer<Sandboxes, never, HostEnvironment> = Layer.effect(
  Sandboxes,
  Effect.map(HostEnvironment, (host) => {
    const kept = new Map<string, Effect.Effect<Receipt>>()
    return {
      receipt: (request) =>
        Effect.gen(function* () {
          const key = JSON.stringify(request)
          const known = kept.get(key)
          if (known !== undefined) return yield* known
          // Not to be interrupted: the kept answer would be the interruption.
          const asked = yield* Effect.cached(Effect.uninterruptible(probe(host, request)))
          const first = kept.get(key) ?? asked
          kept.set(key, first)
          return yield* first
        })
    }
  })
)

/** A given answer. */
export const layerTest = (receipt: Receipt): Layer.Layer<Sandboxes> =>
  Layer.succeed(Sandboxes, { receipt: () => Effect.succeed(receipt) })

type Host = Context.Tag.Service<typeof HostEnvironment>

const unavailable = (reason: string, text: string, fix?: string): Receipt => ({
  _tag: "Unavailable",
  reason,
  text,
  ...(fix === undefined ? {} : { fix })
})

const probe = (host: Host, request: LayoutRequest): Effect.Effect<Receipt> =>
  Effect.gen(function* () {
    if (host.platform !== "linux")
      return unavailable("not_linux", "The back end linux_bubblewrap exists on Linux only.")
    // What does not exist could come to be in the sight of a running server.
    for (const directory of request.privateDirectories) {
      const made = yield* Effect.either(ensurePrivateDirectory(directory))
      if (Either.isLeft(made)) return unavailable("state_unwritable", made.left.text, made.left.fix)
    }
    const planned = layoutOf(request)
    if (Either.isLeft(planned)) return { _tag: "Unavailable", ...planned.left }
    const layout = planned.right
    const searchPath = host.get("PATH") ?? ""
    const places = layout.mounts.flatMap(({ kind, path: place }) => (kind === "write" ? [place] : []))
    /** A link that stands there counts like a file that does. */
    const byServers = (target: string): string | undefined => {
      const { links, real } = trailOf(target)
      return places.find((place) => [real, ...links].some((one) => isInside(one, place)))
    }
    const trusted = searchPath
      .split(path.delimiter)
      .filter((folder) => byServers(path.resolve("/", folder)) === undefined)
      .join(path.delimiter)
    const find = (command: string, among: string) =>
      resolve({ command, cwd: "/", searchPath: among, platform: host.platform }).pipe(
        Effect.orElseSucceed(() => undefined)
      )
    const lookUp = (command: string, reason: string, fix?: string) =>
      Effect.gen(function* () {
        const file = yield* find(command, trusted)
        if (file !== undefined && byServers(file) === undefined) return file
        const untrusted = file ?? (yield* find(command, searchPath))
        const place = untrusted === undefined ? undefined : byServers(untrusted)
        return untrusted === undefined || place === undefined
          ? unavailable(reason, `The program '${command}' was not found on sigil's PATH.`, fix)
          : unavailable(
              reason,
              `The program '${untrusted}' is not used, for servers may write where it stands ('${place}').`,
              `Take that place out of writable_paths in [execution] of sigil.toml. ${fix ?? ""}`.trim()
            )
      })
    const file = yield* lookUp("bwrap", "bubblewrap_missing", INSTALL)
    if (typeof file !== "string") return file
    const env = yield* lookUp("env", "env_missing")
    if (typeof env !== "string") return env
    return yield* attempts(host, { env, file, layout, request, searchPath: trusted })
  })

interface Attempt {
  readonly file: string
  readonly env: string
  readonly layout: Layout
  readonly request: LayoutRequest
  /** For the programs of the proof; without the places where servers may write. */
  readonly searchPath: string
}

/** Tries the forms in order until one proves everything; else the answer is the first that ran at all. */
const attempts = (host: Host, { env, file, layout, request, searchPath }: Attempt): Effect.Effect<Receipt> =>
  Effect.gen(function* () {
    const version = yield* versionOf(file)
    const end = performance.now() + PROBE_BOUND_MS
    const variables = probeVariables(searchPath)
    let why = ""
    let partial: Sandbox | undefined
    for (const form of forms(host.userId === 0)) {
      const left = end - performance.now()
      if (left <= 0) break
      const args = argsOf(form, request.network, layout)
      const proof = yield* prove(launcherOf({ args, env, file }, variables), layout, variables, left)
      if (typeof proof === "string") {
        why = proof
        continue
      }
      const found: Sandbox = {
        _tag: "Available",
        backend: "linux_bubblewrap",
        version,
        file,
        env,
        args,
        network: request.network,
        workspaceAccess: request.workspaceAccess,
        layout,
        proof
      }
      if (lacks(found).length === 0) return found
      partial ??= found
    }
    return (
      partial ??
      unavailable(
        "refused",
        `The system does not let '${file}' make a sandbox: ${why}.`,
        "Allow user namespaces (sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1, " +
          "kernel.apparmor_restrict_unprivileged_userns=0, whichever exists; in a container, its seccomp profile)."
      )
    )
  })

/** The version, for the record; `unknown` where the program does not say. */
const versionOf = (file: string): Effect.Effect<string> =>
  Effect.flatMap(
    Effect.promise(() => import("node:child_process")),
    ({ execFile }) =>
      Effect.async<string>((resume) => {
        execFile(
          file,
          ["--version"],
          { env: {}, timeout: SECOND_MS, killSignal: "SIGKILL", maxBuffer: 1_000 },
          (_, stdout) => resume(Effect.succeed(/\d+(?:\.\d+)+/.exec(stdout)?.[0] ?? "unknown"))
        )
      })
  )

/**
 * Whether a child can be run in a PID namespace of its own, and through which command line (Linux, `unshare`).
 *
 * A process can leave its group and its session and clear its environment, but not its PID namespace. When the
 * first process of a namespace ends, the kernel kills every other one before that end can be seen; so a group
 * that is gone means that the whole namespace is.
 *
 * The launcher is two `unshare` processes. The outer one makes the namespace and leads the group; the inner one
 * makes nothing and is the namespace's first process. The server is the second, because the first one of a
 * namespace lives by other rules: every signal that it has no handler for is ignored, SIGTERM, SIGPIPE and its
 * own SIGABRT included, and it could leave the group that SIGKILL is sent to. A shell in the place of the inner
 * `unshare` would change the environment (PWD, names that are no identifiers).
 *
 * What the server notices: its pid is 2, /proc shows its namespace only where that can be mounted, setuid
 * programs have no effect in a user namespace, and argv[0] is the absolute path. What sigil notices: the launcher
 * holds the pipes as well, so a server that closes its stdout and lives on is found by its deadlines only, and a
 * server that dies by a signal shows as exit code 1 with a line of `unshare` on its stderr.
 *
 * Invariants: the system is asked once per layer and only on demand, the answer is kept, a negative one too; the
 * question is bounded and leaves no process.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { SECOND_MS } from "../base/Units.ts"
import { resolve } from "./Executable.ts"
import { HostEnvironment } from "./HostEnvironment.ts"
import { type Launcher as Base, launch } from "./Launcher.ts"

export { launch }

/** Time for all attempts together; one takes a few milliseconds. */
const PROBE_BOUND_MS = 3 * SECOND_MS
/** Time for a killed attempt to be reaped. */
const KILL_WAIT_MS = 500
/** Characters of what an attempt printed that are kept. */
const MAX_OUTPUT = 2_000

/** Makes the namespace. */
const namespaceOptions = ["--pid", "--fork", "--kill-child"]
/** A /proc of the namespace's own; refused where parts of /proc are covered, as in many containers. */
const ownProcOption = "--mount-proc"
/** What a user without privileges needs. */
const userOptions = ["--user", "--map-current-user"]

/** Starts a command inside a new PID namespace. */
export interface Launcher extends Base {
  /** Whether /proc shows the namespace's own processes only. */
  readonly ownProc: boolean
  /** Whether it needs a user namespace as well. */
  readonly userNamespace: boolean
}

/** What the system can do. */
export type Receipt =
  | { readonly _tag: "Available"; readonly launcher: Launcher }
  | {
      readonly _tag: "Unavailable"
      /** `refused`: every way was tried, and the system allows none. */
      readonly reason: "not_linux" | "unshare_missing" | "refused"
      /** One sentence. */
      readonly text: string
      /** What to install or to set; absent where nothing helps. */
      readonly fix?: string
    }

/** Answers whether PID namespaces can be used. */
export class PidNamespace extends Context.Tag("sigil/platform/PidNamespace")<
  PidNamespace,
  {
    /** The answer; the first call asks the system, at most 3.5 s. */
    readonly receipt: Effect.Effect<Receipt>
  }
>() {}

/** What a launcher gives, for people. */
export const describe = (launcher: Launcher): string =>
  `in a PID namespace of its own${launcher.userNamespace ? " (inside a user namespace)" : ""}${
    launcher.ownProc ? "" : ", with the /proc of the host"
  }`

/** The ways to try, best first. */
export const candidates = (unshare: string, root: boolean): ReadonlyArray<Launcher> =>
  (root ? [false, true] : [true]).flatMap((userNamespace) =>
    [true, false].map((ownProc) => ({
      file: unshare,
      args: [
        ...(userNamespace ? userOptions : []),
        ...namespaceOptions,
        ...(ownProc ? [ownProcOption] : []),
        "--",
        unshare,
        "--fork",
        "--"
      ],
      ownProc,
      userNamespace
    }))
  )

/** The answer of this system; asked on demand and kept. */
export const layer: Layer.Layer<PidNamespace, never, HostEnvironment> = Layer.effect(
  PidNamespace,
  Effect.gen(function* () {
    const host = yield* HostEnvironment
    // Not to be interrupted: the kept answer would be the interruption.
    const receipt = yield* Effect.cached(Effect.uninterruptible(probe(host)))
    return { receipt }
  })
)

/** A given answer. */
export const layerTest = (receipt: Receipt): Layer.Layer<PidNamespace> =>
  Layer.succeed(PidNamespace, { receipt: Effect.succeed(receipt) })

/** Finds `unshare` on sigil's own PATH and tries the ways in order. */
const probe = (host: Context.Tag.Service<typeof HostEnvironment>): Effect.Effect<Receipt> =>
  Effect.gen(function* () {
    if (host.platform !== "linux") {
      return {
        _tag: "Unavailable",
        reason: "not_linux",
        text: "PID namespaces exist on Linux only."
      } as const
    }
    const searchPath = host.get("PATH") ?? ""
    const unshare = yield* resolve({ command: "unshare", cwd: "/", searchPath, platform: host.platform }).pipe(
      Effect.orElseSucceed(() => undefined)
    )
    if (unshare === undefined) {
      return {
        _tag: "Unavailable",
        reason: "unshare_missing",
        text: "The program 'unshare' was not found on sigil's PATH.",
        fix: "Install util-linux 2.36 or later, or put the directory of 'unshare' on PATH."
      } as const
    }
    const end = performance.now() + PROBE_BOUND_MS
    let why = ""
    for (const launcher of candidates(unshare, host.userId === 0)) {
      const left = end - performance.now()
      if (left <= 0) break
      const refusal = yield* attempt(launcher, left)
      if (refusal === undefined) return { _tag: "Available", launcher } as const
      why = refusal
    }
    return {
      _tag: "Unavailable",
      reason: "refused",
      text: `The system does not let '${unshare}' make a PID namespace: ${why}.`,
      fix:
        "Allow user namespaces (sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1, " +
        "kernel.apparmor_restrict_unprivileged_userns=0, whichever exists; in a container, its seccomp profile), " +
        "or install util-linux 2.36 or later."
    } as const
  })

/** Tries one way; `undefined` when it works, else why it does not. */
const attempt = (launcher: Launcher, boundMs: number): Effect.Effect<string | undefined> =>
  // Loaded here: commands that never ask do not pay for it.
  Effect.flatMap(
    Effect.promise(() => import("node:child_process")),
    ({ spawn }) =>
      Effect.async<string | undefined>((resume) => {
        // The shell prints its pid as the kernel counts it: 2 only in a new namespace behind its first process.
        const { file, args } = launch(launcher, "/bin/sh", ["-c", "echo $$"])
        let out = ""
        let err = ""
        let timedOut = false
        try {
          const child = spawn(file, args, { cwd: "/", env: {}, stdio: ["ignore", "pipe", "pipe"], detached: true })
          const done = (refusal: string | undefined): void => {
            clearTimeout(timer)
            // Without a process there may be no pipes, whatever the types say.
            for (const pipe of [child.stdout, child.stderr]) pipe?.destroy()
            resume(Effect.succeed(refusal))
          }
          const bounded = (): void => {
            timedOut = true
            try {
              if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL")
            } catch {
              // Already gone.
            }
            timer = setTimeout(() => done("it did not answer in time"), KILL_WAIT_MS)
          }
          let timer = setTimeout(bounded, boundMs)
          child.on("error", (error) => done(error.message))
          child.once("close", (code) => {
            if (code === 0 && out === "2\n") return done(undefined)
            const said = err.trim().split("\n")[0] ?? ""
            if (timedOut) done("it did not answer in time")
            else if (code === 0) done("it started the command outside of one")
            else done(said === "" ? `it ended with exit code ${code}` : said)
          })
          const kept = (text: string, more: string): string => (text + more).slice(0, MAX_OUTPUT)
          child.stdout?.setEncoding("utf8").on("data", (text: string) => (out = kept(out, text)))
          child.stderr?.setEncoding("utf8").on("data", (text: string) => (err = kept(err, text)))
        } catch (error) {
          resume(Effect.succeed(error instanceof Error ? error.message : "it could not be started"))
        }
      })
  )

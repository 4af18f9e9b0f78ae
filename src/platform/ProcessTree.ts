/**
 * A child process with everything it starts, as a scoped resource.
 *
 * The child leads its own session and group and carries the generation's marker; the scope's end ends all of it
 * (`Termination.ts`) and the outcome is a report. The reaper is told before the process exists, so not even a
 * host that is killed in between leaves anything behind.
 *
 * Own use of `node:child_process`: `@effect/platform`'s Command waits without end for a child that ignores
 * SIGTERM, and lets a broken stdin pipe kill the host.
 *
 * With a launcher (`PidNamespace.ts`, `Sandbox.ts`) the child is the launcher and the server is behind it; all else is the same.
 *
 * Invariants: the environment is exactly what the plan says plus the marker; the three pipes have an error
 * listener from the first moment to the last; `terminate` runs once, every caller gets its report.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import type * as Scope from "effect/Scope"
import { type ChildProcessWithoutNullStreams, spawn as spawnChild } from "node:child_process"
import type { Readable, Writable } from "node:stream"
import type { GenerationId } from "../base/Ids.ts"
import type { CleanupReport } from "./CleanupReport.ts"
import { launch, type Launcher } from "./Launcher.ts"
import { forget, type LiveTree, remember } from "./LiveTrees.ts"
import { MARKER_VARIABLE, markerOf } from "./Marker.ts"
import * as Proc from "./Proc.ts"
import { Reaper } from "./Reaper.ts"
import { faultBeforehand, SpawnError, spawnError } from "./SpawnError.ts"
import { groupIsAlive, type Target, terminate } from "./Termination.ts"
import { terminateWindows } from "./WindowsTermination.ts"

export { killAllNow } from "./LiveTrees.ts"
export { SpawnError }

/** What to start. */
export interface SpawnPlan {
  /** Absolute path of the executable. */
  readonly file: string
  readonly args: ReadonlyArray<string>
  /** First word of the child's own argument list; `file` when absent, and always behind a launcher. */
  readonly argv0?: string
  /** Working directory, absolute. */
  readonly cwd: string
  /** The child's whole environment; the marker is added. */
  readonly env: { readonly [name: string]: string }
  readonly generation: GenerationId
  /** Milliseconds that the server gets after each step of its end; at most 10,000 are granted. */
  readonly graceMs: number
  /** Runs the server in a PID namespace of its own, or in a sandbox. */
  readonly launcher?: Launcher
}

/** How the child ended; one of the two is null. */
export type ExitStatus = { readonly code: number | null; readonly signal: string | null }

/** A running tree. */
export interface ProcessTree {
  readonly pid: number
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** Done when the child has been reaped; its last output may still be unread. */
  readonly exited: Deferred.Deferred<ExitStatus>
  /** Whether the child (not its descendants) still runs. */
  readonly isRunning: () => boolean
  /** Ends the tree, at most 4 s plus the grace; every caller gets the same report. Cannot be interrupted. */
  readonly terminate: Effect.Effect<CleanupReport>
}

const windows = process.platform === "win32"

/** Starts the child itself. Some failures are thrown, others come as an event; both end here. */
const start = (plan: SpawnPlan): Effect.Effect<ChildProcessWithoutNullStreams, SpawnError> =>
  Effect.async((resume) => {
    const launched = plan.launcher !== undefined
    const { file, args } = launched ? launch(plan.launcher, plan.file, plan.args) : plan
    const fault = launched ? faultBeforehand(plan.file, plan.cwd) : undefined
    if (fault !== undefined) return resume(fault)
    const variables = plan.launcher?.variables?.(plan.env)
    const own = { [MARKER_VARIABLE]: plan.generation }
    try {
      const started = spawnChild(file, args, {
        cwd: plan.cwd,
        env: variables === undefined ? { ...plan.env, ...own } : own,
        stdio: ["pipe", "pipe", "pipe", ...(variables === undefined ? [] : (["pipe"] as const))],
        detached: !windows,
        windowsHide: true,
        ...(plan.argv0 === undefined || launched ? {} : { argv0: plan.argv0 })
      })
      // The first three are pipes; the types know that of lists of exactly three.
      const child = started as ChildProcessWithoutNullStreams
      if (variables !== undefined) sendVariables(started.stdio[3], variables)
      if (child.pid === undefined) {
        child.once("error", (error) => resume(spawnError(file, plan.cwd, error)))
        // Without a process these are closed pipes or nothing at all, whatever the types say.
        for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe?.on("error", ignore)
        return
      }
      for (const emitter of [child, child.stdin, child.stdout, child.stderr]) emitter.on("error", ignore)
      resume(Effect.succeed(child))
    } catch (error) {
      resume(spawnError(file, plan.cwd, error))
    }
  })

const ignore = (): void => {}

/** Gives a launcher the variables of its server, and reads to the end: a pipe that nobody reads is never closed. */
const sendVariables = (pipe: Readable | Writable | null | undefined, variables: string): void => {
  pipe?.on("error", ignore)
  if (pipe === null || pipe === undefined || !("end" in pipe)) return
  if ("resume" in pipe && typeof pipe.resume === "function") pipe.resume()
  pipe.end(variables)
}

/** Makes the tree of a child that has just been started. Everything here happens before the next event. */
const makeTree = (
  plan: SpawnPlan,
  child: ChildProcessWithoutNullStreams,
  pid: number,
  reaper: Reaper["Type"]
): ProcessTree => {
  const exited = Deferred.unsafeMake<ExitStatus>(FiberId.none)
  const report = Deferred.unsafeMake<CleanupReport>(FiberId.none)
  const listeners = new Set<() => void>()
  // Not reaped before the exit event, so its entry in /proc is still there.
  const startTime = Proc.readStat(pid)?.startTime
  let hasExited = false
  let groupGone = false
  let terminating = false

  const live: LiveTree = { pid, mayKill: () => !groupGone }
  remember(live)
  reaper.register(pid, startTime, plan.generation)

  child.once("exit", (code, signal) => {
    hasExited = true
    // Looked at in the moment of reaping: from here on a number without members may become somebody else's.
    groupGone = windows || !groupIsAlive(pid)
    Deferred.unsafeDone(exited, Effect.succeed({ code, signal }))
    for (const listener of listeners) listener()
    listeners.clear()
  })

  const target: Target = {
    pid,
    startTime,
    marker: markerOf(plan.generation),
    graceMs: plan.graceMs,
    launched: plan.launcher !== undefined,
    stdin: child.stdin,
    stdout: child.stdout,
    stderr: child.stderr,
    hasExited: () => hasExited,
    groupIsGone: () => groupGone,
    onExit: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    }
  }
  const end = Effect.flatMap(windows ? terminateWindows(target) : terminate(target), (outcome) =>
    Effect.sync(() => {
      if (outcome.complete) {
        groupGone = true
        forget(live)
        reaper.withdraw(pid, plan.generation)
      }
      Deferred.unsafeDone(report, Effect.succeed(outcome))
      return outcome
    })
  )
  return {
    pid,
    stdin: child.stdin,
    stdout: child.stdout,
    stderr: child.stderr,
    exited,
    isRunning: () => !hasExited,
    terminate: Effect.uninterruptible(
      Effect.suspend(() => {
        if (terminating) return Deferred.await(report)
        terminating = true
        return end
      })
    )
  }
}

/**
 * Starts a process tree that lives as long as the scope.
 *
 * Fails with `SpawnError`; then no process exists. Closing the scope waits for `terminate`.
 */
export const spawn = (plan: SpawnPlan): Effect.Effect<ProcessTree, SpawnError, Reaper | Scope.Scope> =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const reaper = yield* Reaper
      reaper.announce(plan.generation)
      const child = yield* Effect.tapError(start(plan), () => Effect.sync(() => reaper.retract(plan.generation)))
      // `start` succeeds only with a pid.
      return makeTree(plan, child, child.pid ?? 0, reaper)
    }),
    (tree) => tree.terminate
  )

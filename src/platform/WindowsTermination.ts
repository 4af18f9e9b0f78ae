/**
 * The end of a process tree on Windows (spec section 7; not tested on a real system, the README says so).
 *
 * There are no groups and no sessions: `taskkill /T` walks from parent to child while the parent still lives. So
 * the tree is killed first and the pipes stay open meanwhile, or the leader would leave on its own and its
 * children could no longer be found. A leader that is already gone leaves the rest unconfirmed.
 */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as path from "node:path"
import { SECOND_MS } from "../base/Units.ts"
import type { CleanupReport } from "./CleanupReport.ts"
import type { Target } from "./Termination.ts"

/** Limit of one taskkill. */
const TASKKILL_WAIT_MS = 2 * SECOND_MS
/** Wait for the leader's exit event after it. */
const EXIT_WAIT_MS = SECOND_MS

const taskkill = (pid: number): Effect.Effect<boolean> =>
  Effect.async((resume) => {
    const root = process.env["SystemRoot"] ?? "C:\\Windows"
    const child = spawn(path.win32.join(root, "System32", "taskkill.exe"), ["/PID", String(pid), "/T", "/F"], {
      stdio: "ignore",
      windowsHide: true,
      env: { SystemRoot: root }
    })
    const timer = setTimeout(() => {
      child.kill()
      resume(Effect.succeed(false))
    }, TASKKILL_WAIT_MS)
    const end = (ok: boolean): void => {
      clearTimeout(timer)
      resume(Effect.succeed(ok))
    }
    child.once("error", () => end(false))
    child.once("exit", (code) => end(code === 0))
  })

const exited = (target: Target): Effect.Effect<boolean> =>
  Effect.async((resume) => {
    if (target.hasExited()) return resume(Effect.succeed(true))
    const timer = setTimeout(() => resume(Effect.succeed(false)), EXIT_WAIT_MS)
    target.onExit(() => {
      clearTimeout(timer)
      resume(Effect.succeed(true))
    })
  })

/** Ends the tree. Never fails; takes at most three seconds. */
export const terminateWindows = (target: Target): Effect.Effect<CleanupReport> =>
  Effect.gen(function* () {
    const begun = performance.now()
    const alreadyGone = target.hasExited()
    target.stdout.resume()
    target.stderr.resume()
    const killed = alreadyGone ? false : yield* taskkill(target.pid)
    const gone = yield* exited(target)
    target.stdin.destroy()
    target.stdout.destroy()
    target.stderr.destroy()
    const complete = killed && gone
    return {
      complete,
      survivors: gone ? [] : [{ pid: target.pid, command: "server" }],
      steps: alreadyGone ? [] : (["sigkill"] as const),
      ...(complete ? {} : { reason: alreadyGone ? "unconfirmed" : "taskkill_failed" }),
      durationMs: performance.now() - begun
    }
  })

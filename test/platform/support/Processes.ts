/** Helpers for tests with real processes. */
import * as Effect from "effect/Effect"
import { spawn, type ChildProcess } from "node:child_process"
import { randomUUID } from "node:crypto"
import * as path from "node:path"
import type { Readable } from "node:stream"
import { GenerationId } from "../../../src/base/Ids.ts"
import type { SpawnPlan } from "../../../src/platform/ProcessTree.ts"
import * as Proc from "../../../src/platform/Proc.ts"

const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname)

/** The child of many bad ends. */
export const treeScript = path.join(here, "../../support/servers/process-tree.sh")

/** A plan that runs the script in a mode. */
export const planFor = (mode: string, given: Partial<SpawnPlan> = {}): SpawnPlan => ({
  file: "/bin/sh",
  args: [treeScript, mode],
  cwd: "/",
  env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
  generation: GenerationId(randomUUID()),
  graceMs: 200,
  ...given
})

/** Ends when the condition holds; the test's own limit is the only other end. */
export const eventually = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.delay(eventually(holds), "5 millis")))

/** The next `count` lines of a stream. */
export const lines = (stream: Readable, count: number): Effect.Effect<ReadonlyArray<string>> =>
  Effect.async((resume) => {
    let text = ""
    const onData = (chunk: Buffer): void => {
      text += chunk.toString()
      const all = text.split("\n")
      if (all.length <= count) return
      stream.off("data", onData)
      stream.pause()
      const rest = all.slice(count).join("\n")
      if (rest !== "") stream.unshift(Buffer.from(rest))
      resume(Effect.succeed(all.slice(0, count)))
    }
    stream.on("data", onData)
    stream.resume()
  })

/** Whether a process lives; zombies do not. */
export const lives = (pid: number): boolean => {
  const entry = Proc.readStat(pid)
  return entry !== undefined && Proc.isAlive(entry)
}

/** Live processes that carry a generation's marker. */
export const carriers = (generation: string): ReadonlyArray<number> =>
  Proc.list()
    .filter((entry) => Proc.isAlive(entry) && Proc.environmentHas(entry.pid, `SIGIL_GENERATION=${generation}`))
    .map((entry) => entry.pid)

/** Kills one process that this test started, if it is still there. */
export const killQuietly = (pid: number): void => {
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // Gone.
  }
}

/** A plain child of the test that is killed with the scope. */
export const child = (file: string, args: ReadonlyArray<string>, env: Record<string, string> = {}) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      spawn(file, args, { stdio: ["pipe", "pipe", "pipe"], env: { PATH: process.env["PATH"] ?? "", ...env } })
    ),
    (started) =>
      Effect.sync(() => {
        started.kill("SIGKILL")
      })
  )

/** The end of a child and all it printed. */
export const outcome = (started: ChildProcess) =>
  Effect.async<{
    readonly code: number | null
    readonly signal: string | null
    readonly out: string
    readonly err: string
  }>((resume) => {
    let out = ""
    let err = ""
    started.stdout?.on("data", (chunk: Buffer) => {
      out += chunk.toString("latin1")
    })
    started.stderr?.on("data", (chunk: Buffer) => {
      err += chunk.toString("latin1")
    })
    started.once("close", (code, signal) => resume(Effect.succeed({ code, signal, out, err })))
  })

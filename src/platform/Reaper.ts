/**
 * Ends the servers of a host that was killed (spec section 7, last resort).
 *
 * A host that gets SIGKILL runs no finalizer. So one small `sh` per host, in a session of its own, holds the
 * read end of a pipe; when the host dies by any cause the pipe ends and the shell kills what the host had not
 * withdrawn (`ReaperScript.ts`). It starts with the first registration, ignores the terminal's signals, holds
 * neither the host's output nor its event loop, has an environment without any marker (or another host's sweep
 * would take it), and leaves by itself when the host ends well.
 *
 * Servers work without it: a reaper that cannot start, or keeps dying, only shows in `status`.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type ChildProcess, spawn } from "node:child_process"
import type { GenerationId } from "../base/Ids.ts"
import { reaperScript } from "./ReaperScript.ts"

/** How often a reaper that died is started again. */
const MAX_STARTS = 3
const FALLBACK_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"

/**
 * `idle`: nothing to guard yet. `running`: it guards. `failed`: it cannot be started or keeps dying; a killed
 * host would leave servers behind. `none`: this system or composition has no reaper.
 */
export type ReaperStatus = "idle" | "running" | "failed" | "none"

/** Keeps the list of trees that must not outlive the host. All members are synchronous and never throw. */
export class Reaper extends Context.Tag("sigil/platform/Reaper")<
  Reaper,
  {
    /** A tree of this generation is about to be started. Replaced by `register`, undone by `retract`. */
    readonly announce: (generation: GenerationId) => void
    /** The announced tree did not come to be. */
    readonly retract: (generation: GenerationId) => void
    /** The tree has this leader. `startTime` in clock ticks after boot, absent where there is no /proc. */
    readonly register: (pid: number, startTime: number | undefined, generation: GenerationId) => void
    /** The tree is confirmed gone. */
    readonly withdraw: (pid: number, generation: GenerationId) => void
    /** For doctor. */
    readonly status: () => ReaperStatus
    /** Pid of the shell while it runs. */
    readonly pid: () => number | undefined
  }
>() {}

interface Entry {
  readonly generation: GenerationId
  readonly pid?: number
  readonly startTime?: number | undefined
}

const keyOf = (entry: Entry): string => `${entry.generation} ${entry.pid ?? ""}`.trimEnd()
const lineOf = (entry: Entry): string =>
  entry.pid === undefined ? `+ ${keyOf(entry)}\n` : `+ ${keyOf(entry)} ${entry.startTime ?? 0}\n`

/** A reaper and the way to let it go. */
const make = (): { readonly service: Reaper["Type"]; readonly close: () => void } => {
  const entries = new Map<string, Entry>()
  let child: ChildProcess | undefined
  let starts = 0
  let closed = false
  let failed = false

  const say = (line: string): void => {
    if (child?.stdin?.writable === true) child.stdin.write(line)
  }
  const lost = (mine: ChildProcess): void => {
    if (child !== mine) return
    child = undefined
    if (closed) return
    if (starts < MAX_STARTS && entries.size > 0) launch()
    else failed = starts >= MAX_STARTS
  }
  const launch = (): void => {
    starts += 1
    try {
      const started = spawn("/bin/sh", ["-c", reaperScript, "sigil-reaper"], {
        cwd: "/",
        env: { PATH: process.env["PATH"] ?? FALLBACK_PATH, LC_ALL: "C" },
        stdio: ["pipe", "ignore", "ignore"],
        detached: true
      })
      started.on("error", () => {
        failed = true
        if (child === started) child = undefined
      })
      if (started.pid === undefined) {
        failed = true
        return
      }
      child = started
      started.once("exit", () => lost(started))
      started.stdin.on("error", () => {})
      started.unref()
      // A pipe is a socket of Node, which can be told not to hold the event loop.
      if ("unref" in started.stdin && typeof started.stdin.unref === "function") started.stdin.unref()
      for (const entry of entries.values()) say(lineOf(entry))
    } catch {
      failed = true
    }
  }
  const add = (entry: Entry): void => {
    if (closed) return
    entries.delete(entry.generation)
    entries.set(keyOf(entry), entry)
    if (child === undefined && !failed) launch()
    else say(lineOf(entry))
  }
  const remove = (entry: Entry): void => {
    if (entries.delete(keyOf(entry))) say(`- ${keyOf(entry)}\n`)
  }

  return {
    service: {
      announce: (generation) => add({ generation }),
      retract: (generation) => remove({ generation }),
      register: (pid, startTime, generation) => add({ generation, pid, startTime }),
      withdraw: (pid, generation) => remove({ generation, pid }),
      status: () => (failed ? "failed" : child === undefined ? "idle" : "running"),
      pid: () => child?.pid
    },
    close: () => {
      closed = true
      child?.stdin?.end()
    }
  }
}

/** Registers nothing: Windows, and compositions that want no second process. */
export const layerNone: Layer.Layer<Reaper> = Layer.succeed(Reaper, {
  announce: () => {},
  retract: () => {},
  register: () => {},
  withdraw: () => {},
  status: () => "none",
  pid: () => undefined
})

/** One shell per layer, started with the first registration; it leaves when the layer closes. */
export const layer: Layer.Layer<Reaper> =
  process.platform === "win32"
    ? layerNone
    : Layer.scoped(
        Reaper,
        Effect.map(
          Effect.acquireRelease(Effect.sync(make), (reaper) => Effect.sync(reaper.close)),
          (reaper) => reaper.service
        )
      )

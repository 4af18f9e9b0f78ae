/**
 * The end of a process tree on Unix (spec section 7, R section 3.9).
 *
 * Close stdin, SIGTERM to the group, SIGKILL to the group, each after a grace; then, on Linux, a sweep of what
 * left the group, found by session and by marker. Every wait ends the moment its condition holds: a server that
 * leaves on end of input costs its own exit and one reading of /proc. The waits are real time, not the Effect
 * Clock: a process does not obey a test's clock, and a finalizer must be bounded under any clock.
 *
 * In a PID namespace or a sandbox the child is only the launcher, whose death kills all behind it at once. So SIGTERM goes to
 * everything but the launcher, and the server has its grace; SIGKILL goes to the group, launcher included.
 *
 * A pid is reused once nobody holds it as process, group or session. So a group is signalled only while it has
 * live members and nothing else sits on the leader's number.
 */
import * as Effect from "effect/Effect"
import type { Readable, Writable } from "node:stream"
import { SECOND_MS } from "../base/Units.ts"
import type { CleanupReport, CleanupStep, Survivor } from "./CleanupReport.ts"
import * as Proc from "./Proc.ts"

/** Longest grace a declaration may ask for (spec section 7). */
export const MAX_GRACE_MS = 10 * SECOND_MS
/** The whole termination is bounded by the grace plus this (spec section 7). */
export const CLEANUP_BOUND_MS = 4 * SECOND_MS
/** Longest wait after SIGTERM: what the bound leaves after the steps below. */
const TERM_WAIT_MS = 2_500
/** Wait for SIGKILL to take effect. */
const KILL_WAIT_MS = 500
/** Time for all rounds of the sweep. */
const SWEEP_WAIT_MS = 800
const SWEEP_ROUNDS = 5
/** How long members of the group may outlive a leader that left by itself before they get SIGTERM. */
const LINGER_MS = 100
/** Time for the last bytes of stdout and stderr to be read once nobody writes any more. */
const DRAIN_WAIT_MS = 100
/** Pauses between looks at processes that are not our children and send no event; the last one repeats. */
const POLL_PAUSES_MS = [1, 2, 4, 8, 16, 25]

/** A tree to end. */
export interface Target {
  /** The child; it leads its own session and group. */
  readonly pid: number
  /** Start time of the child in ticks; absent without /proc. */
  readonly startTime: number | undefined
  /** `NAME=value` that all its processes carry. */
  readonly marker: string
  readonly graceMs: number
  /** Whether the child is a launcher (`Launcher.ts`). */
  readonly launched: boolean
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** Whether the child has been reaped. */
  readonly hasExited: () => boolean
  /** Whether the group was seen without live members after the child's end; then its number is not ours any more. */
  readonly groupIsGone: () => boolean
  /** Calls back once when the child is reaped; returns the way to forget the callback. */
  readonly onExit: (listener: () => void) => () => void
}

/** Whether the group has a live member. Zombies answer to signal 0 but do not count. */
export const groupIsAlive = (pid: number): boolean => {
  if (signalGroup(pid, 0) === "gone") return false
  if (!Proc.available) return true
  const members = Proc.list().filter((entry) => entry.group === pid)
  if (members.some(Proc.isAlive)) return true
  // No member to be seen: either it left in between, or /proc hides it from us; signal 0 knows.
  return members.length === 0 && signalGroup(pid, 0) !== "gone"
}

type Signalled = "sent" | "gone" | "refused"

const signalGroup = (pid: number, signal: NodeJS.Signals | 0): Signalled => signalTo(-pid, signal)

const signalTo = (pid: number, signal: NodeJS.Signals | 0): Signalled => {
  try {
    process.kill(pid, signal)
    return "sent"
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ESRCH" ? "gone" : "refused"
  }
}

/** SIGTERM for what a launcher started: a server may have left the launcher's group without ill will. */
const termLaunched = (target: Target): Signalled => {
  const sent = liveProcesses(target, Proc.read())
    .filter((entry) => entry.pid !== target.pid)
    .map((entry) => signalTo(entry.pid, "SIGTERM"))
  return sent.includes("sent") ? "sent" : sent.includes("refused") ? "refused" : "gone"
}

/** Live processes of the tree, wherever they went. */
export const liveProcesses = (
  target: Pick<Target, "pid" | "startTime" | "marker">,
  { all, environmentHas }: Proc.Reading
): ReadonlyArray<Proc.ProcessStat> => {
  const since = target.startTime ?? 0
  const holder = all.find((entry) => entry.pid === target.pid)
  // A stranger on the leader's number means that group and session of that number are the stranger's.
  const numberIsOurs = holder === undefined || target.startTime === undefined || holder.startTime === target.startTime
  return all.filter((entry) => {
    // A descendant cannot be older than its ancestor; this spares reading most environments.
    if (!Proc.isAlive(entry) || entry.startTime < since || entry.pid === process.pid) return false
    if (numberIsOurs && (entry.pid === target.pid || entry.session === target.pid || entry.group === target.pid)) {
      return true
    }
    return environmentHas(entry.pid, target.marker)
  })
}

/** Polls until the condition holds; false when the time is over first. */
const until = (ms: number, holds: () => boolean): Effect.Effect<boolean> =>
  Effect.async((resume) => {
    const end = performance.now() + ms
    let turn = 0
    const look = (): void => {
      if (holds()) return resume(Effect.succeed(true))
      const left = end - performance.now()
      if (left <= 0) return resume(Effect.succeed(false))
      const pause = POLL_PAUSES_MS[Math.min(turn++, POLL_PAUSES_MS.length - 1)] ?? 25
      setTimeout(look, Math.min(pause, left))
    }
    look()
  })

/** Waits for an event with a limit; false when the time is over first. */
const event = (ms: number, listen: (happened: () => void) => () => void): Effect.Effect<boolean> =>
  Effect.async((resume) => {
    let forget: () => void = () => {}
    const timer = setTimeout(() => {
      forget()
      resume(Effect.succeed(false))
    }, ms)
    forget = listen(() => {
      clearTimeout(timer)
      resume(Effect.succeed(true))
    })
  })

const exitWithin = (target: Target, ms: number): Effect.Effect<boolean> =>
  target.hasExited() ? Effect.succeed(true) : event(ms, target.onExit)

/** A cheap repeated look: only the members seen alive last time, and the whole of /proc when those are gone. */
const makeGroupWatch = (target: Target): (() => boolean) => {
  let known: ReadonlyArray<Proc.ProcessStat> = []
  return () => {
    if (target.groupIsGone()) return true
    if (known.some((entry) => Proc.isSameAlive(entry.pid, entry.startTime))) return false
    if (signalGroup(target.pid, 0) === "gone") return true
    if (!Proc.available) return false
    const holder = Proc.readStat(target.pid)
    if (holder !== undefined && target.startTime !== undefined && holder.startTime !== target.startTime) return true
    known = Proc.list().filter((entry) => entry.group === target.pid && Proc.isAlive(entry))
    return known.length === 0 && !groupIsAlive(target.pid)
  }
}

/**
 * Waits until child and group are gone. After the child's own exit the rest of the group gets `lingerMs`.
 */
const goneWithin = (target: Target, ms: number, lingerMs: number): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    const end = performance.now() + ms
    return Effect.flatMap(exitWithin(target, ms), (exited) =>
      exited
        ? until(Math.max(Math.min(lingerMs, end - performance.now()), 0), makeGroupWatch(target))
        : Effect.succeed(false)
    )
  })

/**
 * Processes that may be the tree's and cannot be told from others: their environment is hidden from us, and they began,
 * in a session of their own, after the server, for this user, where sigil itself runs. They are named, never ended:
 * one of them may be the user's own (R section 3.9: what cannot be read counts as alive).
 */
const undecided = (target: Target, { all, isHidden }: Proc.Reading): ReadonlyArray<Proc.ProcessStat> => {
  const user = process.getuid?.()
  const since = target.startTime
  if (user === undefined || since === undefined) return []
  const isNew = (session: number): boolean => {
    const leader = all.find((entry) => entry.pid === session)
    return leader === undefined || leader.startTime >= since
  }
  let ours: string | undefined
  return all.filter((entry) => {
    if (!Proc.isAlive(entry) || entry.startTime < since || entry.pid === process.pid) return false
    if (!isNew(entry.session) || !isHidden(entry.pid) || Proc.realUser(entry.pid) !== user) return false
    ours ??= Proc.controlGroup("self")
    return Proc.controlGroup(entry.pid) === ours
  })
}

/** Live processes of the tree, from a reading that others may share. */
const look = (
  target: Target
): Effect.Effect<{
  readonly left: ReadonlyArray<Proc.ProcessStat>
  readonly undecided: ReadonlyArray<Proc.ProcessStat>
}> =>
  Effect.async((resume) => {
    Proc.readSoon((reading) =>
      resume(
        Effect.sync(() => {
          const left = liveProcesses(target, reading)
          const known = new Set(left.map(({ pid }) => pid))
          return { left, undecided: undecided(target, reading).filter(({ pid }) => !known.has(pid)) }
        })
      )
    )
  })

interface Swept {
  readonly survivors: ReadonlyArray<Survivor>
  readonly undecided: ReadonlyArray<Survivor>
}

/** Kills what is left outside the group; the processes still alive at the end. */
const sweep = (target: Target, killed: () => void): Effect.Effect<Swept> =>
  Effect.gen(function* () {
    const end = performance.now() + SWEEP_WAIT_MS
    let seen = yield* look(target)
    for (let round = 0; seen.left.length > 0 && round < SWEEP_ROUNDS && performance.now() < end; round++) {
      killed()
      const struck = seen.left
      for (const entry of struck) signalTo(entry.pid, "SIGKILL")
      yield* until(Math.max(Math.min(SWEEP_WAIT_MS / 2, end - performance.now()), 1), () =>
        struck.every((entry) => !Proc.isSameAlive(entry.pid, entry.startTime))
      )
      seen = yield* look(target)
    }
    const named = (entries: ReadonlyArray<Proc.ProcessStat>): ReadonlyArray<Survivor> =>
      entries.map(({ command, pid }) => ({ pid, command }))
    return { survivors: named(seen.left), undecided: named(seen.undecided) }
  })

/** The last words: what the pipes still hold reaches its listeners before the pipes are destroyed. */
const drained = (stream: Readable): Effect.Effect<boolean> =>
  stream.closed || stream.readableEnded
    ? Effect.succeed(true)
    : event(DRAIN_WAIT_MS, (happened) => {
        stream.once("close", happened)
        return () => stream.off("close", happened)
      })

/** Ends the tree. Never fails; takes at most the grace plus `CLEANUP_BOUND_MS`. */
export const terminate = (target: Target): Effect.Effect<CleanupReport> =>
  Effect.gen(function* () {
    const begun = performance.now()
    const graceMs = Math.min(Math.max(target.graceMs, 0), MAX_GRACE_MS)
    const steps: Array<CleanupStep> = []
    let refused = false
    const strike = (signal: NodeJS.Signals, step: CleanupStep): void => {
      const gentle = target.launched && signal === "SIGTERM"
      const result = gentle ? termLaunched(target) : signalGroup(target.pid, signal)
      refused = result === "refused"
      if (result !== "gone") steps.push(step)
    }

    // A server that is blocked on a full stdout never sees the end of its input.
    target.stdout.resume()
    target.stderr.resume()
    if (!target.hasExited()) steps.push("stdin_closed")
    target.stdin.end()

    let gone = yield* goneWithin(target, graceMs, Math.min(LINGER_MS, graceMs))
    if (!gone) {
      strike("SIGTERM", "sigterm")
      const wait = Math.min(graceMs, TERM_WAIT_MS)
      gone = yield* goneWithin(target, wait, wait)
    }
    if (!gone) {
      strike("SIGKILL", "sigkill")
      gone = yield* goneWithin(target, KILL_WAIT_MS, KILL_WAIT_MS)
    }
    const swept: Swept = Proc.available
      ? yield* sweep(target, () => steps.includes("sweep") || steps.push("sweep"))
      : { survivors: [], undecided: [] }
    const survivors = [...swept.survivors, ...swept.undecided]
    // The sweep may have ended what the group signal could not.
    if (!gone) gone = yield* goneWithin(target, 1, 1)

    yield* Effect.all([drained(target.stdout), drained(target.stderr)], { concurrency: "unbounded" })
    target.stdin.destroy()
    target.stdout.destroy()
    target.stderr.destroy()

    const complete = gone && survivors.length === 0
    const reason = complete
      ? undefined
      : refused
        ? "signal_refused"
        : swept.survivors.length > 0
          ? "survivors"
          : swept.undecided.length > 0
            ? "environment_hidden"
            : "unconfirmed"
    return {
      complete,
      survivors,
      steps,
      ...(reason === undefined ? {} : { reason }),
      durationMs: performance.now() - begun
    }
  })

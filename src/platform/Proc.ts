/**
 * Reader of Linux /proc: who is alive, in which group and session, and with which environment.
 *
 * Everything is read synchronously, because an answer about processes is worth something only at the moment it
 * is given; one pass over a hundred processes takes a few milliseconds. Entries vanish while they are read:
 * that is an absent entry, never an error. Where there is no /proc every answer is empty.
 */
import * as fs from "node:fs"

/** One line of /proc/PID/stat, as far as it matters here (proc(5)). */
export interface ProcessStat {
  readonly pid: number
  /** The kernel's short name, at most 15 bytes. */
  readonly command: string
  /** One letter: `R`, `S`, `D`, `T`, `Z`, `X` and others. */
  readonly state: string
  readonly parent: number
  readonly group: number
  readonly session: number
  /** Clock ticks after boot. With the pid it identifies a process, because pids are reused. */
  readonly startTime: number
}

/** Longest stat line that is read; real ones have a few hundred bytes. */
const STAT_BYTES = 4096
const buffer = Buffer.allocUnsafe(STAT_BYTES)

/** Whether this system has a /proc of the Linux kind. */
export const available: boolean = process.platform === "linux" && fs.existsSync("/proc/self/stat")

/** Reads the fields of a stat line; `undefined` when it is not one. The name may hold spaces and parentheses. */
export const parseStat = (line: string): ProcessStat | undefined => {
  const open = line.indexOf("(")
  const close = line.lastIndexOf(")")
  if (open < 2 || close < open) return undefined
  // After the name: state is field 3 of the line, the start time field 22.
  const rest = line.slice(close + 2).split(" ")
  const state = rest[0]
  const numbers = [line.slice(0, open - 1), rest[1], rest[2], rest[3], rest[19]].map((text) =>
    text !== undefined && /^-?\d+$/.test(text) ? Number(text) : Number.NaN
  )
  const [pid, parent, group, session, startTime] = numbers
  if (state === undefined || !/^[A-Za-z]$/.test(state)) return undefined
  if (pid === undefined || parent === undefined || group === undefined || session === undefined) return undefined
  if (startTime === undefined || numbers.some((value) => Number.isNaN(value))) return undefined
  return { pid, command: line.slice(open + 1, close), state, parent, group, session, startTime }
}

/** The present state of one process; `undefined` when there is none. */
export const readStat = (pid: number): ProcessStat | undefined => {
  let file: number
  try {
    file = fs.openSync(`/proc/${pid}/stat`, "r")
  } catch {
    return undefined
  }
  try {
    return parseStat(buffer.toString("utf8", 0, fs.readSync(file, buffer, 0, STAT_BYTES, 0)))
  } catch {
    return undefined
  } finally {
    fs.closeSync(file)
  }
}

/** Every process that can be seen now, zombies included. */
export const list = (): ReadonlyArray<ProcessStat> => {
  if (!available) return []
  const found: Array<ProcessStat> = []
  for (const name of fs.readdirSync("/proc")) {
    const first = name.charCodeAt(0)
    if (first < 48 || first > 57) continue
    const entry = readStat(Number(name))
    if (entry !== undefined) found.push(entry)
  }
  return found
}

/** Zombies and dead entries have ended; only their parent has not taken notice yet. */
export const isAlive = (entry: ProcessStat): boolean =>
  entry.state !== "Z" && entry.state !== "X" && entry.state !== "x"

/** Whether this very process still lives: same pid, same start time, not a zombie. */
export const isSameAlive = (pid: number, startTime: number): boolean => {
  const entry = readStat(pid)
  return entry !== undefined && entry.startTime === startTime && isAlive(entry)
}

/** The command line of a process, its words joined by spaces; empty when unknown. It may hold secrets. */
export const commandLine = (pid: number): string => {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").join(" ").trimEnd()
  } catch {
    return ""
  }
}

/** The bytes of an environment; `refused` when the system does not show it, `gone` when there is none any more. */
const environmentOf = (pid: number): Buffer | "refused" | "gone" => {
  try {
    return fs.readFileSync(`/proc/${pid}/environ`)
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined
    return code === "EACCES" || code === "EPERM" ? "refused" : "gone"
  }
}

const holds = (block: Buffer | string, assignment: string): boolean => {
  if (typeof block === "string") return false
  for (let at = block.indexOf(assignment); at >= 0; at = block.indexOf(assignment, at + 1)) {
    const end = at + assignment.length
    if ((at === 0 || block[at - 1] === 0) && (end === block.length || block[end] === 0)) return true
  }
  return false
}

/** Whether the environment of a process holds `assignment` (`NAME=value`) as a whole entry. */
export const environmentHas = (pid: number, assignment: string): boolean => holds(environmentOf(pid), assignment)

/** All processes at one moment; an environment is read when it is first asked for, and once. */
export interface Reading {
  readonly all: ReadonlyArray<ProcessStat>
  readonly environmentHas: (pid: number, assignment: string) => boolean
  /** Whether the system hides the environment of a process from us, as it does for `ssh-agent` or a setuid program. */
  readonly isHidden: (pid: number) => boolean
}

/** Reads now. */
export const read = (): Reading => {
  const blocks = new Map<number, Buffer | "refused" | "gone">()
  const blockOf = (pid: number): Buffer | "refused" | "gone" => {
    const known = blocks.get(pid)
    if (known !== undefined) return known
    const block = environmentOf(pid)
    blocks.set(pid, block)
    return block
  }
  return {
    all: list(),
    environmentHas: (pid, assignment) => holds(blockOf(pid), assignment),
    isHidden: (pid) => blockOf(pid) === "refused"
  }
}

/** The real user of a process; `undefined` when it is gone. */
export const realUser = (pid: number): number | undefined => {
  try {
    const uid = /^Uid:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]
    return uid === undefined ? undefined : Number(uid)
  } catch {
    return undefined
  }
}

/** The control groups of a process as one text; empty when it is gone. */
export const controlGroup = (pid: number | "self"): string => {
  try {
    return fs.readFileSync(`/proc/${pid}/cgroup`, "utf8")
  } catch {
    return ""
  }
}

let waiting: Array<(reading: Reading) => void> = []

/**
 * Reads in the next turn of the event loop, once for all who asked by then: fifty servers that end together cost one
 * reading instead of fifty. It never begins before the question, so what is asked after an exit sees it.
 */
export const readSoon = (take: (reading: Reading) => void): void => {
  waiting.push(take)
  if (waiting.length > 1) return
  setImmediate(() => {
    const takers = waiting
    waiting = []
    const reading = read()
    for (const taker of takers) taker(reading)
  })
}

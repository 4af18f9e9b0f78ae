/**
 * Processes of a row that still live, found without any help of sigil: by the marker that every process of a
 * generation carries, by the row's own variable, and by the pids that the server reported.
 */
import * as fs from "node:fs"
import type { Fact } from "./Report.ts"

/** Set for the servers of one row. */
export const ROW_VARIABLE = "SIGIL_FAULT_ROW"

/** Zombies have ended; only their parent has not taken notice yet. */
const isAlive = (pid: number): boolean => {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8")
    return !/^[ZXx]/.test(stat.slice(stat.lastIndexOf(")") + 2))
  } catch {
    return false
  }
}

const environmentOf = (pid: number): ReadonlyArray<string> => {
  try {
    return fs.readFileSync(`/proc/${pid}/environ`, "utf8").split("\0")
  } catch {
    return []
  }
}

/** The pids that are left of a row. */
export const survivorsOf = (row: string, facts: ReadonlyArray<Fact>): ReadonlyArray<number> => {
  const marks = new Set([
    `${ROW_VARIABLE}=${row}`,
    ...facts.flatMap(({ generation }) => (generation === undefined ? [] : [`SIGIL_GENERATION=${generation}`]))
  ])
  const reported = new Set(facts.flatMap(({ pid }) => (pid === undefined ? [] : [pid])))
  return fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter(
      (pid) => isAlive(pid) && (reported.has(pid) || environmentOf(pid).some((assignment) => marks.has(assignment)))
    )
}

/** Ends what sigil left, so that one broken row does not disturb the next. */
export const endAll = (pids: ReadonlyArray<number>): void => {
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL")
    } catch {
      // Gone in between.
    }
  }
}

// Finds processes by a variable of their environment, without any help of sigil. Linux only.
import { readdirSync, readFileSync } from "node:fs"

/** Whether a process lives and its environment holds `assignment`. That of a zombie is empty. */
export const carries = (pid, assignment) => {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(assignment)
  } catch {
    return false
  }
}

/** The pids of all live processes that carry it. */
export const marked = (assignment) =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => carries(pid, assignment))

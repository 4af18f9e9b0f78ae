/** A server that leaves a process where sweeps do not look, and how a test finds that process. */
import * as fs from "node:fs"
import { isAlive, odd } from "./Command.ts"

/** Live processes whose command line holds the text; words in it are parted by NUL. */
export const running = (text: string): ReadonlyArray<number> =>
  (fs.existsSync("/proc") ? fs.readdirSync("/proc") : [])
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return isAlive(pid) && fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(text)
      } catch {
        return false
      }
    })

/**
 * A server with a companion: double-forked, own session, empty environment, deaf to TERM. The companion sleeps for
 * `seconds`, a number that no other process has.
 */
export const hidingServer = (): {
  readonly seconds: string
  readonly command: string
  readonly args: ReadonlyArray<string>
} => {
  const seconds = `300.${Math.floor(Math.random() * 1e9)}`
  const companion = `(setsid env -i /bin/sh -c 'trap "" TERM; exec sleep "$0"' ${seconds} >/dev/null 2>&1 &)`
  return {
    seconds,
    command: "/bin/sh",
    args: ["-c", `${companion}; exec "$0" "$@"`, process.execPath, odd, "plain"]
  }
}

/** Where a pid means the same process, for locks that name their holder. */
import * as fs from "node:fs"
import * as os from "node:os"

const readOrEmpty = (file: string): string => {
  try {
    return fs.readFileSync(file, "utf8").trim()
  } catch {
    return ""
  }
}

let known: string | undefined

/** Host name, boot and PID namespace, as one line of text; read once, when first asked for. */
export const hostIdentity = (): string => {
  if (known !== undefined) return known
  let namespace = ""
  try {
    namespace = fs.readlinkSync("/proc/self/ns/pid")
  } catch {
    // No /proc: the host name must do.
  }
  known = [os.hostname(), readOrEmpty("/proc/sys/kernel/random/boot_id"), namespace].join("|")
  return known
}

/**
 * What lies inside a plugin's directory (R section 1.10): a plugin brings its own program and runs in its own place.
 *
 * A path that counts from the directory, or that is written with `${PLUGIN_ROOT}`, may not lead out of it. A bare
 * name is looked up along PATH, and an absolute path is taken as it is (R section 3.4).
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { isInside } from "../platform/Containment.ts"

const rootTemplate = /\$\{PLUGIN_ROOT(?::-[^}]*)?\}/g

/**
 * Whether a command stays in the directory `root`, by its text alone. `filled` is the command with its variables;
 * without it, a command that holds other variables is not judged yet.
 */
export const commandStays = (root: string, written: string, filled?: string): boolean => {
  const withRoot = written.replace(rootTemplate, () => root)
  if (filled === undefined && withRoot.includes("${")) return true
  const command = filled ?? withRoot
  const fromRoot = withRoot !== written
  if (!fromRoot && (path.isAbsolute(command) || !/[/\\]/.test(command))) return true
  return isInside(path.resolve(root, command), root)
}

/** Whether a working directory stays in the directory `root`, links resolved as far as there is something. */
export const directoryStays = (root: string, cwd: string): boolean => {
  let existing = path.resolve(root, cwd)
  const missing: Array<string> = []
  for (;;) {
    try {
      return isInside(path.join(fs.realpathSync(existing), ...missing), root)
    } catch {
      if (path.dirname(existing) === existing) return false
      missing.unshift(path.basename(existing))
      existing = path.dirname(existing)
    }
  }
}

/**
 * The process trees of this process that have not been confirmed gone.
 *
 * It is the one piece of lasting module state in the room: the last resort of `Main` must work without a runtime, in a
 * signal handler, at the moment before exit. It is separate from `ProcessTree` so that a program that starts no
 * server does not load `node:child_process`.
 */

/** What the last resort needs to know of a tree. */
export interface LiveTree {
  /** Leader of the process group. */
  readonly pid: number
  /** False once the group is known to have no members: its number may belong to somebody else. */
  readonly mayKill: () => boolean
}

const trees = new Set<LiveTree>()

/** Remembers a tree until `forget`. */
export const remember = (tree: LiveTree): void => {
  trees.add(tree)
}

/** Forgets a tree that is gone. */
export const forget = (tree: LiveTree): void => {
  trees.delete(tree)
}

/** Sends SIGKILL to every live group, at once and without waiting. What left its group is left to the reaper. */
export const killAllNow = (): void => {
  for (const tree of trees) {
    if (!tree.mayKill()) continue
    try {
      process.kill(process.platform === "win32" ? tree.pid : -tree.pid, "SIGKILL")
    } catch {
      // Already gone.
    }
  }
}

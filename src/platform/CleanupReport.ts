/**
 * What ending a process tree (or any generation) came to.
 *
 * A report is a value, not an error: finalizers cannot fail, and whoever closed the scope decides what an
 * incomplete cleanup means (spec section 7: never success). `complete` is true only when the end was verified.
 */

/** One thing that termination had to do, in the order it was done. */
export type CleanupStep = "stdin_closed" | "sigterm" | "sigkill" | "sweep"

/** A process that could not be confirmed gone. */
export interface Survivor {
  readonly pid: number
  /** The kernel's short name of the process; arguments are left out because they may hold secrets. */
  readonly command: string
}

/** How a cleanup went. */
export interface CleanupReport {
  /** Whether everything is known to be gone. */
  readonly complete: boolean
  /** Processes that were still alive at the end; may be empty although `complete` is false. */
  readonly survivors: ReadonlyArray<Survivor>
  /**
   * What was needed. `sweep` appears only when the sweep found processes outside the group to kill; looking for
   * them happens on every close.
   */
  readonly steps: ReadonlyArray<CleanupStep>
  /**
   * Why it is incomplete: `survivors`, `signal_refused`, `unconfirmed`, `taskkill_failed`, or `environment_hidden`: the
   * named processes may be the server's or somebody else's, and the system does not let us tell.
   */
  readonly reason?: string
  readonly durationMs: number
}

/** The report of something that had nothing to clean up. */
export const nothingToClean: CleanupReport = { complete: true, survivors: [], steps: [], durationMs: 0 }

/** One report for several cleanups that ran side by side: the longest duration, every survivor, the first reason. */
export const combine = (reports: ReadonlyArray<CleanupReport>): CleanupReport => {
  const reason = reports.find((report) => report.reason !== undefined)?.reason
  return {
    complete: reports.every((report) => report.complete),
    survivors: reports.flatMap((report) => report.survivors),
    steps: [...new Set(reports.flatMap((report) => report.steps))],
    ...(reason === undefined ? {} : { reason }),
    durationMs: reports.reduce((longest, report) => Math.max(longest, report.durationMs), 0)
  }
}

/** The survivors as text for an error message: `node (412), sleep (413)`; empty when there are none. */
export const describeSurvivors = (report: CleanupReport): string =>
  report.survivors.map((survivor) => `${survivor.command} (${survivor.pid})`).join(", ")

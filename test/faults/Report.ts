/** What a hostile server tells the runner: facts appended to a file, and the wait for one of them. */
import * as fs from "node:fs"

/** One line of the report. */
export interface Fact {
  /** A process that was started. */
  readonly pid?: number
  /** The generation it belongs to, said by the server itself. */
  readonly generation?: string
  /** Started while the process of another start of the same generation was still there. */
  readonly beside?: number
  /** The held call has arrived. */
  readonly held?: boolean
  /** The fault of an idle server is over. */
  readonly done?: boolean
}

/** A report that is being written. */
export interface Report {
  readonly facts: () => ReadonlyArray<Fact>
  /** Resolves once a fact of this kind stands there; `stop` ends the wait. */
  readonly until: (kind: keyof Fact, stop: AbortSignal) => Promise<void>
}

/** Opens the report of one row; the file is made anew. */
export const openReport = (file: string): Report => {
  fs.writeFileSync(file, "")
  const facts = (): ReadonlyArray<Fact> =>
    fs
      .readFileSync(file, "utf8")
      .split("\n")
      // The last line may not be whole yet.
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Fact)
  return {
    facts,
    until: (kind, stop) =>
      new Promise((resolve) => {
        const watcher = fs.watch(file)
        const end = (): void => {
          watcher.close()
          resolve()
        }
        const look = (): void => {
          if (facts().some((fact) => fact[kind] !== undefined)) end()
        }
        watcher.on("change", look)
        stop.addEventListener("abort", end, { once: true })
        // It may have been written before the watch began.
        look()
      })
  }
}

/**
 * sigil with two real servers for one row: the hostile one and a good neighbour.
 *
 * The whole as a library user composes it, over real processes, with a home of its own. Every call is counted when it
 * is made and when it settles, and a successful answer is compared with the token of its own request.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Option from "effect/Option"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { isFailure } from "../../src/base/Failure.ts"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import * as Library from "../../src/runtime/Library.ts"
import * as Transports from "../../src/runtime/Transports.ts"
import type { Progress } from "../../src/server/Progress.ts"
import type { Generation } from "../../src/server/Generation.ts"
import { Registry, type ServerCleanup } from "../../src/server/Registry.ts"
import { headless } from "../../src/tools/Caller.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"
import { openReport, type Report } from "./Report.ts"
import { deadlinesOf, GRACE_MS, type Row } from "./Row.ts"
import { ROW_VARIABLE } from "./Survivors.ts"

/** Pause between two calls of the neighbour, ms. */
const NEIGHBOUR_PAUSE_MS = 3

/** How one start, call or end came out. */
export type Outcome =
  | { readonly kind: "ok"; readonly generation?: Generation; readonly token?: string }
  | {
      readonly kind: "error"
      readonly code: string
      readonly reason: string
      readonly text: string
      readonly details?: { readonly [key: string]: unknown }
    }
  /** It did not settle within its bound. */
  | { readonly kind: "hang" }

/** Counts of calls. */
export interface Tally {
  opened: number
  settled: number
  failed: number
  /** Answers and progress that belong to another request. */
  crossed: number
}

/** What one call is made with. */
export interface CallOptions {
  readonly boundMs: number
  readonly timeoutMs?: number
  readonly argumentBytes?: number
  readonly onProgress?: (progress: Progress) => void
}

/** sigil under test. */
export interface Host {
  readonly row: string
  readonly report: Report
  readonly tally: Tally
  readonly neighbour: Tally
  readonly start: (boundMs: number) => Promise<Outcome>
  readonly call: (tool: string, options: CallOptions) => Promise<Outcome>
  /** Ends every server; the reports, or that it did not come to an end. */
  readonly close: (boundMs: number) => Promise<ReadonlyArray<ServerCleanup> | "hang">
  /** Removes the home of the row. */
  readonly remove: () => void
}

/** The promise's value, or `hang` when the time is over first. */
export const within = async <A>(ms: number, promise: Promise<A>): Promise<A | "hang"> => {
  const timer = new AbortController()
  const late = pause(ms, "hang" as const, { signal: timer.signal }).catch(() => "hang" as const)
  try {
    return await Promise.race([promise, late])
  } finally {
    timer.abort()
  }
}

/** What an exit came to. */
export const outcomeOf = (exit: Exit.Exit<{ generation: Generation; token?: string }, unknown> | "hang"): Outcome => {
  if (exit === "hang") return { kind: "hang" }
  if (Exit.isSuccess(exit)) return { kind: "ok", ...exit.value }
  const failure = Option.getOrUndefined(Cause.failureOption(exit.cause))
  return isFailure(failure) && "reason" in failure
    ? {
        kind: "error",
        code: failure.code,
        reason: failure.reason,
        text: failure.text,
        ...(failure.details === undefined ? {} : { details: failure.details })
      }
    : { kind: "error", code: "defect", reason: "defect", text: Cause.pretty(exit.cause) }
}

/** Nothing counted yet. */
export const newTally = (): Tally => ({ opened: 0, settled: 0, failed: 0, crossed: 0 })

/** Opens sigil for one row; `server` is the path of the hostile server. Starts nothing but the neighbour's calls. */
export const open = async (row: Row, server: string): Promise<Host> => {
  const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-faults-")))
  const project = path.join(base, "project")
  fs.mkdirSync(project)
  const id = path.basename(base)
  const file = path.join(base, "report")
  const report = openReport(file)
  const { startMs, callMs } = deadlinesOf(row)
  const common = {
    command: process.execPath,
    env: { [ROW_VARIABLE]: id },
    trust: { approvalDefault: "allow" },
    shutdownGraceMs: GRACE_MS
  }
  const mcpServers = {
    hostile: {
      ...common,
      args: [server, row.stage, row.fault, file, ...(row.options ?? [])],
      // The start budget in ms is the common one; the call deadline follows in its own field.
      timeout: startMs,
      toolTimeoutSecs: callMs / 1_000,
      restart: "never",
      ...row.declaration
    },
    neighbour: { ...common, args: [server, "call", "good", "-"] }
  }
  const options = { mcpConfig: [JSON.stringify({ mcpServers })], strict: true }
  const runtime = ManagedRuntime.make(
    Library.layerWithTransport(options).pipe(
      Layer.provide(Transports.layerProcesses),
      Layer.provide(
        HostEnvironment.layerTest({
          variables: { PATH: process.env["PATH"] ?? "" },
          homeDirectory: base,
          cwd: project
        })
      )
    )
  )
  const pipeline = await runtime.runPromise(Pipeline)
  const registry = await runtime.runPromise(Registry)
  const tally = newTally()
  const neighbour = newTally()
  let calls = 0

  const call = async (name: string, tool: string, counts: Tally, given: CallOptions): Promise<Outcome> => {
    const token = `${id}-${name}-${(calls += 1)}`
    const filler = given.argumentBytes === undefined ? {} : { filler: "f".repeat(given.argumentBytes) }
    let settled = false
    const onProgress = (progress: Progress): void => {
      if (settled || (progress.message !== undefined && progress.message !== token)) counts.crossed += 1
      given.onProgress?.(progress)
    }
    const caller = given.onProgress === undefined ? headless("faults") : { ...headless("faults"), onProgress }
    const request = {
      server: name,
      tool,
      args: { token, ...filler },
      ...(given.timeoutMs === undefined ? {} : { timeoutMs: given.timeoutMs })
    }
    counts.opened += 1
    const made = runtime
      .runPromiseExit(
        Effect.map(pipeline.call(caller, request), ({ generation, result }) => ({
          generation,
          token: JSON.stringify(result["content"])
        }))
      )
      .then((exit) => {
        settled = true
        counts.settled += 1
        return exit
      })
    const outcome = outcomeOf(await within(given.boundMs, made))
    if (outcome.kind !== "ok") counts.failed += 1
    else if (outcome.token !== JSON.stringify([{ type: "text", text: token }])) counts.crossed += 1
    return outcome
  }

  const over = new AbortController()
  const visits = (async () => {
    while (!over.signal.aborted) {
      await call("neighbour", "echo", neighbour, { boundMs: 30_000 })
      await pause(NEIGHBOUR_PAUSE_MS)
    }
  })()
  // The neighbour is up before the fault: its own start is not what a row is about.
  const up = await runtime.runPromiseExit(registry.activate("neighbour"))
  if (Exit.isFailure(up)) neighbour.failed += 1

  return {
    row: id,
    report,
    tally,
    neighbour,
    start: async (boundMs) =>
      outcomeOf(
        await within(
          boundMs,
          runtime.runPromiseExit(Effect.map(registry.activate("hostile"), (generation) => ({ generation })))
        )
      ),
    call: (tool, given) => call("hostile", tool, tally, given),
    close: async (boundMs) => {
      over.abort()
      await visits
      const reports = await within(boundMs, runtime.runPromise(registry.closeAll))
      const disposed = await within(boundMs, runtime.dispose())
      return disposed === "hang" ? "hang" : reports
    },
    remove: () => fs.rmSync(base, { recursive: true, force: true })
  }
}

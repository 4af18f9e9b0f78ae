/**
 * Runs the program of this process and turns its outcome into the exit code.
 *
 * Own main instead of `NodeRuntime.runMain`, which ends with 0 after SIGINT, does not know SIGHUP and kills at
 * the second Ctrl-C without a word to the servers. Servers are in sessions of their own and never get the
 * terminal's signals, so finalizers must run on each of them.
 *
 * The first signal interrupts the program, its finalizers run, the exit code is 130, 143 or 129 (spec section
 * 1). A second one kills the live groups and leaves at once. A fault outside the program runs the same teardown
 * and exits 1. A reader of our output that went away ends the program quietly with 0. Output that was written
 * is delivered before the exit; a forgotten handle does not delay it.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import { catalogue } from "../base/Codes.ts"
import { SECOND_MS } from "../base/Units.ts"
import { safe } from "./DefectText.ts"
import { killAllNow } from "./LiveTrees.ts"

/** Exit codes after a signal: 128 plus its number. */
const signalCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const
const INTERRUPTED_CODE = 130
const DEFECT_CODE = 1
/** Longest wait for a reader of our output once somebody asked us to leave. */
const SIGNAL_FLUSH_MS = SECOND_MS
/** Keeps the process alive while the program waits for something that holds no handle. */
const KEEP_ALIVE_MS = 2 ** 31 - 1
/** The reader is gone: a closed pipe, or a terminal that was closed. */
const goneCodes: ReadonlyArray<string> = [
  "EPIPE",
  "EIO",
  "ECONNRESET",
  "ERR_STREAM_DESTROYED",
  "ERR_STREAM_WRITE_AFTER_END"
]

/** What main may be told. */
export interface MainOptions {
  /** Prints one line about a fault of the program itself, redacted; stderr when absent. */
  readonly onDefect?: (line: string) => void
}

const firstLine = (fault: unknown): string => {
  const text = fault instanceof Error ? `${fault.name}: ${fault.message}` : String(fault)
  return safe(text).split("\n")[0] ?? ""
}

/** A line about a fault that is not sigil's own: what, why, what to do, the code. */
const coded = (code: "SIGIL_OUTPUT_UNWRITABLE" | "SIGIL_OUT_OF_FILES", why: string): string =>
  `error: ${catalogue[code].summary} (${why})\nfix: ${catalogue[code].fix}\ncode: ${code} (sigil errors ${code})`

const outOfFiles = (fault: unknown): boolean =>
  fault instanceof Error && "code" in fault && (fault.code === "EMFILE" || fault.code === "ENFILE")

/** Ends when everything written to the stream is out, or cannot get out any more. */
const flushed = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => {
    if (stream.writableLength === 0 || stream.destroyed) return resolve()
    const done = (): void => resolve()
    stream.once("close", done)
    stream.once("error", done)
    stream.write("", done)
  })

/** Runs `program`; the process ends with the number it gives. */
export const runMain = (program: Effect.Effect<number>, options: MainOptions = {}): void => {
  const print = options.onDefect ?? ((line: string) => void process.stderr.write(`${line}\n`))
  const say = (line: string): void => {
    try {
      print(line)
    } catch {
      // The report of a fault must not become the next one.
    }
  }
  const report = (fault: unknown): void =>
    outOfFiles(fault)
      ? say(coded("SIGIL_OUT_OF_FILES", firstLine(fault)))
      : say(`sigil: a fault inside sigil: ${firstLine(fault)}`)

  let signalled: number | undefined
  let faulted = false
  let readerGone = false

  const interrupt = (): void => fiber.unsafeInterruptAsFork(FiberId.none)
  const onStreamError = (error: Error): void => {
    if ("code" in error && typeof error.code === "string" && goneCodes.includes(error.code)) readerGone = true
    else if (!faulted) {
      faulted = true
      say(coded("SIGIL_OUTPUT_UNWRITABLE", firstLine(error)))
    }
    interrupt()
  }
  process.stdout.on("error", onStreamError)
  process.stderr.on("error", onStreamError)
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (signalled !== undefined) {
        killAllNow()
        process.exit(signalled)
      }
      signalled = signalCodes[signal]
      interrupt()
    })
  }
  const onFault = (fault: unknown): void => {
    report(fault)
    faulted = true
    interrupt()
  }
  process.on("uncaughtException", onFault)
  process.on("unhandledRejection", onFault)
  const keepAlive = setInterval(() => {}, KEEP_ALIVE_MS)

  /** A known result counts unless something outside the program decided first. */
  const codeOf = (exit: Exit.Exit<number>): number => {
    if (signalled !== undefined) return signalled
    if (faulted) return DEFECT_CODE
    if (Exit.isSuccess(exit)) return exit.value
    if (Cause.isInterruptedOnly(exit.cause)) return readerGone ? 0 : INTERRUPTED_CODE
    report(Cause.squash(exit.cause))
    return DEFECT_CODE
  }

  const fiber = Effect.runFork(program)
  fiber.addObserver((exit) => {
    const code = codeOf(exit)
    process.exitCode = code
    const leave = (): void => {
      clearInterval(keepAlive)
      process.exit(signalled ?? code)
    }
    if (signalled !== undefined) setTimeout(leave, SIGNAL_FLUSH_MS)
    // A signal while a slow reader holds up the last output is a wish to leave.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, leave)
    void Promise.all([flushed(process.stdout), flushed(process.stderr)]).then(leave)
  })
}

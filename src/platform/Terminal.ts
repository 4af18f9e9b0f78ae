/**
 * The standard streams of this process as a service: what they are, writing, asking.
 *
 * Writing ends when the system has taken the text, so a slow reader slows the writer down instead of filling
 * memory. A reader that went away is no error here; `Main` ends the program then. Lines are read in the
 * terminal's own line mode: Ctrl-C stays a signal and Ctrl-D the end of input.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { StringDecoder } from "node:string_decoder"
import { isatty } from "node:tty"
import type { FileError } from "./FileError.ts"
import { fileFault, fileRefused } from "./FileFault.ts"

/** Width that is assumed where nothing is known. */
const DEFAULT_COLUMNS = 80
const STDIN_NAME = "standard input"

/** The standard streams. */
export class Terminal extends Context.Tag("sigil/platform/Terminal")<
  Terminal,
  {
    readonly stdinIsTty: boolean
    readonly stdoutIsTty: boolean
    readonly stderrIsTty: boolean
    /** Width of the terminal now; 80 where there is none. */
    readonly columns: number
    /**
     * Whether colours are wanted at all: never with `NO_COLOR`, always with `FORCE_COLOR`, else when stdout or
     * stderr is a terminal other than `TERM=dumb`. Whoever writes also looks at its own stream.
     */
    readonly colour: boolean
    /** Writes to stdout; done when the system has taken it. */
    readonly write: (text: string) => Effect.Effect<void>
    /** Writes to stderr; done when the system has taken it. */
    readonly writeError: (text: string) => Effect.Effect<void>
    /** All of stdin as text. Fails when it cannot be read or is not UTF-8. */
    readonly readStdin: Effect.Effect<string, FileError>
    /**
     * Asks on stderr and reads one line from the terminal, without its line end. `undefined` at the end of input
     * and where stdin is not a terminal: what a pipe says is never somebody's answer. One question at a time.
     */
    readonly readLine: (prompt: string) => Effect.Effect<string | undefined>
  }
>() {}

/** Whether colours are wanted (no-color.org; FORCE_COLOR as Node reads it). */
export const wantsColour = (variable: (name: string) => string | undefined, anyTty: boolean): boolean => {
  if ((variable("NO_COLOR") ?? "") !== "") return false
  const force = variable("FORCE_COLOR")
  if (force !== undefined) return force !== "0" && force !== "false"
  return anyTty && variable("TERM") !== "dumb"
}

const writeTo = (stream: NodeJS.WriteStream, text: string): Effect.Effect<void> =>
  text === ""
    ? Effect.void
    : Effect.async((resume) => {
        // The callback comes with or without an error; a stream that is destroyed answers at once.
        stream.write(text, () => resume(Effect.void))
      })

const readAll: Effect.Effect<string, FileError> = Effect.async((resume) => {
  const stream = process.stdin
  const chunks: Array<Buffer> = []
  const forget = (): void => {
    stream.off("data", onData).off("end", onEnd).off("error", onError)
    stream.pause()
  }
  const onData = (chunk: Buffer): void => {
    chunks.push(chunk)
  }
  const onEnd = (): void => {
    forget()
    try {
      resume(Effect.succeed(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks))))
    } catch {
      resume(fileRefused("invalid_utf8", STDIN_NAME, "Standard input is not UTF-8 text."))
    }
  }
  const onError = (error: Error): void => {
    forget()
    resume(fileFault("read", STDIN_NAME, error))
  }
  if (stream.readableEnded) return resume(Effect.succeed(""))
  stream.on("data", onData).on("end", onEnd).on("error", onError)
  return Effect.sync(forget)
})

/** Reads lines one at a time; what was typed ahead waits for the next question. */
const makeLines = (): Effect.Effect<string | undefined> => {
  const decoder = new StringDecoder("utf8")
  let ahead = ""
  let ended = false
  const take = (): string | undefined => {
    const end = ahead.indexOf("\n")
    if (end < 0 && (!ended || ahead === "")) return undefined
    const line = end < 0 ? ahead : ahead.slice(0, end)
    ahead = end < 0 ? "" : ahead.slice(end + 1)
    return line.endsWith("\r") ? line.slice(0, -1) : line
  }
  return Effect.async((resume) => {
    const stream = process.stdin
    const forget = (): void => {
      stream.off("data", onData).off("end", onEnd).off("error", onEnd)
      stream.pause()
    }
    const answer = (): boolean => {
      const line = take()
      if (line === undefined && !ended) return false
      forget()
      resume(Effect.succeed(line))
      return true
    }
    const onData = (chunk: Buffer): void => {
      ahead += decoder.write(chunk)
      answer()
    }
    const onEnd = (): void => {
      ended = true
      answer()
    }
    if (stream.readableEnded) ended = true
    if (answer()) return
    stream.on("data", onData).on("end", onEnd).on("error", onEnd)
    stream.resume()
    return Effect.sync(forget)
  })
}

/** The streams of this process. */
export const layer: Layer.Layer<Terminal> = Layer.effect(
  Terminal,
  Effect.map(Effect.makeSemaphore(1), (turn) => {
    const { stdout, stderr } = process
    // Without a listener a reader that went away would be an uncaught exception.
    stdout.on("error", () => {})
    stderr.on("error", () => {})
    // The stream itself is made on first use: most commands never read it.
    const stdinIsTty = isatty(0)
    const line = makeLines()
    return {
      stdinIsTty,
      stdoutIsTty: stdout.isTTY === true,
      stderrIsTty: stderr.isTTY === true,
      get columns() {
        return stdout.columns || stderr.columns || DEFAULT_COLUMNS
      },
      colour: wantsColour((name) => process.env[name], stdout.isTTY === true || stderr.isTTY === true),
      write: (text: string) => writeTo(stdout, text),
      writeError: (text: string) => writeTo(stderr, text),
      readStdin: readAll,
      readLine: (prompt: string) =>
        stdinIsTty ? turn.withPermits(1)(Effect.zipRight(writeTo(stderr, prompt), line)) : Effect.succeed(undefined)
    }
  })
)

/** What a test terminal was given to print. */
export class TestTerminal extends Context.Tag("sigil/platform/TestTerminal")<
  TestTerminal,
  {
    /** Everything written to stdout so far. */
    readonly stdout: () => string
    /** Everything written to stderr so far, prompts included. */
    readonly stderr: () => string
  }
>() {}

/** A terminal in memory. `tty` (false) holds for all three streams; `lines` are the answers, then end of input. */
export const layerTest = (
  given: {
    readonly stdin?: string
    readonly tty?: boolean
    readonly lines?: ReadonlyArray<string>
    readonly columns?: number
    readonly colour?: boolean
  } = {}
): Layer.Layer<Terminal | TestTerminal> =>
  Layer.unwrapEffect(
    Effect.sync(() => {
      const tty = given.tty ?? false
      const answers = [...(given.lines ?? [])]
      let out = ""
      let err = ""
      const writeError = (text: string): Effect.Effect<void> =>
        Effect.sync(() => {
          err += text
        })
      return Layer.merge(
        Layer.succeed(Terminal, {
          stdinIsTty: tty,
          stdoutIsTty: tty,
          stderrIsTty: tty,
          columns: given.columns ?? DEFAULT_COLUMNS,
          colour: given.colour ?? false,
          write: (text) =>
            Effect.sync(() => {
              out += text
            }),
          writeError,
          readStdin: Effect.succeed(given.stdin ?? ""),
          readLine: (prompt) =>
            tty
              ? Effect.zipRight(
                  writeError(prompt),
                  Effect.sync(() => answers.shift())
                )
              : Effect.succeed(undefined)
        }),
        Layer.succeed(TestTerminal, { stdout: () => out, stderr: () => err })
      )
    })
  )

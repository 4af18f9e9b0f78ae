/**
 * What a command prints: documents and text on stdout, notes and progress on stderr.
 *
 * Invariants: with `--json` stdout carries exactly one document and `text` and `note` print nothing, so a
 * handler may say both and only what fits is seen; every text is escaped on its way out (`Markup.ts`); colours
 * appear only on a terminal; the live progress line is gone before anything else is printed.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { escapeBlock } from "../base/Display.ts"
import { exitCodeOf, type Failure } from "../base/Failure.ts"
import { Terminal } from "../platform/Terminal.ts"
import { stringify } from "../protocol/Codec.ts"
import type { DocumentName, DocumentOf } from "./Documents.ts"
import * as FailureText from "./FailureText.ts"
import { dim, type Line, render, table } from "./Markup.ts"

/** Spaces of indentation of a document on a terminal. */
const INDENT = 2

/** Erases the terminal's line and returns to its start. */
const ERASE = "\r\u001b[2K"

/** Printing. */
export class Output extends Context.Tag("sigil/cli/Output")<
  Output,
  {
    /** Whether `--json` was given. */
    readonly json: boolean
    /** Prints the document of this command; exactly once, and only with `--json`: without it nothing happens. */
    readonly document: <Name extends DocumentName>(name: Name, value: DocumentOf<Name>) => Effect.Effect<void>
    /** Lines for people on stdout; nothing with `--json`. A newline inside one is shown as an escape. */
    readonly text: (lines: ReadonlyArray<Line>) => Effect.Effect<void>
    /** Content of several lines on stdout, such as a tool's answer; nothing with `--json`. */
    readonly block: (content: string) => Effect.Effect<void>
    /** A remark on stderr; nothing with `--json`, where it belongs into the document. */
    readonly note: (line: Line) => Effect.Effect<void>
    /** A line of the log on stderr, with `--json` too. */
    readonly log: (line: string) => Effect.Effect<void>
    /** Replaces the live line on stderr, if that is a terminal; an empty one removes it. */
    readonly progress: (line: string) => Effect.Effect<void>
    /**
     * Aligned rows under a header, as `text`. On a terminal the last column is clipped to the width; a program
     * that reads the output gets every cell whole.
     */
    readonly table: (header: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<Line>>) => Effect.Effect<void>
    /** Prints a failure where it belongs and gives its exit code. */
    readonly failure: (failure: Failure) => Effect.Effect<number>
  }
>() {}

/** Output over a terminal that nobody else writes to meanwhile. */
export const make = (terminal: Context.Tag.Service<Terminal>, json: boolean): Context.Tag.Service<Output> =>
  sharing(terminal, json).output

/** Output over a terminal, and the same terminal for others: what they write begins on a line of its own too. */
export const sharing = (
  terminal: Context.Tag.Service<Terminal>,
  json: boolean
): { readonly output: Context.Tag.Service<Output>; readonly shared: Context.Tag.Service<Terminal> } => {
  let live = false
  let printed = false

  /** What goes before the next text on stderr; one write with it, for the line may be drawn again between two. */
  const erasing = (): string => {
    if (!live) return ""
    live = false
    return ERASE
  }
  const clear = Effect.suspend(() => terminal.writeError(erasing()))
  const writeError = (text: string): Effect.Effect<void> =>
    Effect.suspend(() => (text === "" ? Effect.void : terminal.writeError(erasing() + text)))
  const toOut = (lines: ReadonlyArray<Line>, block = false): Effect.Effect<void> =>
    clear.pipe(
      Effect.zipRight(
        terminal.write(
          lines.map((line) => `${render(line, terminal.colour && terminal.stdoutIsTty, block)}\n`).join("")
        )
      )
    )
  const toError = (lines: ReadonlyArray<Line>): Effect.Effect<void> =>
    writeError(lines.map((line) => `${render(line, terminal.colour && terminal.stderrIsTty)}\n`).join(""))
  const document = (value: unknown): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (printed) return Effect.dieMessage("A command printed two documents.")
      printed = true
      // JSON leaves C1 controls and direction marks as they are; as \uXXXX they mean the same and do nothing.
      const text = escapeBlock(stringify(value, terminal.stdoutIsTty ? INDENT : undefined))
      return clear.pipe(Effect.zipRight(terminal.write(`${text}\n`)))
    })

  const text = (lines: ReadonlyArray<Line>): Effect.Effect<void> =>
    json || lines.length === 0 ? Effect.void : toOut(lines)

  const output: Context.Tag.Service<Output> = {
    json,
    document: (_name, value) => (json ? document(value) : Effect.void),
    text,
    block: (content) => (json ? Effect.void : toOut([content], true)),
    note: (line) => (json ? Effect.void : toError([line])),
    log: (line) => toError(typeof line === "string" ? line.split("\n") : [line]),
    progress: (line) =>
      Effect.suspend(() => {
        if (!terminal.stderrIsTty) return Effect.void
        if (line === "") return clear
        live = true
        return terminal.writeError(`${ERASE}${render(clipped(line, terminal.columns), false)}`)
      }),
    table: (header, rows) =>
      text(table([header.map(dim), ...rows], terminal.stdoutIsTty ? terminal.columns : undefined)),
    failure: (failure) =>
      // After a result on stdout there is no room for a second document.
      Effect.suspend(() =>
        json && !printed ? document(FailureText.documentOf(failure)) : toError(FailureText.linesOf(failure))
      ).pipe(Effect.as(exitCodeOf(failure)))
  }
  const shared: Context.Tag.Service<Terminal> = {
    ...terminal,
    get columns() {
      return terminal.columns
    },
    write: (text) => Effect.zipRight(clear, terminal.write(text)),
    writeError,
    readLine: (prompt) => Effect.zipRight(clear, terminal.readLine(prompt))
  }
  return { output, shared }
}

/** A line that does not reach the terminal's last column, where some terminals wrap. */
const clipped = (line: string, columns: number): Line => table([[line]], Math.max(1, columns - 1))[0] ?? ""

/** Output of one command. */
export const layer = (json: boolean): Layer.Layer<Output, never, Terminal> =>
  Layer.effect(
    Output,
    Effect.map(Terminal, (terminal) => make(terminal, json))
  )

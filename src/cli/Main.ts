/**
 * The command line face: from argv to an exit code.
 *
 * Reads argv (`Argv.ts`), types it (`Parse.ts`), loads one handler and runs it. Every failure is printed once,
 * here, and gives the exit code; a fault of sigil itself is one line under `SIGIL_INTERNAL`. The layers that a
 * handler needs beyond these few are its own, so that no command pays for another one's code.
 */
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import { VERSION } from "../base/Version.ts"
import { ClientFeatures } from "../server/ClientFeatures.ts"
import type { Failure } from "../base/Failure.ts"
import { safe } from "../platform/DefectText.ts"
import * as HostEnvironment from "../platform/HostEnvironment.ts"
import { runMain } from "../platform/Main.ts"
import * as Terminal from "../platform/Terminal.ts"
import { fitting } from "./AnswersFix.ts"
import * as Argv from "./Argv.ts"
import { commands, groups } from "./Commands.ts"
import { GlobalOptions, type Globals } from "./GlobalOptions.ts"
import type { HandlerServices } from "./Handler.ts"
import { help } from "./Help.ts"
import { featuresOf } from "./Interaction.ts"
import * as Output from "./Output.ts"
import { usage } from "./UsageError.ts"

/** Exit code of `sigil` without a command outside a terminal (spec section 1). */
const BARE_EXIT = 2

const everything: Argv.Table = { commands, groups }

/** A fault of sigil as a failure: one line, and the stack with `--debug`. */
const internal = (cause: Cause.Cause<never>, debug: boolean): Failure => {
  const fault = Cause.squash(cause)
  const message = fault instanceof Error ? fault.message : String(fault)
  const line = safe(message).split("\n")[0] ?? ""
  if (!debug && /\b(?:EMFILE|ENFILE)\b/.test(line)) {
    return {
      _tag: "InternalError",
      code: "SIGIL_OUT_OF_FILES",
      reason: "file_limit",
      text: `Too many open files: ${line}`
    }
  }
  return {
    _tag: "InternalError",
    code: "SIGIL_INTERNAL",
    reason: "internal",
    text: debug ? safe(Cause.pretty(cause, { renderErrorCause: true })) : `A fault inside sigil: ${line}`,
    ...(debug ? {} : { fix: "Report it with this message and the command; --debug shows where it happened." })
  }
}

const run = ({
  command,
  given
}: Extract<Argv.Request, { readonly _tag: "Run" }>): Effect.Effect<number, Failure, HandlerServices> =>
  Effect.gen(function* () {
    const { parse } = yield* Effect.promise(() => import("./Parse.ts"))
    const input = yield* parse(command, given)
    const handler = yield* Effect.promise(command.load)
    const { answers } = input.options
    const answering = {
      has: Object.hasOwn(command.shape.options, "answers"),
      file: typeof answers === "string" ? answers : undefined
    }
    return yield* handler(input).pipe(Effect.mapError(fitting(answering)))
  })

/** The log goes to stderr (Effect's own default is stdout), below warnings only with `--debug`. */
const loggerLayer = (output: Context.Tag.Service<Output.Output>, { debug }: Globals): Layer.Layer<never> =>
  Layer.merge(
    Logger.replace(
      Logger.defaultLogger,
      Logger.map(Logger.logfmtLogger, (line) => void Effect.runFork(output.log(safe(line))))
    ),
    Logger.minimumLogLevel(debug ? LogLevel.Debug : LogLevel.Warning)
  )

/**
 * Runs the words after the program's name with the commands of `table`; gives the exit code. Never fails; an
 * interruption passes through.
 */
export const program = (
  argv: ReadonlyArray<string>,
  table: Argv.Table = everything
): Effect.Effect<number, never, Terminal.Terminal | HostEnvironment.HostEnvironment> =>
  Effect.gen(function* () {
    const { globals, request } = Argv.parse(argv, table)
    const terminal = yield* Terminal.Terminal
    const { output, shared } = Output.sharing(terminal, globals.json)
    // Help and version are texts for people, with --json too.
    const plain = Output.make(terminal, false)

    const answer = (): Effect.Effect<
      number,
      Failure,
      GlobalOptions | Output.Output | Terminal.Terminal | HostEnvironment.HostEnvironment
    > => {
      switch (request._tag) {
        case "Version":
          return Effect.as(plain.text([VERSION]), 0)
        case "Help":
          return Effect.as(plain.text(help(table, request.path, terminal.columns)), 0)
        case "Bare":
          return globals.json
            ? Effect.fail(usage([], "No command was given."))
            : Effect.as(plain.text(help(table, [], terminal.columns)), BARE_EXIT)
        case "Refused":
          return Effect.fail(request.error)
        case "Run":
          return Effect.scoped(run(request))
      }
    }

    return yield* Effect.suspend(answer).pipe(
      Effect.catchAll(output.failure),
      Effect.catchAllCause((cause) =>
        Cause.isInterruptedOnly(cause) ? Effect.failCause(cause) : output.failure(internal(cause, globals.debug))
      ),
      Effect.ensuring(output.progress("")),
      Effect.provideService(Output.Output, output),
      // Whatever else writes, such as disclosures and questions, never shares a line with the progress.
      Effect.provideService(Terminal.Terminal, shared),
      Effect.provideService(GlobalOptions, globals),
      // What servers may ask back where a person sits; servers that list their tools by it list the same everywhere.
      // Commands that call say themselves who answers (`Interaction.ts`); the others only look.
      Effect.provideService(ClientFeatures, { ...featuresOf(terminal), looking: true }),
      Effect.provide(loggerLayer(output, globals))
    )
  })

/** Runs the command line of this process and ends it with the exit code. */
export const main = (argv: ReadonlyArray<string>): void => {
  runMain(program(argv).pipe(Effect.provide(Layer.merge(Terminal.layer, HostEnvironment.layer))))
}

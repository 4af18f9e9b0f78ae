/**
 * What the commands that call a server share: who calls, the line that shows long work, where wholes are kept.
 */
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import { escapeLine } from "../base/Display.ts"
import { Locations } from "../config/Locations.ts"
import { Terminal } from "../platform/Terminal.ts"
import { Secrets } from "../policy/Secrets.ts"
import type { OnOpen } from "../server/Generation.ts"
import { Artifacts } from "../tools/Artifacts.ts"
import type { Elicitor } from "../server/Elicitor.ts"
import type { Caller } from "../tools/Caller.ts"
import type { Keep } from "../tools/Result.ts"
import { dim } from "./Markup.ts"
import { Output } from "./Output.ts"
import * as TerminalApprover from "./TerminalApprover.ts"
import * as TerminalElicitor from "./TerminalElicitor.ts"

/** Shows what takes long: one line with seconds on stderr, the server's own progress in it. */
const working = (what: string) =>
  Effect.gen(function* () {
    const output = yield* Output
    const secrets = yield* Secrets
    const runtime = yield* Effect.runtime()
    // What was typed may repeat a secret, which is known only once the server is admitted.
    const title = (): string => secrets.redactText(what)
    let note = ""
    let seconds = 0
    let asking = false
    const draw = Effect.suspend(() =>
      asking || seconds === 0
        ? Effect.void
        : output.progress(`${title()}${note === "" ? "…" : `: ${note}`} ${seconds} s`)
    )
    yield* Effect.sync(() => {
      seconds += 1
    }).pipe(Effect.zipRight(draw), Effect.delay("1 second"), Effect.forever, Effect.forkScoped)
    return {
      onProgress: ({ progress, total, message }: { progress: number; total?: number; message?: string }): void => {
        const share =
          total !== undefined && total > 0
            ? ` ${Math.min(100, Math.round((progress / total) * 100))} %`
            : ` ${progress}`
        note = `${escapeLine(message ?? "")}${share}`.trim().slice(0, 200)
        Runtime.runFork(runtime)(
          asking ? Effect.void : output.progress(`${title()}: ${note}${seconds === 0 ? "" : ` ${seconds} s`}`)
        )
      },
      /** Keeps the line away while somebody is asked. */
      quietly: <A>(effect: Effect.Effect<A>): Effect.Effect<A> =>
        Effect.acquireUseRelease(
          Effect.sync(() => {
            asking = true
          }).pipe(Effect.zipRight(output.progress(""))),
          () => effect,
          () =>
            Effect.sync(() => {
              asking = false
            })
        )
    }
  })

/** Characters of a line of stderr that are held at most. */
const MAX_LINE = 65_536

/**
 * Passes the server's stderr on, line by line and redacted. A line is held until it ends, so that no secret is shown
 * in parts; the last one may end with the command.
 */
export const stderrTap = Effect.gen(function* () {
  const output = yield* Output
  const secrets = yield* Secrets
  const runtime = yield* Effect.runtime()
  const last: { show: () => Effect.Effect<void> } = { show: () => Effect.void }
  yield* Effect.addFinalizer(() => last.show())
  const tap: OnOpen = (wire) => {
    const hide = secrets.redactStream()
    let rest = ""
    // A start may take two processes: what the first one ended with is shown before the next one speaks.
    Runtime.runFork(runtime)(last.show())
    last.show = () => (rest === "" ? Effect.void : output.note([dim("stderr: "), hide(rest)]))
    wire.onStderr((text) => {
      const lines = (rest + text).split("\n")
      rest = lines.pop() ?? ""
      if (rest.length > MAX_LINE) lines.push(rest.slice(0, MAX_LINE))
      if (rest.length > MAX_LINE) rest = rest.slice(MAX_LINE)
      for (const line of lines) Runtime.runFork(runtime)(output.note([dim("stderr: "), hide(line)]))
    })
  }
  return tap
})

/** Keeps whole results as artifacts; a result that cannot be kept is still shown, with a note. */
export const keeper = Effect.gen(function* () {
  const artifacts = yield* Artifacts
  const output = yield* Output
  const keep: Keep = (bytes, extension) =>
    artifacts
      .put(bytes, extension)
      .pipe(
        Effect.catchAll((error) => Effect.as(output.note(`The whole result was not kept: ${error.text}`), undefined))
      )
  return keep
})

/**
 * The person at this terminal as a caller; `what` names the work on the progress line. Forms are answered by `answers`,
 * else by the person, else by nobody.
 */
export const callerOf = (what: string, yes: boolean, answers?: Elicitor) =>
  Effect.gen(function* () {
    const output = yield* Output
    const terminal = yield* Terminal
    const { redactText } = yield* Secrets
    const { sigilToml } = yield* Locations
    const line = yield* working(what)
    const approver = TerminalApprover.make(terminal, (rule) =>
      // Editing files is the rare case of a call; its parsers are loaded only then.
      Effect.promise(() => import("../config/Edit.ts")).pipe(
        Effect.flatMap((edit) => edit.appendPermissionRule(sigilToml, rule)),
        Effect.matchEffect({
          onFailure: (error) => output.note(`The rule was not written: ${error.text}`),
          onSuccess: () => output.note(`Rule added to ${sigilToml}`)
        })
      )
    )
    const person = terminal.stdinIsTty && terminal.stderrIsTty
    const asks = TerminalElicitor.make(terminal, redactText)
    const elicitor: Elicitor | undefined =
      answers ??
      (person
        ? { form: (request) => line.quietly(asks.form(request)), url: (request) => line.quietly(asks.url(request)) }
        : undefined)
    const caller: Caller = {
      identity: "cli",
      yes,
      approver: { ask: (question) => line.quietly(approver.ask(question)) },
      onProgress: line.onProgress,
      ...(elicitor === undefined ? {} : { elicitor })
    }
    return caller
  })

/**
 * Asks for consent to one call on a terminal: once, session, always, deny (spec section 1).
 *
 * The question goes to stderr, so a piped stdout stays clean. Everything that came from the server is escaped and
 * cut, and an answer that is not one of the words asks again; the end of input is a deny, never a yes.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Terminal } from "../platform/Terminal.ts"
import { clip, escapeLine } from "../base/Display.ts"
import { stringify } from "../protocol/Codec.ts"
import type { Answer, Approver, Question } from "../tools/Approver.ts"

/** Characters of arguments and descriptions that a question shows. */
const SHOWN = 1_000

const words: { readonly [word: string]: Answer } = {
  o: "once",
  once: "once",
  y: "once",
  yes: "once",
  s: "session",
  session: "session",
  a: "always",
  always: "always",
  d: "deny",
  deny: "deny",
  n: "deny",
  no: "deny"
}

const describe = (question: Question): string => {
  const { server, tool, trustClass, description, destructive, args, why } = question
  return [
    "",
    `sigil: may the tool '${escapeLine(tool)}' of server '${escapeLine(server)}' be called?`,
    `  server     ${escapeLine(server)} (${trustClass})`,
    ...(description === "" ? [] : [`  it says    ${escapeLine(clip(description, 200))}`]),
    ...(destructive ? ["  warning    the server marks this tool as destructive"] : []),
    `  arguments  ${escapeLine(clip(stringify(args), SHOWN))}`,
    `  asked by   ${escapeLine(why)}`,
    ""
  ].join("\n")
}

/** An approver on this terminal; `remember` writes the rule that `always` asks for. */
export const make = (
  terminal: Context.Tag.Service<typeof Terminal>,
  remember: (question: Question) => Effect.Effect<void>
): Approver => {
  const choose = (question: Question): Effect.Effect<Answer> =>
    Effect.gen(function* () {
      const choices = question.grantable ? "[o]nce, [s]ession, [a]lways, [d]eny" : "[o]nce, [d]eny"
      while (true) {
        const line = yield* terminal.readLine(`${choices}: `)
        if (line === undefined) return "deny" as const
        const answer = words[line.trim().toLowerCase()]
        if (answer !== undefined && (question.grantable || answer === "once" || answer === "deny")) return answer
      }
    })
  return {
    ask: (question) =>
      Effect.gen(function* () {
        if (!terminal.stdinIsTty || !terminal.stderrIsTty) return "unavailable" as const
        yield* terminal.writeError(describe(question))
        const answer = yield* choose(question)
        if (answer === "always") yield* remember(question)
        return answer
      })
  }
}

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
import type { AllowRule } from "../policy/permission/Remedy.ts"
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

const shown: ReadonlyArray<readonly [Answer, string]> = [
  ["once", "[o]nce"],
  ["session", "[s]ession"],
  ["always", "[a]lways"],
  ["deny", "[d]eny"]
]

const describe = (question: Question): string => {
  const { server, tool, trustClass, description, destructive, args, why } = question
  return [
    "",
    question.kind === "start"
      ? `sigil: may the server '${escapeLine(server)}' be started? It can reach the network.`
      : `sigil: may the tool '${escapeLine(tool)}' of server '${escapeLine(server)}' be called?`,
    `  server     ${escapeLine(server)} (${trustClass})`,
    ...(description === "" ? [] : [`  it says    ${escapeLine(clip(description, 200))}`]),
    ...(destructive ? ["  warning    the server marks this tool as destructive"] : []),
    ...(question.kind === "start" ? [] : [`  arguments  ${escapeLine(clip(stringify(args), SHOWN))}`]),
    `  asked by   ${escapeLine(why)}`,
    ""
  ].join("\n")
}

/** An approver on this terminal; `remember` writes the rule that `always` asks for. */
export const make = (
  terminal: Context.Tag.Service<typeof Terminal>,
  remember: (rule: AllowRule) => Effect.Effect<void>
): Approver => {
  const choose = (question: Question): Effect.Effect<Answer> =>
    Effect.gen(function* () {
      const offered = new Set<Answer>(["once", "deny"])
      if (question.grantable) offered.add("session")
      if (question.rule !== undefined) offered.add("always")
      const choices = shown.flatMap(([answer, text]) => (offered.has(answer) ? [text] : [])).join(", ")
      while (true) {
        const line = yield* terminal.readLine(`${choices}: `)
        if (line === undefined) return "deny" as const
        const answer = words[line.trim().toLowerCase()]
        if (answer !== undefined && offered.has(answer)) return answer
      }
    })
  return {
    ask: (question) =>
      Effect.gen(function* () {
        if (!terminal.stdinIsTty || !terminal.stderrIsTty) return "unavailable" as const
        yield* terminal.writeError(describe(question))
        const answer = yield* choose(question)
        if (answer === "always" && question.rule !== undefined) yield* remember(question.rule)
        return answer
      })
  }
}

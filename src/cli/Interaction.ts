/**
 * Who answers what servers ask during one command: an answers file, else the person at the terminal, else nobody
 * (spec sections 1 and 6). What is declared to servers follows from it.
 */
import * as Effect from "effect/Effect"
import { Terminal } from "../platform/Terminal.ts"
import { ClientFeatures, type Features } from "../server/ClientFeatures.ts"
import type { Elicitor } from "../server/Elicitor.ts"

/** What a command knows before its runtime exists. */
export interface Interaction {
  /** Answers of a file; the terminal is not asked then. */
  readonly answers: Elicitor | undefined
  readonly features: Features
}

/** What a person at this terminal can answer; nothing where there is no person. */
export const featuresOf = (terminal: { readonly stdinIsTty: boolean; readonly stderrIsTty: boolean }): Features => {
  const person = terminal.stdinIsTty && terminal.stderrIsTty
  return { forms: person, urls: person }
}

/** The interaction of a command; reads and checks the answers file. */
export const interactionOf = (file: string | undefined) =>
  Effect.gen(function* () {
    const terminal = yield* Terminal
    if (file === undefined) return { answers: undefined, features: featuresOf(terminal) } satisfies Interaction
    // Few commands have a file to read; its parser is loaded only then.
    const { make, readAnswers } = yield* Effect.promise(() => import("./Answers.ts"))
    return { answers: make(yield* readAnswers(file)), features: { forms: true, urls: false } } satisfies Interaction
  })

/** Declares to servers what the interaction offers; stands around the layer of the runtime. */
export const declaring =
  ({ features }: Interaction) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideService(effect, ClientFeatures, features)

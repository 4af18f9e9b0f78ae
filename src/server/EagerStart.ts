/**
 * Starts the servers of a run: the required ones as one transaction, the others each for itself (R sections 5.2, 5.6).
 *
 * The first required server that fails ends the transaction: what of the set is still starting is given up, what was
 * ready is stopped in reverse order, and the error says what could not be confirmed gone. An optional server that
 * fails is reported and skipped, unless its processes could not be confirmed gone.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { describeSurvivors } from "../platform/CleanupReport.ts"
import type { Generation } from "./Generation.ts"
import { RequiredServersError } from "./ServerError.ts"
import { type ActivationError, addSentence, leftBehind } from "./StartFailure.ts"
import type { ServerCleanup } from "./Supervisor.ts"

/** One server to start. */
export interface Member {
  readonly name: string
  readonly required: boolean
  readonly activate: Effect.Effect<Generation, ActivationError>
  readonly stop: Effect.Effect<ReadonlyArray<ServerCleanup>>
}

/** How a set came up. */
export interface EagerReport {
  readonly ready: ReadonlyArray<Generation>
  /** Optional servers that are not running. */
  readonly failed: ReadonlyArray<{ readonly server: string; readonly failure: ActivationError }>
}

interface Failed {
  readonly server: string
  readonly failure: ActivationError
}

/** Starts all members at once; how many start at a time is the registry's business. */
export const startAll = (members: ReadonlyArray<Member>): Effect.Effect<EagerReport, RequiredServersError> =>
  Effect.gen(function* () {
    const twice = members.find(({ name }, index) => members.findIndex((other) => other.name === name) !== index)
    if (twice !== undefined) {
      return yield* new RequiredServersError({
        code: "SIGIL_DUPLICATE_NAME",
        reason: "duplicate_server",
        text: `The server '${twice.name}' is named twice in one set; nothing was started.`,
        where: { server: twice.name }
      })
    }
    /** In the order in which they became ready. */
    const ready: Array<{ readonly member: Member; readonly generation: Generation }> = []
    const started = (member: Member) =>
      Effect.tap(member.activate, (generation) => Effect.sync(() => ready.push({ member, generation })))
    const [required, optional] = yield* Effect.all(
      [
        Effect.exit(
          Effect.forEach(
            members.filter((member) => member.required),
            (member) => Effect.mapError(started(member), (failure): Failed => ({ server: member.name, failure })),
            { concurrency: "unbounded", discard: true }
          )
        ),
        Effect.forEach(
          members.filter((member) => !member.required),
          (member) =>
            Effect.match(started(member), {
              onFailure: (failure): Failed | undefined => ({ server: member.name, failure }),
              onSuccess: () => undefined
            }),
          { concurrency: "unbounded" }
        )
      ],
      { concurrency: "unbounded" }
    )
    const failed = optional.filter((one) => one !== undefined)
    const left = failed.find(({ failure }) => leftBehind(failure) !== undefined)
    const fatal = Exit.isFailure(required) ? Option.getOrUndefined(Cause.failureOption(required.cause)) : left
    if (fatal === undefined) {
      // A defect or an interruption stays what it is.
      if (Exit.isFailure(required)) return yield* Effect.failCause(required.cause as Cause.Cause<never>)
      return { ready: ready.map(({ generation }) => generation), failed }
    }
    const mine = ready.filter(({ member }) => member.required || fatal === left).toReversed()
    // What is still starting was given up by the interruption; stopping it too waits until it is gone.
    // The one that failed is left as it is: its state says why.
    const rest = members.filter(
      ({ name, required: needed }) =>
        needed && name !== fatal.server && !mine.some(({ member }) => member.name === name)
    )
    const cleanups = [
      ...(yield* Effect.forEach(mine, ({ member }) => member.stop)).flat(),
      ...(yield* Effect.forEach(rest, (member) => member.stop)).flat()
    ]
    return yield* rolledBack(
      fatal,
      mine.map(({ member }) => member.name),
      cleanups
    )
  })

const rolledBack = (
  { failure, server }: Failed,
  names: ReadonlyArray<string>,
  cleanups: ReadonlyArray<ServerCleanup>
): RequiredServersError => {
  const incomplete = cleanups.filter(({ report }) => !report.complete)
  const undone = names.length === 0 ? "" : `Taken back: ${names.map((name) => `'${name}'`).join(", ")}.`
  const unsure = incomplete
    .map(({ report, server: left }) => `'${left}' (${describeSurvivors(report) || "unconfirmed"})`)
    .join(", ")
  return new RequiredServersError({
    code: failure.code,
    reason: failure.reason,
    text: [undone, unsure === "" ? "" : `Could not be confirmed gone: ${unsure}.`]
      .filter((sentence) => sentence !== "")
      .reduce(addSentence, failure.text),
    fix: failure.fix ?? `Mend '${server}', or set required = false if the run can do without it.`,
    where: { ...failure.where, server },
    details: {
      ...failure.details,
      rolled_back: names,
      cleanup_completed: incomplete.length === 0 && leftBehind(failure) === undefined,
      survivors: incomplete.flatMap(({ report }) => report.survivors)
    }
  })
}

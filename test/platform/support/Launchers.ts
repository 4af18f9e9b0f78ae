/** Ways of this system into a PID namespace, and what shows that nothing is left of one. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { assert } from "vitest"
import * as HostEnvironment from "../../../src/platform/HostEnvironment.ts"
import * as PidNamespace from "../../../src/platform/PidNamespace.ts"
import * as Proc from "../../../src/platform/Proc.ts"
import { spawn, type SpawnPlan } from "../../../src/platform/ProcessTree.ts"
import * as Reaper from "../../../src/platform/Reaper.ts"
import { planFor } from "./Processes.ts"

/** Asks whether there are PID namespaces. */
export const ask = Effect.flatMap(PidNamespace.PidNamespace, ({ receipt }) => receipt)
/** The answer of this very system. */
export const real = PidNamespace.layer.pipe(Layer.provide(HostEnvironment.layer))

/** Live processes whose command line holds the text. */
export const running = (text: string): ReadonlyArray<number> =>
  Proc.list()
    .filter((entry) => Proc.isAlive(entry) && Proc.commandLine(entry.pid).includes(text))
    .map((entry) => entry.pid)

/** A number of seconds that no other process sleeps for. */
export const uniqueSleep = (): string => `300.${Math.floor(Math.random() * 1e9)}`

/** Double fork, own session, empty environment, deaf to TERM; the server itself ends with its input. */
export const vanishing = (seconds: string): Partial<SpawnPlan> => ({
  args: [
    "-c",
    `(setsid env -i /bin/sh -c 'trap "" TERM; echo ready; exec sleep "$0"' ${seconds} &); exec cat >/dev/null`
  ]
})

/**
 * Runs a test with each way of this system into a PID namespace. Where there is none, the answer must say why and
 * what helps, and that is the test.
 */
export const withLaunchers = <A, E, R>(use: (launcher: PidNamespace.Launcher) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const receipt = yield* ask
    if (receipt._tag === "Unavailable") {
      assert.isNotEmpty(receipt.text)
      if (process.platform === "linux") assert.isDefined(receipt.fix)
      return
    }
    yield* use(receipt.launcher)
    // Root has no need of a user namespace, but may well have one: the way of everybody else.
    const other = PidNamespace.candidates(receipt.launcher.file, false).find(({ ownProc }) => ownProc)
    if (!receipt.launcher.userNamespace && other !== undefined) {
      const made = yield* spawn(planFor("well", { launcher: other }))
      const exit = yield* Effect.zipRight(made.terminate, Deferred.await(made.exited))
      if (exit.code === 0) yield* use(other)
    }
  }).pipe(Effect.scoped, Effect.provide(Layer.merge(real, Reaper.layerNone)))

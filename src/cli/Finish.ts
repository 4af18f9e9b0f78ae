/**
 * Ends every server of a command and turns what could not be confirmed gone into exit code 7.
 *
 * Code 7 replaces only 0 and 5 (spec section 1): a command that already failed keeps its own code, but the
 * processes are named either way.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { SigilCleanup } from "./CleanupFailure.ts"
import type { Registry } from "../server/Registry.ts"
import { Output } from "./Output.ts"

/** Closes all generations; the exit code of the command, given what it would have been. */
export const finish = (
  registry: Pick<Context.Tag.Service<typeof Registry>, "closeAll">,
  code: number
): Effect.Effect<number, never, Output> =>
  Effect.gen(function* () {
    const output = yield* Output
    const left = (yield* registry.closeAll).filter(({ report }) => !report.complete)
    if (left.length === 0) return code
    for (const { server, report } of left) {
      const processes = report.survivors.map(({ pid, command }) => `${pid} (${command})`).join(", ")
      yield* output.failure(
        new SigilCleanup({
          code: "SIGIL_CLEANUP_INCOMPLETE",
          reason: report.reason ?? "processes_left",
          text: `Processes of server '${server}' could not be confirmed gone${processes === "" ? "." : `: ${processes}.`}`,
          where: { server, operation: "close" },
          details: { survivors: report.survivors }
        })
      )
    }
    return code === 0 || code === 5 ? 7 : code
  })

/** Runs what may fail; on failure every server is ended before the failure goes on. */
export const orFail = <A, E, R>(
  registry: Context.Tag.Service<typeof Registry>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R | Output> =>
  Effect.gen(function* () {
    const outcome = yield* Effect.either(effect)
    if (Either.isRight(outcome)) return outcome.right
    const output = yield* Output
    yield* output.progress("")
    // The failure keeps its own exit code, whatever the cleanup says.
    yield* finish(registry, 3)
    return yield* Effect.fail(outcome.left)
  })

/**
 * Whether the state of the workspace can be written: without it no call is made (spec section 2).
 *
 * What a call leaves behind (artifacts, logs, records) must not be lost silently. Looked at once per runtime, at
 * the first call, so that reading commands work on a read-only home.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import { failureFields } from "../base/Failure.ts"
import { ensurePrivateDirectory } from "../platform/AtomicFile.ts"

/** The state directory cannot be used. Code `SIGIL_STATE_UNWRITABLE`. */
export class StateError extends Schema.TaggedError<StateError>("sigil/StateError")("StateError", failureFields) {
  override get message(): string {
    return this.text
  }
}

/** The state directory of the workspace. */
export class StateDirectory extends Context.Tag("sigil/policy/StateDirectory")<
  StateDirectory,
  {
    /** Succeeds when the directory is there and can be written; the success is remembered. */
    readonly ready: Effect.Effect<void, StateError>
    /** Whether `ready` has succeeded before. */
    readonly isReady: () => boolean
  }
>() {}

/** The state under one directory. */
export const layer = (directory: string): Layer.Layer<StateDirectory> =>
  Layer.sync(StateDirectory, () => {
    let known = false
    const fail = (detail: string): StateError =>
      new StateError({
        code: "SIGIL_STATE_UNWRITABLE",
        reason: "state_unwritable",
        text: `The state directory '${directory}' cannot be written, so no call is made: ${detail}`,
        fix: "Make it writable, or set SIGIL_STATE_HOME to a directory that is.",
        where: { file: directory }
      })
    return {
      isReady: () => known,
      ready: Effect.suspend(() =>
        known
          ? Effect.void
          : ensurePrivateDirectory(directory).pipe(
              Effect.mapError((error) => fail(error.text)),
              Effect.andThen(
                Effect.try({
                  try: () => fs.accessSync(directory, fs.constants.W_OK),
                  catch: () => fail("permission denied")
                })
              ),
              Effect.tap(() =>
                Effect.sync(() => {
                  known = true
                })
              )
            )
      )
    }
  })

/** State that needs no directory. */
export const layerMemory: Layer.Layer<StateDirectory> = Layer.succeed(StateDirectory, {
  ready: Effect.void,
  isReady: () => true
})

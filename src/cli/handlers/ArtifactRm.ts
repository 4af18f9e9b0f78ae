/** `sigil artifact rm`: one kept result, or all of this workspace. */
import * as Effect from "effect/Effect"
import { Artifacts } from "../../tools/Artifacts.ts"
import type { Input } from "../commands/ArtifactRm.ts"
import type { Handler } from "../Handler.ts"
import * as KeptResults from "../KeptResults.ts"
import { Output } from "../Output.ts"
import { usage } from "../UsageError.ts"

/** The handler. */
export const handler: Handler<Input> = ({ args, options }) =>
  Effect.gen(function* () {
    const output = yield* Output
    const artifacts = yield* Artifacts
    if ((args.handle === undefined) === !options.all)
      return yield* usage(["artifact", "rm"], "Give one handle, or --all.")
    const handles =
      args.handle === undefined ? (yield* artifacts.list).map(({ handle }): string => handle) : [args.handle]
    yield* Effect.forEach(handles, (handle) => artifacts.remove(handle), { discard: true })
    yield* output.document("artifacts_removed", { schema: "sigil.artifacts.removed/1", removed: handles })
    yield* output.text([`Removed ${handles.length} kept result${handles.length === 1 ? "" : "s"}.`])
    return 0
  }).pipe(Effect.provide(KeptResults.layer))

/** `sigil artifact list`. */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { Artifacts } from "../../tools/Artifacts.ts"
import type { Input } from "../commands/ArtifactList.ts"
import type { Handler } from "../Handler.ts"
import * as KeptResults from "../KeptResults.ts"
import { Output } from "../Output.ts"

/** The handler. */
export const handler: Handler<Input> = () =>
  Effect.gen(function* () {
    const output = yield* Output
    const kept = yield* Effect.flatMap(Artifacts, (artifacts) => artifacts.list)
    const dated = kept
      .map((stored) => ({ ...stored, at: fs.statSync(stored.path, { throwIfNoEntry: false })?.mtime ?? new Date(0) }))
      .sort((left, right) => right.at.getTime() - left.at.getTime())
    yield* output.document("artifacts", {
      schema: "sigil.artifacts/1",
      artifacts: dated.map(({ handle, path, bytes, at }) => ({ handle, path, bytes, time: at.toISOString() }))
    })
    if (dated.length === 0) yield* output.text(["No results are kept for this workspace."])
    else {
      yield* output.table(
        ["HANDLE", "BYTES", "MADE", "FILE"],
        dated.map(({ handle, bytes, at, path }) => [handle, String(bytes), at.toISOString(), path])
      )
    }
    return 0
  }).pipe(Effect.provide(KeptResults.layer))

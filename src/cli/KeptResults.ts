/** The kept results of this workspace, for the `artifact` commands; no server is involved. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Locations } from "../config/Locations.ts"
import * as Random from "../platform/Random.ts"
import * as Declarations from "../runtime/Declarations.ts"
import * as Artifacts from "../tools/Artifacts.ts"
import { runtimeOptions, snapshot } from "./Session.ts"

/** Artifacts of the workspace that the global options name. */
export const layer = Layer.unwrapEffect(
  Effect.map(runtimeOptions, (run) =>
    Layer.unwrapEffect(
      Effect.gen(function* () {
        const locations = yield* Locations
        const { workspace } = yield* snapshot
        return Artifacts.layer(locations.artifacts(workspace))
      })
    ).pipe(Layer.provide(Declarations.layer(run)), Layer.provide(Random.layer))
  )
)

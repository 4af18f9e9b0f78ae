/** Randomness as a service: ids and jitter, so that tests can fix them. */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { randomUUID } from "node:crypto"

/** Source of ids. */
export class Random extends Context.Tag("sigil/platform/Random")<
  Random,
  {
    /** A fresh UUID, version 4. */
    readonly uuid: () => string
    /** A number from 0 up to 1, for jitter. */
    readonly fraction: () => number
  }
>() {}

/** The operating system's randomness. */
export const layer: Layer.Layer<Random> = Layer.succeed(Random, { uuid: randomUUID, fraction: Math.random })

/** Counts upwards: `00000000-0000-4000-8000-000000000001` and so on; every fraction is a half. */
export const layerTest: Layer.Layer<Random> = Layer.sync(Random, () => {
  let next = 0
  return { uuid: () => `00000000-0000-4000-8000-${String(++next).padStart(12, "0")}`, fraction: () => 0.5 }
})

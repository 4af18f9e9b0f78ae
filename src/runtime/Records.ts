/** The audit log of the workspace that the configuration names, as a layer. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as AuditLog from "../audit/AuditLog.ts"
import type { ConfigError } from "../config/ConfigError.ts"
import { Configuration } from "../config/Configuration.ts"
import { Locations } from "../config/Locations.ts"
import * as Random from "../platform/Random.ts"

/** The log; it touches the disk at the first record. */
export const layer: Layer.Layer<AuditLog.AuditLog, ConfigError, Configuration | Locations> = Layer.unwrapEffect(
  Effect.gen(function* () {
    const locations = yield* Locations
    const random = yield* Random.Random
    const { workspace, settings } = yield* Effect.flatMap(Configuration, (configuration) => configuration.load)
    return AuditLog.layer(
      { log: locations.auditLog(workspace), head: locations.auditHead(workspace) },
      { sync: settings.audit.sync, run: random.uuid() }
    )
  })
).pipe(Layer.provide(Random.layer))

/**
 * Export of traces and metrics over OTLP/HTTP, when the environment asks for it (spec section 13).
 *
 * Without `OTEL_EXPORTER_OTLP_ENDPOINT` (or a signal's own variable) this is three reads of the environment:
 * nothing is loaded, made, sent or slowed. With it the exporter is loaded and its tracer installed; closing the
 * layer's scope sends what is left, at most two seconds. A program that has installed a tracer of its own keeps
 * it: sigil's spans go there, and nothing is exported here.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { HostEnvironment } from "../platform/HostEnvironment.ts"
import { Random } from "../platform/Random.ts"
import { Secrets } from "../policy/Secrets.ts"
import { isSilent } from "./CallSpan.ts"
import { ofEnvironment, toSpan } from "./TraceContext.ts"

/** Variables that name a collector; with none of them there is nothing to do. */
const endpoints = [
  "OTEL_EXPORTER_OTLP_ENDPOINT",
  "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
  "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
] as const

/** Whether the environment asks for anything; the exporter is loaded only then. */
export const isWanted = (get: (name: string) => string | undefined): boolean =>
  endpoints.some((name) => (get(name) ?? "").trim() !== "") &&
  (get("OTEL_SDK_DISABLED") ?? "").trim().toLowerCase() !== "true"

/** Installs the exporter the environment asks for; changes nothing when it asks for none. Never fails. */
export const layer: Layer.Layer<never, never, HostEnvironment | Random | Secrets> = Layer.unwrapScoped(
  Effect.gen(function* () {
    const host = yield* HostEnvironment
    const tracer = yield* Effect.tracer
    if (!isSilent(tracer) || !isWanted(host.get)) return Layer.empty
    const random = yield* Random
    const secrets = yield* Secrets
    const loaded = yield* Effect.either(Effect.tryPromise(() => import("./OtlpExporter.ts")))
    if (loaded._tag === "Left") {
      yield* Effect.logWarning("The telemetry exporter cannot be loaded; nothing is exported.")
      return Layer.empty
    }
    const remote = ofEnvironment(host.get)
    const exporter = yield* loaded.right.open(host.get, {
      uuid: random.uuid,
      redact: secrets.redactText,
      hide: secrets.register,
      ...(remote === undefined ? {} : { remote: toSpan(remote) })
    })
    if (exporter === undefined) return Layer.empty
    return Layer.setTracer(exporter.tracer)
  })
)

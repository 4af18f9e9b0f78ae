/**
 * What the standard variables of OpenTelemetry ask for, read once, pure.
 *
 * Without an endpoint nothing is asked for: unlike an SDK, sigil never sends to a default address. A variable
 * that cannot be used costs itself and a warning that names it, never its value. Headers hold credentials, so
 * they are `Redacted` from here on.
 */
import * as Redacted from "effect/Redacted"
import { SECOND_MS } from "../base/Units.ts"
import { VERSION } from "../base/Version.ts"

/** Answer of a collector to one request, at most (OpenTelemetry's default). */
const TIMEOUT_MS = 10 * SECOND_MS
/** Longest time a span waits for its batch (OpenTelemetry's default). */
const SCHEDULE_DELAY_MS = 5 * SECOND_MS
/** Between two exports of metrics (OpenTelemetry's default). */
const METRIC_INTERVAL_MS = 60 * SECOND_MS
/** Longest interval that a variable may set. */
const MAX_MS = 3_600 * SECOND_MS

/** Reads one variable. */
export type Get = (name: string) => string | undefined

/** Where one signal goes. */
export interface Target {
  /** Address without user and password. */
  readonly url: URL
  readonly headers: Redacted.Redacted<{ readonly [name: string]: string }>
  readonly gzip: boolean
  /** Time for one request, ms. */
  readonly timeoutMs: number
}

/** Everything the exporter needs to know. */
export interface Settings {
  readonly traces: Target | undefined
  readonly metrics: Target | undefined
  /** Attributes of the resource, `service.name` among them. */
  readonly resource: { readonly [name: string]: string }
  readonly scheduleDelayMs: number
  readonly metricIntervalMs: number
  readonly temporality: "cumulative" | "delta"
  /** Variables that could not be used, one sentence each. */
  readonly problems: ReadonlyArray<string>
}

/** What a signal is called in variables and paths. */
const signals = { traces: "TRACES", metrics: "METRICS" } as const
type Signal = keyof typeof signals

const text = (get: Get, name: string): string => (get(name) ?? "").trim()

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/
/** Headers that the exporter sets itself, or that would break the request. */
const ownHeaders = new Set([
  "content-type",
  "content-length",
  "content-encoding",
  "transfer-encoding",
  "connection",
  "host"
])

/** `key=value,key=value` with percent-encoded values; `undefined` when it is not of that form. */
export const parsePairs = (list: string): ReadonlyArray<readonly [string, string]> | undefined => {
  const pairs: Array<readonly [string, string]> = []
  for (const part of list.split(",")) {
    if (part.trim() === "") continue
    const at = part.indexOf("=")
    if (at < 1) return undefined
    try {
      pairs.push([part.slice(0, at).trim(), decodeURIComponent(part.slice(at + 1).trim())])
    } catch {
      return undefined
    }
  }
  return pairs
}

/** Reads all variables. */
export const read = (get: Get): Settings => {
  const problems: Array<string> = []
  const either = (signal: Signal, what: string): string =>
    text(get, `OTEL_EXPORTER_OTLP_${signals[signal]}_${what}`) || text(get, `OTEL_EXPORTER_OTLP_${what}`)
  const milliseconds = (value: string, fallback: number, name: string): number => {
    if (value === "") return fallback
    const ms = Number(value)
    if (Number.isFinite(ms) && ms >= 0) return Math.min(Math.max(ms, 1), MAX_MS)
    problems.push(`${name} is not a number of milliseconds; ${fallback} is used.`)
    return fallback
  }

  const address = (signal: Signal): URL | undefined => {
    const special = `OTEL_EXPORTER_OTLP_${signals[signal]}_ENDPOINT`
    const own = text(get, special)
    const common = text(get, "OTEL_EXPORTER_OTLP_ENDPOINT")
    if (own === "" && common === "") return undefined
    const name = own === "" ? "OTEL_EXPORTER_OTLP_ENDPOINT" : special
    const written = own === "" ? common : own
    const url = URL.canParse(written) ? new URL(written) : undefined
    if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
      problems.push(`${name} is not an http or https URL; no ${signal} are exported.`)
      return undefined
    }
    // The common address is a base, a signal's own is used as it stands (OTLP exporter specification).
    if (own === "") url.pathname = `${url.pathname.replace(/\/+$/, "")}/v1/${signal}`
    return url
  }

  const headersOf = (signal: Signal, url: URL): { readonly [name: string]: string } => {
    const headers = new Map<string, string>()
    if (url.username !== "" || url.password !== "") {
      const pair = `${safeDecode(url.username)}:${safeDecode(url.password)}`
      headers.set("authorization", `Basic ${Buffer.from(pair, "utf8").toString("base64")}`)
      url.username = ""
      url.password = ""
    }
    const pairs = parsePairs(either(signal, "HEADERS"))
    if (pairs === undefined) problems.push("OTEL_EXPORTER_OTLP_HEADERS is not a list of key=value; it is ignored.")
    for (const [name, value] of pairs ?? []) {
      const key = name.toLowerCase()
      if (!token.test(name) || !headerValue.test(value) || ownHeaders.has(key)) {
        problems.push("OTEL_EXPORTER_OTLP_HEADERS holds a header that cannot be sent; it is left out.")
      } else headers.set(key, value)
    }
    return Object.fromEntries(headers)
  }

  const target = (signal: Signal): Target | undefined => {
    const exporter = text(get, `OTEL_${signals[signal]}_EXPORTER`).toLowerCase()
    if (exporter === "none") return undefined
    const url = address(signal)
    if (url === undefined) return undefined
    if (either(signal, "PROTOCOL").toLowerCase() === "grpc") {
      problems.push(
        `OTLP over gRPC is not spoken here; set OTEL_EXPORTER_OTLP_PROTOCOL=http/json. No ${signal} are exported.`
      )
      return undefined
    }
    const headers = Redacted.make(headersOf(signal, url))
    return {
      url,
      headers,
      gzip: either(signal, "COMPRESSION").toLowerCase() === "gzip",
      timeoutMs: milliseconds(either(signal, "TIMEOUT"), TIMEOUT_MS, "OTEL_EXPORTER_OTLP_TIMEOUT")
    }
  }

  const resource = (): { readonly [name: string]: string } => {
    const pairs = parsePairs(text(get, "OTEL_RESOURCE_ATTRIBUTES"))
    if (pairs === undefined) problems.push("OTEL_RESOURCE_ATTRIBUTES is not a list of key=value; it is ignored.")
    const service = text(get, "OTEL_SERVICE_NAME")
    return {
      "service.name": "sigil",
      "service.version": VERSION,
      ...Object.fromEntries(pairs ?? []),
      ...(service === "" ? {} : { "service.name": service }),
      "telemetry.sdk.language": "nodejs",
      "telemetry.sdk.name": "sigil",
      "telemetry.sdk.version": VERSION
    }
  }

  const preference = text(get, "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE").toLowerCase()
  return {
    traces: target("traces"),
    metrics: target("metrics"),
    resource: resource(),
    scheduleDelayMs: milliseconds(text(get, "OTEL_BSP_SCHEDULE_DELAY"), SCHEDULE_DELAY_MS, "OTEL_BSP_SCHEDULE_DELAY"),
    metricIntervalMs: milliseconds(
      text(get, "OTEL_METRIC_EXPORT_INTERVAL"),
      METRIC_INTERVAL_MS,
      "OTEL_METRIC_EXPORT_INTERVAL"
    ),
    // "lowmemory" means delta for histograms, the only instruments here.
    temporality: preference === "delta" || preference === "lowmemory" ? "delta" : "cumulative",
    problems: [...new Set(problems)]
  }
}

/** An address as it may be shown: without user, password, query and fragment. */
export const shown = (url: URL): string => `${url.protocol}//${url.host}${url.pathname}`

/**
 * Header values that are credentials by their name, whole and without their scheme, for the redactor. Values such
 * as a tenant or a data set are left out: hiding them would hide ordinary words in every result.
 */
export const credentialsOf = (settings: Settings): ReadonlyArray<string> => {
  const credential = /auth|key|token|secret|passw|cookie|credential|team/i
  const values = [settings.traces, settings.metrics].flatMap((target) =>
    target === undefined ? [] : Object.entries(Redacted.value(target.headers))
  )
  return [
    ...new Set(
      values
        .filter(([name]) => credential.test(name))
        .flatMap(([, value]) => [value, value.replace(/^[A-Za-z]+ +/, "")])
        .filter((value) => value !== "")
    )
  ]
}

const safeDecode = (part: string): string => {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

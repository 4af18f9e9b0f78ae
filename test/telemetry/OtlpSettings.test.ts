import * as Redacted from "effect/Redacted"
import { assert, describe, it } from "vitest"
import { isWanted } from "../../src/telemetry/Otlp.ts"
import { credentialsOf, parsePairs, read, shown } from "../../src/telemetry/OtlpSettings.ts"

const from = (variables: { readonly [name: string]: string }) => (name: string) => variables[name]
const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" }
const headersOf = (variables: { readonly [name: string]: string }) => {
  const { traces } = read(from({ ...endpoint, ...variables }))
  return traces === undefined ? undefined : Redacted.value(traces.headers)
}

describe("OtlpSettings", () => {
  it("wants nothing without an endpoint, with an empty one, or when the SDK is disabled", () => {
    assert.isFalse(isWanted(from({})))
    assert.isFalse(isWanted(from({ OTEL_SERVICE_NAME: "x", OTEL_EXPORTER_OTLP_HEADERS: "a=b" })))
    assert.isFalse(isWanted(from({ OTEL_EXPORTER_OTLP_ENDPOINT: " " })))
    assert.isFalse(isWanted(from({ ...endpoint, OTEL_SDK_DISABLED: "TRUE" })))
    assert.isTrue(isWanted(from({ ...endpoint, OTEL_SDK_DISABLED: "no" })))
    assert.isTrue(isWanted(from({ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "http://h" })))
  })

  it("appends the signal's path to the common address and takes a signal's own as it stands", () => {
    const path = (variables: { readonly [name: string]: string }) => {
      const { traces, metrics } = read(from(variables))
      return [traces?.url.href, metrics?.url.href]
    }
    assert.deepEqual(path(endpoint), ["http://127.0.0.1:4318/v1/traces", "http://127.0.0.1:4318/v1/metrics"])
    assert.deepEqual(path({ OTEL_EXPORTER_OTLP_ENDPOINT: "https://h/base/?k=v" }), [
      "https://h/base/v1/traces?k=v",
      "https://h/base/v1/metrics?k=v"
    ])
    assert.deepEqual(path({ ...endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://other" }), [
      "http://other/",
      "http://127.0.0.1:4318/v1/metrics"
    ])
    assert.deepEqual(path({ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "http://only/m" }), [undefined, "http://only/m"])
    assert.deepEqual(path({ ...endpoint, OTEL_TRACES_EXPORTER: "none" })[0], undefined)
  })

  it("says which variable cannot be used, without its value", () => {
    const bad = read(
      from({
        OTEL_EXPORTER_OTLP_ENDPOINT: "not a url s3cret",
        OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "file:///s3cret",
        OTEL_RESOURCE_ATTRIBUTES: "s3cret",
        OTEL_BSP_SCHEDULE_DELAY: "s3cret"
      })
    )
    assert.isUndefined(bad.traces)
    assert.isUndefined(bad.metrics)
    assert.equal(bad.problems.length, 4)
    assert.notInclude(bad.problems.join(), "s3cret")
    const grpc = read(from({ ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }))
    assert.deepEqual([grpc.traces, grpc.metrics], [undefined, undefined])
    assert.match(grpc.problems[0] ?? "", /http\/json/)
  })

  it("reads headers, percent-decoded and redacted; a signal's own replace the common ones", () => {
    assert.deepEqual(headersOf({ OTEL_EXPORTER_OTLP_HEADERS: "Authorization=Bearer%20s3cret, x-scope=a=b" }), {
      authorization: "Bearer s3cret",
      "x-scope": "a=b"
    })
    assert.deepEqual(headersOf({ OTEL_EXPORTER_OTLP_HEADERS: "a=1", OTEL_EXPORTER_OTLP_TRACES_HEADERS: "b=2" }), {
      b: "2"
    })
    assert.deepEqual(headersOf({ OTEL_EXPORTER_OTLP_HEADERS: "bad name=1,ok=2,cr=%0d%0ax,host=evil" }), { ok: "2" })
    assert.deepEqual(headersOf({ OTEL_EXPORTER_OTLP_HEADERS: "no pair" }), {})
    const settings = read(from({ ...endpoint, OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20s3cret" }))
    assert.notInclude(JSON.stringify(settings), "s3cret")
    assert.notInclude(String(settings.traces?.headers), "s3cret")
  })

  it("moves a user and password of the address into a header, so that the address can be shown", () => {
    const { traces } = read(from({ OTEL_EXPORTER_OTLP_ENDPOINT: "https://me:s3cr%65t@host:1/x?token=s3cret" }))
    assert.isDefined(traces)
    assert.deepEqual(Redacted.value(traces.headers), {
      authorization: `Basic ${Buffer.from("me:s3cret").toString("base64")}`
    })
    assert.equal(shown(traces.url), "https://host:1/x/v1/traces")
    assert.notInclude(traces.url.href.replace(/\?.*/, ""), "s3cr")
  })

  it("knows which header values are credentials", () => {
    const settings = read(
      from({ ...endpoint, OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20tok-1,x-api-key=k-2,x-tenant=prod" })
    )
    assert.deepEqual(credentialsOf(settings), ["Bearer tok-1", "tok-1", "k-2"])
  })

  it("names the service: the variable over the resource attributes over the default", () => {
    const name = (variables: { readonly [name: string]: string }) =>
      read(from({ ...endpoint, ...variables })).resource["service.name"]
    assert.equal(name({}), "sigil")
    assert.equal(name({ OTEL_RESOURCE_ATTRIBUTES: "service.name=a,deployment.environment.name=x%20y" }), "a")
    assert.equal(name({ OTEL_RESOURCE_ATTRIBUTES: "service.name=a", OTEL_SERVICE_NAME: "b" }), "b")
    const { resource } = read(from({ ...endpoint, OTEL_RESOURCE_ATTRIBUTES: "team=x%20y" }))
    assert.equal(resource["team"], "x y")
  })

  it("reads times within bounds and the temporality", () => {
    const settings = read(
      from({
        ...endpoint,
        OTEL_EXPORTER_OTLP_TIMEOUT: "2500",
        OTEL_METRIC_EXPORT_INTERVAL: "-1",
        OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: "LowMemory",
        OTEL_EXPORTER_OTLP_COMPRESSION: "gzip"
      })
    )
    assert.deepEqual(
      [settings.traces?.timeoutMs, settings.metricIntervalMs, settings.temporality, settings.traces?.gzip],
      [2_500, 60_000, "delta", true]
    )
    assert.equal(read(from(endpoint)).temporality, "cumulative")
  })

  it("splits pairs at the first equals sign and refuses what is no list of pairs", () => {
    assert.deepEqual(parsePairs("a=1,, b = 2=3 ,c="), [
      ["a", "1"],
      ["b", "2=3"],
      ["c", ""]
    ])
    assert.isUndefined(parsePairs("a=1,b"))
    assert.isUndefined(parsePairs("=1"))
    assert.isUndefined(parsePairs("a=%zz"))
  })
})

import * as fc from "fast-check"
import * as Tracer from "effect/Tracer"
import { assert, describe, it } from "vitest"
import * as Metrics from "../../src/telemetry/Metrics.ts"

const { operationDuration: instrument } = Metrics

describe("Metrics", () => {
  it("has the names, units and buckets of the conventions", () => {
    assert.deepEqual(
      [Metrics.operationDuration.name, Metrics.sessionDuration.name],
      ["mcp.client.operation.duration", "mcp.client.session.duration"]
    )
    for (const { unit, boundaries } of [Metrics.operationDuration, Metrics.sessionDuration]) {
      assert.equal(unit, "s")
      assert.deepEqual(boundaries, [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300])
    }
  })

  it("counts every measurement once, in the bucket whose upper bound is the first not below it", () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1_000, noNaN: true }), { minLength: 1 }), (values) => {
        const store = Metrics.makeStore()
        for (const value of values) store.record(instrument, value, { a: "b" })
        const row = store.collect()[0]?.series[0]
        assert.isDefined(row)
        assert.equal(row.count, values.length)
        assert.equal(row.min, Math.min(...values))
        assert.equal(row.max, Math.max(...values))
        assert.closeTo(
          row.sum,
          values.reduce((sum, value) => sum + value, 0),
          1e-6
        )
        const expected = Array.from(
          { length: 15 },
          (_, index) =>
            values.filter((value) => {
              const above = index === 0 ? Number.NEGATIVE_INFINITY : (instrument.boundaries[index - 1] ?? 0)
              return value > above && value <= (instrument.boundaries[index] ?? Number.POSITIVE_INFINITY)
            }).length
        )
        assert.deepEqual(row.buckets, expected)
      })
    )
    assert.equal(Metrics.bucketOf(instrument.boundaries, 0.01), 0)
    assert.equal(Metrics.bucketOf(instrument.boundaries, 300.1), 14)
  })

  it("keeps one row per set of attributes, whatever their order", () => {
    const store = Metrics.makeStore()
    store.record(instrument, 1, { a: "1", b: 2 })
    store.record(instrument, 1, { b: 2, a: "1" })
    store.record(instrument, 1, { a: "1", b: "2" })
    assert.deepEqual(
      store.collect()[0]?.series.map(({ count }) => count),
      [2, 1]
    )
  })

  it("counts in one overflow row what a server's names would make without end", () => {
    const store = Metrics.makeStore()
    for (let index = 0; index < Metrics.MAX_SERIES + 500; index += 1) store.record(instrument, 1, { tool: `t${index}` })
    const series = store.collect()[0]?.series ?? []
    assert.equal(series.length, Metrics.MAX_SERIES)
    const overflow = series.find(({ attributes }) => attributes["otel.metric.overflow"] === true)
    assert.equal(overflow?.count, 501)
    store.record(instrument, 1, { tool: "t0" })
    assert.equal(store.collect()[0]?.series[0]?.count, 2)
  })

  it("belongs to the tracer it was given to, and forgets when told", () => {
    const store = Metrics.makeStore()
    const tracer = Tracer.make({ span: () => assert.fail("no span is made"), context: (run) => run() })
    assert.isUndefined(Metrics.meterOf(tracer))
    Metrics.meterOf(Metrics.withMeter(tracer, store))?.record(instrument, 1, {})
    assert.isFalse(store.isEmpty())
    store.record(instrument, Number.NaN, { bad: true })
    assert.equal(store.collect()[0]?.series.length, 1)
    store.reset()
    assert.isTrue(store.isEmpty())
  })
})

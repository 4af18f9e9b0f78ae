/**
 * Durations as histograms, with the names, buckets and attributes of OpenTelemetry's conventions for MCP.
 *
 * A meter belongs to a tracer: whoever installs a tracer that measures gets both, and a program without one pays
 * nothing beyond the comparison that spans make anyway. A meter keeps one row per set of attributes, at most
 * `MAX_SERIES` for each instrument; what comes after that is counted in one overflow row, so that names chosen
 * by a server cannot fill the memory.
 */
import type * as Tracer from "effect/Tracer"
import { SECOND_MS } from "../base/Units.ts"
import type { Attributes } from "./CallSpan.ts"

/** Upper bounds of the buckets, seconds (conventions for MCP). */
export const DURATION_BOUNDARIES: ReadonlyArray<number> = [
  0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300
]
/** Sets of attributes kept for each instrument, the overflow row included (OpenTelemetry's default). */
export const MAX_SERIES = 2_000
/** Marks the row that takes what has no row of its own (OpenTelemetry metrics SDK). */
const OVERFLOW: Attributes = { "otel.metric.overflow": true }

/** One histogram. */
export interface Instrument {
  readonly name: string
  readonly description: string
  /** UCUM unit. */
  readonly unit: string
  readonly boundaries: ReadonlyArray<number>
}

/** From sending a request to its answer. */
export const operationDuration: Instrument = {
  name: "mcp.client.operation.duration",
  description: "Time from sending an MCP request or notification until its response or acknowledgement.",
  unit: "s",
  boundaries: DURATION_BOUNDARIES
}

/** From the end of the handshake to the end of the connection. */
export const sessionDuration: Instrument = {
  name: "mcp.client.session.duration",
  description: "Time an MCP session lasted, as the client saw it.",
  unit: "s",
  boundaries: DURATION_BOUNDARIES
}

/** Takes measurements. */
export interface Meter {
  /** One measurement in the instrument's unit. Never fails. */
  readonly record: (instrument: Instrument, value: number, attributes: Attributes) => void
}

/** One row of a histogram. */
export interface Series {
  readonly attributes: Attributes
  readonly count: number
  readonly sum: number
  readonly min: number
  readonly max: number
  /** One more than there are boundaries: the last counts what is above all of them. */
  readonly buckets: ReadonlyArray<number>
}

/** Everything one instrument measured. */
export interface Histogram {
  readonly instrument: Instrument
  readonly series: ReadonlyArray<Series>
}

/** A meter that can be read. */
export interface Store extends Meter {
  /** Everything since the start, or since the last `reset`. */
  readonly collect: () => ReadonlyArray<Histogram>
  /** Forgets all measurements. */
  readonly reset: () => void
  readonly isEmpty: () => boolean
}

const meters = new WeakMap<Tracer.Tracer, Meter>()

/** The same tracer, from now on with a meter. */
export const withMeter = (tracer: Tracer.Tracer, meter: Meter): Tracer.Tracer => {
  meters.set(tracer, meter)
  return tracer
}

/** The meter of a tracer, if it has one. */
export const meterOf = (tracer: Tracer.Tracer): Meter | undefined => meters.get(tracer)

/** Milliseconds of a clock as the seconds that the conventions want. */
export const seconds = (ms: number): number => Math.max(0, ms) / SECOND_MS

interface Row {
  readonly attributes: Attributes
  count: number
  sum: number
  min: number
  max: number
  readonly buckets: Array<number>
}

const keyOf = (attributes: Attributes): string =>
  JSON.stringify(Object.entries(attributes).sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0)))

/** Index of the bucket of a value: boundaries are inclusive upper bounds. */
export const bucketOf = (boundaries: ReadonlyArray<number>, value: number): number => {
  const index = boundaries.findIndex((boundary) => value <= boundary)
  return index < 0 ? boundaries.length : index
}

/** A meter that keeps its measurements. */
export const makeStore = (): Store => {
  const instruments = new Map<Instrument, Map<string, Row>>()

  const rowOf = (instrument: Instrument, attributes: Attributes): Row => {
    const rows = instruments.get(instrument) ?? new Map<string, Row>()
    instruments.set(instrument, rows)
    const key = keyOf(attributes)
    const known = rows.get(key)
    if (known !== undefined) return known
    const full = rows.size >= MAX_SERIES - 1 && key !== keyOf(OVERFLOW)
    if (full) return rows.get(keyOf(OVERFLOW)) ?? addRow(rows, instrument, OVERFLOW)
    return addRow(rows, instrument, attributes)
  }
  const addRow = (rows: Map<string, Row>, instrument: Instrument, attributes: Attributes): Row => {
    const row: Row = {
      attributes,
      count: 0,
      sum: 0,
      min: Number.POSITIVE_INFINITY,
      max: Number.NEGATIVE_INFINITY,
      buckets: Array.from({ length: instrument.boundaries.length + 1 }, () => 0)
    }
    rows.set(keyOf(attributes), row)
    return row
  }

  return {
    record: (instrument, value, attributes) => {
      if (!Number.isFinite(value)) return
      const row = rowOf(instrument, attributes)
      const bucket = bucketOf(instrument.boundaries, value)
      row.count += 1
      row.sum += value
      row.min = Math.min(row.min, value)
      row.max = Math.max(row.max, value)
      row.buckets[bucket] = (row.buckets[bucket] ?? 0) + 1
    },
    collect: () =>
      [...instruments].map(([instrument, rows]) => ({
        instrument,
        series: [...rows.values()].map((row) => ({ ...row, buckets: [...row.buckets] }))
      })),
    reset: () => instruments.clear(),
    isEmpty: () => instruments.size === 0
  }
}

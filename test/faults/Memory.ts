/**
 * What a row adds to the memory of the host process at its height and in the end.
 *
 * With `--expose-gc` the garbage of before is collected first, so the figures mean something; without it they hold
 * whatever the collector has not come round to. Only for rows that run alone.
 */

import { setImmediate as nextTurn } from "node:timers/promises"

/** Time between two samples, ms. */
const SAMPLE_MS = 5

/** Growth in bytes. */
export interface Growth {
  /** Resident memory at its height. */
  readonly rss: number
  /** Heap and buffers at their height, garbage included. */
  readonly heap: number
  /** Heap and buffers at the end, collected where that can be asked for. */
  readonly kept: number
}

const collect = async (): Promise<void> => {
  const { gc } = globalThis as { readonly gc?: () => void }
  // What the last turn of the event loop still holds is garbage only in the next one.
  for (let turn = 0; turn < 3; turn += 1) {
    await nextTurn()
    gc?.()
  }
}
const now = (): { readonly rss: number; readonly heap: number } => {
  const { rss, heapUsed, external } = process.memoryUsage()
  return { rss, heap: heapUsed + external }
}

/** Begins to watch; the returned function ends it. */
export const watchMemory = async (): Promise<() => Promise<Growth>> => {
  await collect()
  const before = now()
  let rss = 0
  let heap = 0
  const sample = (): void => {
    const seen = now()
    rss = Math.max(rss, seen.rss - before.rss)
    heap = Math.max(heap, seen.heap - before.heap)
  }
  const timer = setInterval(sample, SAMPLE_MS)
  return async () => {
    clearInterval(timer)
    sample()
    await collect()
    return { rss, heap, kept: now().heap - before.heap }
  }
}

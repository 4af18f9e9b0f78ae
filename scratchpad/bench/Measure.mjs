// Small helpers for paired measurements: rounds are interleaved, medians quoted, the load average printed.
import os from "node:os"

export const median = (values) => {
  const sorted = [...values].sort((left, right) => left - right)
  return sorted[Math.floor(sorted.length / 2)]
}

export const spread = (values) => (Math.max(...values) - Math.min(...values)) / median(values)

export const load = () =>
  `load average ${os
    .loadavg()
    .map((value) => value.toFixed(2))
    .join(" ")}`

export const row = (cells, widths) =>
  console.log(cells.map((cell, index) => String(cell).padEnd(widths[index])).join("  "))

/** CPU milliseconds of this process since `from`. */
export const cpuSince = (from) => {
  const used = process.cpuUsage(from)
  return (used.user + used.system) / 1000
}

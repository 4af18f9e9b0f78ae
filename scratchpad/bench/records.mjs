// What audit records and spans cost a call: the same calls with neither, with one, with the other.
// usage: npm run bench:records [-- ROUNDS]
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { cpuSince, load, median, row, spread } from "./Measure.mjs"

const here = path.dirname(fileURLToPath(import.meta.url))
const rounds = Math.max(7, Number(process.argv[2] ?? 7))
const echo = path.join(here, "servers", "echo.mjs")
const { open } = await import(path.join(here, "build", "host.js"))
const server = { command: process.execPath, args: [echo] }
const home = mkdtempSync(path.join(tmpdir(), "sigil-bench-"))
const always = path.join(home, "always.toml")
writeFileSync(always, '[audit]\nsync = "always"\n')

const contenders = {
  none: await open(server, { audit: "none", home: path.join(home, "none") }),
  "audit write": await open(server, { home: path.join(home, "write") }),
  "audit always": await open(server, { home: path.join(home, "always"), config: always }),
  spans: await open(server, { audit: "none", spans: true, home: path.join(home, "spans") }),
  "audit write, spans": await open(server, { spans: true, home: path.join(home, "both") })
}
const calls = { 1: 600, 16: 3_000 }
const messages = (total) => Array.from({ length: total }, (_, index) => ({ text: `message ${index}` }))
const figures = {}
const burst = async (name, inFlight) => {
  const total = name === "audit always" ? Math.ceil(calls[inFlight] / 5) : calls[inFlight]
  const from = process.cpuUsage()
  const begun = performance.now()
  await contenders[name].burst("echo", messages(total), inFlight)
  return { us: ((performance.now() - begun) / total) * 1000, cpuUs: (cpuSince(from) / total) * 1000 }
}
for (const name of Object.keys(contenders)) {
  for (const inFlight of [1, 16]) {
    figures[`${name} ${inFlight}`] = { us: [], cpuUs: [] }
    await burst(name, inFlight)
  }
}
for (let round = 0; round < rounds; round += 1) {
  for (const inFlight of [1, 16]) {
    for (const name of Object.keys(contenders)) {
      const { us, cpuUs } = await burst(name, inFlight)
      figures[`${name} ${inFlight}`].us.push(us)
      figures[`${name} ${inFlight}`].cpuUs.push(cpuUs)
    }
  }
}
for (const host of Object.values(contenders)) await host.close()
rmSync(home, { recursive: true, force: true })

const widths = [24, 12, 10, 12, 14]
console.log(`${rounds} interleaved rounds, Node ${process.version}, ${load()}`)
row(["", "us/call", "spread", "cpu us", "cpu / none"], widths)
for (const [name, { us, cpuUs }] of Object.entries(figures)) {
  const base = figures[`none ${name.endsWith(" 16") ? 16 : 1}`]
  row(
    [
      name,
      median(us).toFixed(1),
      `${(spread(us) * 100).toFixed(0)} %`,
      median(cpuUs).toFixed(1),
      (median(cpuUs) / median(base.cpuUs)).toFixed(2)
    ],
    widths
  )
}

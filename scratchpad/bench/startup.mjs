// 50 eager servers: sigil beside a bare starter with the same starts at a time; time, CPU, memory, the end of all.
// usage: npm run bench:startup [-- ROUNDS]
// Each run is a host process of its own, so sigil is as cold as in life. Loading modules is not in the figures.
import { spawnSync } from "node:child_process"
import { randomUUID } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { load, median, row, spread } from "./Measure.mjs"

const here = path.dirname(fileURLToPath(import.meta.url))
const rounds = Math.max(7, Number(process.argv[2] ?? 7))
const count = 50
const kinds = ["echo", "sdk"]
const home = mkdtempSync(path.join(tmpdir(), "sigil-bench-"))
const host = path.join(here, "fleet-host.mjs")

const run = (variant, kind) => {
  const args = ["--expose-gc", host, variant, kind, String(count), home, randomUUID()]
  const done = spawnSync(process.execPath, args, { encoding: "utf8", timeout: 120_000, killSignal: "SIGKILL" })
  if (done.status !== 0) throw new Error(`${variant} ${kind} ended with ${done.status ?? done.signal}: ${done.stderr}`)
  const figures = JSON.parse(done.stdout)
  return {
    ...figures,
    allMs: figures.startMs + figures.stopMs,
    allCpu: figures.startAllCpu + figures.stopAllCpu
  }
}

const runs = Object.fromEntries(kinds.flatMap((kind) => [`sigil ${kind}`, `bare ${kind}`].map((name) => [name, []])))
const before = load()
try {
  for (let round = 0; round < rounds; round += 1) {
    for (const kind of kinds) {
      for (const variant of round % 2 === 0 ? ["sigil", "bare"] : ["bare", "sigil"]) {
        runs[`${variant} ${kind}`].push(run(variant, kind))
      }
    }
  }
} finally {
  rmSync(home, { recursive: true, force: true })
}

const of = (name, field) => runs[name].map((figures) => figures[field])
const mid = (name, field) => median(of(name, field))
const percent = (values) => `${(spread(values) * 100).toFixed(0)} %`
const sum = (name, field) => of(name, field).reduce((total, value) => total + value, 0)
const mib = (bytes) => (bytes / 1_048_576).toFixed(3)

console.log(
  `${rounds} interleaved rounds, ${count} servers, Node ${process.version}, ${before} before, ${load()} after`
)
const widths = [10, 8, 8, 11, 12, 8, 8, 8, 11, 12, 8]
const more = ["spread", "host cpu ms", "all cpu ms", "spread"]
row(["", "ready ms", ...more, "end ms", ...more], widths)
for (const name of Object.keys(runs)) {
  const cells = ["start", "stop"].flatMap((step) => [
    mid(name, `${step}Ms`).toFixed(0),
    percent(of(name, `${step}Ms`)),
    mid(name, `${step}Cpu`).toFixed(0),
    mid(name, `${step}AllCpu`).toFixed(0),
    percent(of(name, `${step}AllCpu`))
  ])
  row([name, ...cells], widths)
}
console.log("all cpu: host and children; it decides where the time spreads over 15 %")
for (const kind of kinds) {
  const [ms, cpu] = ["openMs", "openCpu"].map((field) => mid(`sigil ${kind}`, field).toFixed(0))
  console.log(`sigil ${kind}: ready includes ${ms} ms, ${cpu} ms cpu for the runtime before its first start`)
}
console.log("sigil / bare, median of the pairs (least to most):")
for (const kind of kinds) {
  const ratio = (field) => {
    const pairs = of(`sigil ${kind}`, field).map((value, round) => value / of(`bare ${kind}`, field)[round])
    return `${median(pairs).toFixed(2)} (${Math.min(...pairs).toFixed(2)} to ${Math.max(...pairs).toFixed(2)})`
  }
  console.log(`${kind}, until ready: time ${ratio("startMs")}, all cpu ${ratio("startAllCpu")} (bar 1.3)`)
  console.log(`${kind}, the end: time ${ratio("stopMs")}, all cpu ${ratio("stopAllCpu")}`)
  console.log(`${kind}, both: time ${ratio("allMs")}, all cpu ${ratio("allCpu")}`)
}
row(
  ["", "rss / server", "heap / server", "heap kept", "empty rss", "slowest start", "survivors"],
  [12, 14, 14, 12, 12, 14]
)
for (const name of Object.keys(runs)) {
  const cells = ["rssPer", "heapPer", "keptHeap", "emptyRss"].map((field) => mib(mid(name, field)))
  const slowest = `${Math.max(...of(name, "slowestMs")).toFixed(0)} ms`
  row([name, ...cells, slowest, sum(name, "survivors")], [12, 14, 14, 12, 12, 14])
}
console.log("memory in MiB, collected; bar: sigil 1 per server")
for (const kind of kinds) {
  const failures = of(`sigil ${kind}`, "failures").flat()
  const timeouts = failures.filter((code) => code === "SIGIL_START_TIMEOUT").length
  const others = `other failed starts ${failures.length - timeouts}, unconfirmed ends ${sum(`sigil ${kind}`, "unconfirmed")}`
  console.log(`${kind}: start timeouts ${timeouts} of ${rounds * count} (bar 0), ${others}`)
}

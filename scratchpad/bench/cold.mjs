// Cold `mcp call`: process start to process end, teardown included; sigil beside mcporter and a bare Node client.
// usage: npm run bench:cold [-- ROUNDS]      (build first: npm run build)
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { load, median, row, spread } from "./Measure.mjs"

const here = path.dirname(fileURLToPath(import.meta.url))
const root = path.join(here, "..", "..")
const rounds = Math.max(7, Number(process.argv[2] ?? 9))
const echo = path.join(here, "servers", "echo.mjs")
const home = mkdtempSync(path.join(tmpdir(), "sigil-bench-"))
const config = path.join(home, "mcp.json")
writeFileSync(config, JSON.stringify({ mcpServers: { echo: { command: process.execPath, args: [echo] } } }))

const contenders = {
  "bare Node client": [path.join(here, "bare-client.mjs"), echo],
  sigil: [
    path.join(root, "dist", "bin.js"),
    "--mcp-config",
    config,
    "--strict-mcp-config",
    "mcp",
    "call",
    "echo",
    "echo",
    "text=hello",
    "--yes"
  ],
  "mcporter 0.9.0": [
    path.join(root, "node_modules", "mcporter", "dist", "cli.js"),
    "--config",
    config,
    "call",
    "echo.echo",
    "text=hello"
  ],
  "sigil --version": [path.join(root, "dist", "bin.js"), "--version"],
  "empty .mjs file": [path.join(here, "empty.mjs")]
}

const figures = Object.fromEntries(Object.keys(contenders).map((name) => [name, { wall: [], cpu: [] }]))
const env = { ...process.env, SIGIL_HOME: home }

const once = (name) => {
  const before = process.resourceUsage ? childCpu() : 0
  const begun = performance.now()
  const done = spawnSync(process.execPath, contenders[name], { encoding: "utf8", env, cwd: home })
  const wall = performance.now() - begun
  if (done.status !== 0) throw new Error(`${name} ended with ${done.status}: ${done.stderr}${done.stdout}`)
  return { wall, cpu: childCpu() - before }
}

// utime and stime of waited-for children, from /proc (fields 16 and 17, clock ticks of 10 ms).
import { readFileSync } from "node:fs"
function childCpu() {
  const stat = readFileSync("/proc/self/stat", "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return (Number(fields[13]) + Number(fields[14])) * 10
}

try {
  for (const name of Object.keys(contenders)) once(name)
  for (let round = 0; round < rounds; round += 1) {
    for (const name of Object.keys(contenders)) {
      const { wall, cpu } = once(name)
      figures[name].wall.push(wall)
      figures[name].cpu.push(cpu)
    }
  }
} finally {
  rmSync(home, { recursive: true, force: true })
}

const widths = [18, 12, 10, 12]
console.log(`${rounds} interleaved rounds, Node ${process.version}, ${load()}`)
row(["", "wall ms", "spread", "cpu ms"], widths)
for (const [name, { wall, cpu }] of Object.entries(figures)) {
  row([name, median(wall).toFixed(0), `${(spread(wall) * 100).toFixed(0)} %`, median(cpu).toFixed(0)], widths)
}
const ratio = (left, right, kind) => (median(figures[left][kind]) / median(figures[right][kind])).toFixed(2)
console.log(
  `sigil / mcporter: wall ${ratio("sigil", "mcporter 0.9.0", "wall")} (bar 0.75), cpu ${ratio("sigil", "mcporter 0.9.0", "cpu")}`
)
console.log(
  `sigil / bare client: wall ${ratio("sigil", "bare Node client", "wall")} (bar 2.5), cpu ${ratio("sigil", "bare Node client", "cpu")}`
)
console.log(`--version / empty file: cpu ${ratio("sigil --version", "empty .mjs file", "cpu")} (bar 1.3)`)

// A host that is killed: how long until no process of its servers lives (spec section 7: within a second on Linux).
// usage: npm run bench:kill [-- ROUNDS]
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { carries, marked } from "./Marked.mjs"
import { load, median } from "./Measure.mjs"

const here = path.dirname(fileURLToPath(import.meta.url))
const rounds = Math.max(9, Number(process.argv[2] ?? 9))
const servers = 20
/** A server, its child, its grandchild. */
const processes = 3 * servers
const limitMs = 10_000
const home = mkdtempSync(path.join(tmpdir(), "sigil-bench-"))
const host = path.join(here, "fleet-host.mjs")

const once = async () => {
  const mark = randomUUID()
  const assignment = `SIGIL_BENCH=${mark}`
  const args = [host, "sigil", "tree", String(servers), home, mark, "hold"]
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] })
  const { ready } = JSON.parse(String(await new Promise((resolve) => child.stdout.once("data", resolve))))
  if (ready !== servers) throw new Error(`only ${ready} servers live`)
  for (let turn = 0; marked(assignment).length < processes && turn < 100; turn += 1) await pause(50)
  const pids = marked(assignment)
  if (pids.length !== processes) throw new Error(`${pids.length} processes instead of ${processes}`)

  child.kill("SIGKILL")
  const begun = performance.now()
  // One look at a time: the watch must not take the time of what it watches.
  while (pids.length > 0 && performance.now() - begun < limitMs) {
    if (carries(pids.at(-1), assignment)) await pause(4)
    else pids.pop()
  }
  const ms = performance.now() - begun
  const left = marked(assignment)
  for (const pid of left) process.kill(pid, "SIGKILL")
  return { ms, survivors: left.length }
}

const before = load()
const all = []
try {
  for (let round = 0; round < rounds; round += 1) all.push(await once())
} finally {
  rmSync(home, { recursive: true, force: true })
}
const times = all.map(({ ms }) => ms)
console.log(`${rounds} rounds, ${servers} servers, ${processes} processes, Node ${process.version}`)
console.log(`${before} before, ${load()} after`)
console.log(
  `until none lives: median ${median(times).toFixed(0)} ms, worst ${Math.max(...times).toFixed(0)} ms (bar 1000)`
)
console.log(`survivors ${all.reduce((total, { survivors }) => total + survivors, 0)}`)

// One host process with many servers, measured from inside; prints one line of JSON. Run by startup.mjs and kill.mjs.
// usage: node --expose-gc fleet-host.mjs sigil|bare KIND COUNT HOME MARK [hold]
// KIND is a file of servers/; all servers carry SIGIL_BENCH=MARK. With `hold` it prints when all live and stays.
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import os from "node:os"
import path from "node:path"
import { setImmediate as nextTurn } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { open as openBare } from "./bare-starter.mjs"
import { marked } from "./Marked.mjs"
import { cpuSince } from "./Measure.mjs"

const [variant, kind, count, home, mark, hold] = process.argv.slice(2)
const here = path.dirname(fileURLToPath(import.meta.url))
const file = path.join(here, "servers", `${kind}.mjs`)
const names = Array.from({ length: Number(count) }, (_, index) => `s${index}`)

/** As TOML, whose start budget is the shorter one by default; optional, so that each failure is counted. */
const config = path.join(home, "servers.toml")
const entry = (name) => `[[mcp_servers]]
name = "${name}"
transport = "stdio"
required = false
command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(file)}]
env = { SIGIL_BENCH = "${mark}" }
`

const openers = {
  sigil: async () => {
    const { open } = await import(path.join(here, "build", "fleet.js"))
    return () => open(config)
  },
  bare: async () => {
    const env = { PATH: process.env.PATH, SIGIL_BENCH: mark }
    const servers = names.map(() => ({ command: process.execPath, args: [file], env }))
    return () => openBare(servers, Math.max(4, 2 * os.availableParallelism()))
  }
}

/** Collected memory in bytes. What the last turn still holds is garbage only in the next one. */
const memory = async () => {
  for (let turn = 0; turn < 4; turn += 1) {
    await nextTurn()
    globalThis.gc()
  }
  const { rss, heapUsed, external } = process.memoryUsage()
  return { rss, heap: heapUsed + external }
}
/** CPU of all children, ms: the live ones, and those that were waited for (proc(5); ticks of 10 ms). */
const childCpu = () => {
  let ticks = 0
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8")
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
      if (Number(name) === process.pid) ticks += Number(fields[13]) + Number(fields[14])
      else if (Number(fields[1]) === process.pid) ticks += Number(fields[11]) + Number(fields[12])
    } catch {
      // Gone meanwhile.
    }
  }
  return ticks * 10
}
const timed = async (run) => {
  const from = process.cpuUsage()
  const begun = performance.now()
  const value = await run()
  return { value, wall: performance.now() - begun, cpu: cpuSince(from) }
}

writeFileSync(config, names.map(entry).join("\n"))
process.env.SIGIL_HOME = home
process.chdir(home)
const opened = await timed(await openers[variant]())
const fleet = opened.value
if (hold === "hold") {
  const { ready } = await fleet.start()
  console.log(JSON.stringify({ ready }))
  setInterval(() => undefined, 60_000)
} else {
  const empty = await memory()
  const start = await timed(fleet.start)
  const startChildCpu = childCpu()
  const live = await memory()
  const stop = await timed(fleet.stop)
  const stopChildCpu = childCpu() - startChildCpu
  const survivors = marked(`SIGIL_BENCH=${mark}`).length
  const after = await memory()
  const per = (kindOf) => (live[kindOf] - empty[kindOf]) / names.length
  console.log(
    JSON.stringify({
      ...start.value,
      openMs: opened.wall,
      openCpu: opened.cpu,
      startMs: opened.wall + start.wall,
      startCpu: opened.cpu + start.cpu,
      startAllCpu: opened.cpu + start.cpu + startChildCpu,
      stopMs: stop.wall,
      stopCpu: stop.cpu,
      stopAllCpu: stop.cpu + stopChildCpu,
      unconfirmed: stop.value,
      survivors,
      emptyRss: empty.rss,
      rssPer: per("rss"),
      heapPer: per("heap"),
      keptHeap: after.heap - empty.heap
    })
  )
}

// Tool calls over stdio through the whole pipeline, beside the official SDK's client on the same server.
// usage: npm run bench:calls [-- ROUNDS]      (build first: npm run build)
import path from "node:path"
import { fileURLToPath } from "node:url"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { cpuSince, load, median, row, spread } from "./Measure.mjs"

const here = path.dirname(fileURLToPath(import.meta.url))
const rounds = Math.max(7, Number(process.argv[2] ?? 9))
const echo = path.join(here, "servers", "echo.mjs")
const calls = { 1: 1_500, 16: 6_000 }

const { open } = await import(path.join(here, "build", "host.js"))
const host = await open({ command: process.execPath, args: [echo] })
const client = new Client({ name: "bench", version: "1" })
await client.connect(new StdioClientTransport({ command: process.execPath, args: [echo] }))
// The SDK validates results against output schemas it has listed, as a real client would.
await client.listTools()

const messages = (total) => Array.from({ length: total }, (_, index) => ({ text: `message ${index}` }))

/** Each contender makes the calls the way its users do: fibers of one program, promises. */
const contenders = {
  sigil: (inFlight, total) => host.burst("echo", messages(total), inFlight),
  sdk: async (inFlight, total) => {
    const args = messages(total)
    let next = 0
    const worker = async () => {
      while (next < total) await client.callTool({ name: "echo", arguments: args[next++] })
    }
    await Promise.all(Array.from({ length: inFlight }, worker))
  }
}

const burst = async (run, inFlight, total) => {
  const from = process.cpuUsage()
  const begun = performance.now()
  await run(inFlight, total)
  const ms = performance.now() - begun
  return { perSecond: (total / ms) * 1000, cpuUs: (cpuSince(from) / total) * 1000 }
}

const figures = {}
for (const inFlight of [1, 16]) {
  for (const name of Object.keys(contenders)) {
    figures[`${name} ${inFlight}`] = { perSecond: [], cpuUs: [] }
    await burst(contenders[name], inFlight, calls[inFlight])
  }
}
for (let round = 0; round < rounds; round += 1) {
  for (const inFlight of [1, 16]) {
    for (const name of round % 2 === 0 ? ["sigil", "sdk"] : ["sdk", "sigil"]) {
      const { perSecond, cpuUs } = await burst(contenders[name], inFlight, calls[inFlight])
      figures[`${name} ${inFlight}`].perSecond.push(perSecond)
      figures[`${name} ${inFlight}`].cpuUs.push(cpuUs)
    }
  }
}
await client.close()
await host.close()

const widths = [10, 14, 10, 14]
console.log(`${rounds} interleaved rounds, Node ${process.version}, ${load()}`)
row(["", "calls/s", "spread", "cpu us/call"], widths)
for (const [name, { perSecond, cpuUs }] of Object.entries(figures)) {
  row(
    [name, median(perSecond).toFixed(0), `${(spread(perSecond) * 100).toFixed(0)} %`, median(cpuUs).toFixed(0)],
    widths
  )
}
for (const [inFlight, bar] of [
  [1, 0.8],
  [16, 0.6]
]) {
  const ratio = (kind) =>
    (median(figures[`sigil ${inFlight}`][kind]) / median(figures[`sdk ${inFlight}`][kind])).toFixed(2)
  console.log(
    `${inFlight} in flight: sigil / sdk calls ${ratio("perSecond")} (bar ${bar}), cpu ${ratio("cpuUs")} (bar 2)`
  )
}

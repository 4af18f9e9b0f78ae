// Tool calls over Streamable HTTP through the whole pipeline, beside the official SDK's client on the same server.
// usage: npm run bench:http [-- ROUNDS] [-- --sdk] [-- --era legacy|modern]
//
// Both eras: SDK 1.x for the one with sessions, SDK 2.x for 2026-07-28. The server is a minimal one in a process of its
// own, or with --sdk the official one. The bar is of spec section 18. A contender that cannot start is named and left
// out; then there is no ratio, and the exit code is 1.
import { spawn } from "node:child_process"
import { setMaxListeners } from "node:events"
import fs from "node:fs"
import os from "node:os"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from "@modelcontextprotocol/client"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import { cpuSince, load, median, row, spread } from "./Measure.mjs"

const here = path.dirname(fileURLToPath(import.meta.url))
const words = process.argv.slice(2)
const rounds = Math.max(7, Number(words.find((word) => /^\d+$/.test(word)) ?? 7))
const official = words.includes("--sdk")
const only = words.includes("--era") ? words[words.indexOf("--era") + 1] : undefined
const eras = ["legacy", "modern"].filter((era) => only === undefined || era === only)
const calls = { 1: 500, 16: 2_000 }
/** Least calls per second of sigil by those of the SDK. */
const BAR = 0.7

const peers = path.join(here, "..", "..", "test", "support", "peers", "servers")
const servers = {
  legacy: official ? [path.join(peers, "sdk1.mjs"), "http"] : [path.join(here, "servers", "http.mjs"), "legacy"],
  modern: official
    ? [path.join(peers, "sdk2.mjs"), "http", "--modern"]
    : [path.join(here, "servers", "http.mjs"), "modern"]
}
const start = (era) =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, servers[era], { stdio: ["pipe", "ignore", "pipe"] })
    let log = ""
    child.stderr.setEncoding("utf8").on("data", (part) => {
      log += part
      const [, port] = /^listening on (\d+)$/m.exec(log) ?? []
      if (port !== undefined) resolve({ url: `http://127.0.0.1:${port}/mcp`, close: () => child.kill() })
    })
    child.once("exit", () => reject(new Error(`the server ended: ${log}`)))
  })

const home = fs.mkdtempSync(path.join(os.tmpdir(), "sigil-bench-http-"))
process.on("exit", () => fs.rmSync(home, { recursive: true, force: true }))
process.env.SIGIL_HOME = home
const config = path.join(home, "bench.toml")
fs.writeFileSync(
  config,
  '[web]\nproxy_mode = "direct"\nallowed_private_hosts = ["127.0.0.1"]\nallowed_private_cidrs = ["127.0.0.0/8"]\n\n[audit]\nsync = "write"\n'
)

const messages = (total) => Array.from({ length: total }, (_, index) => ({ text: `message ${index}` }))

/** Each contender makes the calls the way its users do: fibers of one program, promises. */
const sigil = async (url) => {
  const { open } = await import(path.join(here, "build", "remote.js"))
  const host = await open(url, config)
  return { burst: (inFlight, total) => host.burst("echo", messages(total), inFlight), close: host.close }
}
const sdk = async (url, era) => {
  const client =
    era === "legacy"
      ? new Client({ name: "bench", version: "1" })
      : new ModernClient({ name: "bench", version: "1" }, { versionNegotiation: { mode: "auto" } })
  const Transport = era === "legacy" ? StreamableHTTPClientTransport : ModernTransport
  const transport = new Transport(new URL(url))
  await client.connect(transport)
  // One signal serves every fetch of a transport; Node would warn of it on each call, at the SDK's cost.
  const signal = transport._abortController?.signal
  if (signal !== undefined) setMaxListeners(0, signal)
  // The SDK validates results against output schemas it has listed, as a real client would.
  await client.listTools()
  const burst = async (inFlight, total) => {
    const args = messages(total)
    const times = []
    let next = 0
    const worker = async () => {
      while (next < total) {
        const begun = performance.now()
        await client.callTool({ name: "echo", arguments: args[next++] })
        times.push(performance.now() - begun)
      }
    }
    await Promise.all(Array.from({ length: inFlight }, worker))
    return times
  }
  return { burst, close: () => client.close() }
}

const measure = async ({ burst }, inFlight) => {
  const total = calls[inFlight]
  const from = process.cpuUsage()
  const begun = performance.now()
  const times = (await burst(inFlight, total)).sort((left, right) => left - right)
  const ms = performance.now() - begun
  return {
    perSecond: (total / ms) * 1000,
    cpuUs: (cpuSince(from) / total) * 1000,
    p50: times[Math.floor(total * 0.5)],
    p99: times[Math.floor(total * 0.99)]
  }
}
const kinds = ["perSecond", "cpuUs", "p50", "p99"]

const compare = async (era) => {
  const server = await start(era)
  const contenders = {}
  for (const [name, open] of Object.entries({ sigil, sdk })) {
    try {
      contenders[name] = await open(server.url, era)
    } catch (error) {
      console.log(`${era}: ${name} cannot start: ${error.code ?? ""} ${error.message}`)
    }
  }
  const names = Object.keys(contenders)
  const figures = {}
  for (const inFlight of [1, 16]) {
    for (const name of names) {
      figures[`${name} ${inFlight}`] = Object.fromEntries(kinds.map((kind) => [kind, []]))
      await measure(contenders[name], inFlight)
    }
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const inFlight of [1, 16]) {
      for (const name of round % 2 === 0 ? names : names.toReversed()) {
        const measured = await measure(contenders[name], inFlight)
        for (const kind of kinds) figures[`${name} ${inFlight}`][kind].push(measured[kind])
      }
    }
  }
  for (const contender of Object.values(contenders)) await contender.close()
  server.close()
  return figures
}

const widths = [18, 10, 8, 12, 10, 10]
console.log(`${rounds} interleaved rounds, Node ${process.version}, ${official ? "SDK" : "minimal"} server, ${load()}`)
row(["", "calls/s", "spread", "cpu us/call", "p50 ms", "p99 ms"], widths)
const ratios = []
for (const era of eras) {
  const figures = await compare(era)
  for (const [name, { perSecond, cpuUs, p50, p99 }] of Object.entries(figures)) {
    const cells = [`${era} ${name}`, median(perSecond).toFixed(0), `${(spread(perSecond) * 100).toFixed(0)} %`]
    row([...cells, median(cpuUs).toFixed(0), median(p50).toFixed(2), median(p99).toFixed(2)], widths)
  }
  for (const inFlight of [1, 16]) {
    const mine = figures[`sigil ${inFlight}`]
    const theirs = figures[`sdk ${inFlight}`]
    if (mine === undefined || theirs === undefined) {
      ratios.push(`${era}, ${inFlight} in flight: no ratio (bar ${BAR})`)
      process.exitCode = 1
      continue
    }
    const ratio = (kind) => median(mine[kind]) / median(theirs[kind])
    ratios.push(
      `${era}, ${inFlight} in flight: sigil / sdk calls ${ratio("perSecond").toFixed(2)} (bar ${BAR}), cpu ${ratio("cpuUs").toFixed(2)}, ` +
        `p50 ${ratio("p50").toFixed(2)}, p99 ${ratio("p99").toFixed(2)}`
    )
  }
}
for (const line of ratios) console.log(line)
console.log(load())

// The least that can start many servers: spawn, initialize, tools/list by hand, so many at a time; end of input, exit.
import { spawn } from "node:child_process"

const startOne = ({ command, args, env }) => {
  const begun = performance.now()
  const child = spawn(command, args, { env, stdio: ["pipe", "pipe", "inherit"] })
  const exited = new Promise((resolve) => child.once("exit", resolve))
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
  const ready = new Promise((resolve, reject) => {
    child.once("error", reject)
    let rest = ""
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (chunk) => {
      const lines = (rest + chunk).split("\n")
      rest = lines.pop()
      for (const line of lines) {
        const { id, result } = JSON.parse(line)
        if (id === 1) {
          send({ method: "notifications/initialized" })
          send({ id: 2, method: "tools/list", params: {} })
        } else if (id === 2) {
          resolve({ child, exited, tools: result.tools, readyMs: performance.now() - begun })
        }
      }
    })
  })
  send({
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "bare", version: "1" } }
  })
  return ready
}

/** The same shape as `open` of Fleet.ts. */
export const open = async (servers, atATime) => {
  const live = []
  return {
    start: async () => {
      let next = 0
      const worker = async () => {
        while (next < servers.length) live.push(await startOne(servers[next++]))
      }
      await Promise.all(Array.from({ length: atATime }, worker))
      return { ready: live.length, slowestMs: Math.max(...live.map(({ readyMs }) => readyMs)), failures: [] }
    },
    stop: async () => {
      for (const { child } of live) child.stdin.end()
      await Promise.all(live.map(({ exited }) => exited))
      return 0
    }
  }
}

// The least a client can do: spawn, initialize, tools/list, one call, close stdin, wait for the exit.
import { spawn } from "node:child_process"
const child = spawn(process.execPath, [process.argv[2]], { stdio: ["pipe", "pipe", "inherit"] })
const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
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
    } else if (id === 2) send({ id: 3, method: "tools/call", params: { name: "echo", arguments: { text: "hello" } } })
    else {
      console.log(result.content[0].text)
      child.stdin.end()
    }
  }
})
send({
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "bare", version: "1" } }
})

// The main job on an embedded default: lists the tools of the demo server that ships with sigil and calls one
// through the whole pipeline. No configuration is read and no network is used.
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { fileURLToPath } from "node:url"

const dist = path.join(path.dirname(fileURLToPath(import.meta.url)), "..", "dist")
const home = mkdtempSync(path.join(tmpdir(), "sigil-demo-"))
const declaration = JSON.stringify({
  mcpServers: { demo: { command: process.execPath, args: [path.join(dist, "demo-server.js")] } }
})

const sigil = (shown, args) => {
  console.log(`\n$ sigil ${shown}`)
  const done = spawnSync(
    process.execPath,
    [path.join(dist, "bin.js"), "--mcp-config", declaration, "--strict-mcp-config", ...args],
    { stdio: ["ignore", "inherit", "inherit"], env: { ...process.env, SIGIL_HOME: home } }
  )
  if (done.status !== 0) {
    console.error(`sigil ended with exit code ${done.status}`)
    process.exitCode = 1
  }
}

try {
  sigil("mcp tools demo", ["mcp", "tools", "demo"])
  sigil("mcp call demo add a=2 b=40 --yes", ["mcp", "call", "demo", "add", "a=2", "b=40", "--yes"])
  sigil("mcp call demo environment --yes", ["mcp", "call", "demo", "environment", "--yes"])
  console.log(`
What happened, twice over: the declaration passed the gates of admission (try 'sigil mcp explain NAME'); the server
was started in its own process tree with the few variables you see above, not with your environment; its tools were
listed and their schemas checked; your arguments were coerced and validated against the tool's schema; --yes answered
the permission ask of that one call; the result was checked against the tool's output schema, searched for secrets and
bounded; and the server's processes were gone before the command ended.`)
} finally {
  rmSync(home, { recursive: true, force: true })
}

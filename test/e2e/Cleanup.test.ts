/** What a command says when it cannot end what a server left behind, and how long a status of bad servers takes. */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { spawn } from "node:child_process"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { bin, demo, isAlive, makeProject, odd, type Project, until } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

const servers = (entries: { readonly [name: string]: object }): ReadonlyArray<string> => [
  "--mcp-config",
  JSON.stringify({ mcpServers: entries })
]

describe("list --status and doctor --probe", () => {
  const bad = {
    good: { command: process.execPath, args: [] as Array<string> },
    mute: { command: process.execPath, args: [odd, "mute"] },
    stubborn: { command: process.execPath, args: [] as Array<string> },
    dies: { command: process.execPath, args: [odd, "dies"] },
    noise: { command: process.execPath, args: [odd, "noise"] },
    tolerated: { command: process.execPath, args: [odd, "noise"], stdoutNoise: "skip" },
    absent: { command: "/nonexistent/command" }
  }
  const configured = () => {
    bad.good.args = [demo()]
    bad.stubborn.args = [odd, "stubborn", path.join(project.root, "pids")]
    return servers(bad)
  }

  it("tell of every server within one bound, whatever the others do, and leave nothing", async () => {
    const { code, document } = await project.document("list", [
      ...configured(),
      "mcp",
      "list",
      "--status",
      "--timeout",
      "2"
    ])
    const states = Object.fromEntries(
      document.servers.map(({ name, reason, state }) => [name, `${state} ${reason?.code ?? ""}`])
    )
    assert.deepEqual(states, {
      good: "ready ",
      mute: "failed SIGIL_START_TIMEOUT",
      stubborn: "ready ",
      dies: "failed SIGIL_START_FAILED",
      noise: "failed SIGIL_PROTOCOL_FAULT",
      tolerated: "ready ",
      absent: "failed SIGIL_COMMAND_NOT_FOUND"
    })
    assert.equal(code, 0)
    const status = document.servers.find(({ name }) => name === "tolerated")?.status
    assert.equal(status?.noise_lines, 1)
    const pids = project.read("pids").trim().split(" ").map(Number)
    assert.deepEqual(pids.filter(isAlive), [])
  })

  it("let no few that hang hide the others behind them", async () => {
    const mute = Object.fromEntries(
      Array.from({ length: 10 }, (_, index) => [
        `mute${index}`,
        { command: process.execPath, args: [odd, "mute"], shutdownGraceMs: 100 }
      ])
    )
    const config = servers({ ...mute, last: { command: process.execPath, args: [demo()] } })
    const { document } = await project.document("list", [...config, "mcp", "list", "--status", "--timeout", "8"])
    const states = document.servers.map(({ name, state }) => `${name} ${state}`)
    assert.include(states, "last ready")
    assert.equal(document.servers.filter(({ reason }) => reason?.code === "SIGIL_START_TIMEOUT").length, 10)
  })

  it("count oddities in words for people and in the doctor's findings", async () => {
    const listed = await project.run([...configured(), "mcp", "list", "--status", "--timeout", "2"])
    assert.match(listed.stdout, /tolerated\s+ready, 2 tools, 1 odd message\s/)
    const { document } = await project.document("doctor", [...configured(), "doctor", "--probe", "--timeout", "2"])
    const probes = document.checks.filter(({ code }) => code === "mcp:probe")
    assert.deepEqual(Object.fromEntries(probes.map(({ status, subject }) => [subject, status])), {
      good: "ok",
      mute: "error",
      stubborn: "ok",
      absent: "error",
      dies: "error",
      noise: "error",
      tolerated: "warn"
    })
    assert.include(probes.find(({ subject }) => subject === "tolerated")?.message ?? "", "1 noise line(s)")
  })
})

// Only root can make a process that sigil, run as somebody else, may not end. Elsewhere `test/cli/Finish.test.ts` shows
// what the command makes of it.
if (process.getuid?.() === 0) {
  const nobody = 65_534
  /** Runs a call as an ordinary user on a server that first leaves `command` behind; `setuid` is a copy of a program. */
  const leavingBehind = async (
    original: string,
    command: (setuid: string) => string
  ): Promise<{ readonly code: number | null; readonly output: string; readonly pid: number }> => {
    const base = fs.mkdtempSync(path.join(os.tmpdir(), "sigil-foreign-"))
    let foreign: number | undefined
    try {
      fs.chmodSync(base, 0o755)
      fs.cpSync(path.dirname(bin()), path.join(base, "build"), { recursive: true })
      fs.chmodSync(path.join(base, "build"), 0o755)
      const setuid = path.join(base, "setuid")
      fs.copyFileSync(original, setuid)
      fs.chmodSync(setuid, 0o4755)
      const home = path.join(base, "home")
      fs.mkdirSync(home)
      fs.chownSync(home, nobody, nobody)
      const pidFile = path.join(home, "pid")
      const server = path.join(base, "server.sh")
      const demoServer = path.join(base, "build", "demo-server.js")
      fs.writeFileSync(
        server,
        `#!/bin/sh\n${command(setuid)} </dev/null >/dev/null 2>&1 &\necho $! > ${pidFile}\nexec ${process.execPath} ${demoServer}\n`,
        { mode: 0o755 }
      )
      const child = spawn(
        process.execPath,
        [
          path.join(base, "build", "bin.js"),
          ...servers({ a: { command: server, trust: { approval_default: "allow" } } }),
          "mcp",
          "call",
          "a",
          "add",
          "a=40",
          "b=2"
        ],
        { cwd: home, uid: nobody, gid: nobody, env: { PATH: process.env["PATH"], HOME: home } }
      )
      let output = ""
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", (text: string) => {
          output += text
        })
      }
      const code = await new Promise<number | null>((resolve) => child.on("close", resolve))
      assert.isTrue(fs.existsSync(pidFile), output)
      foreign = Number(fs.readFileSync(pidFile, "utf8"))
      assert.isTrue(isAlive(foreign), "what was left behind is still there")
      return { code, output, pid: foreign }
    } finally {
      if (foreign !== undefined) {
        process.kill(foreign, "SIGKILL")
        const gone = foreign
        await until("what was left behind is gone", () => !isAlive(gone))
      }
      fs.rmSync(base, { recursive: true, force: true })
    }
  }

  describe("a process that sigil may not end", () => {
    it.each([
      [
        "that became root's for good",
        "/usr/bin/setpriv",
        (it: string) => `${it} --reuid=0 --regid=0 --clear-groups /bin/sleep 300`
      ],
      [
        "that is in a session of its own with an environment that nobody may read",
        "/bin/sleep",
        (it: string) => `setsid ${it} 300`
      ]
    ])("%s is named, with exit code 7, beside the result", async (_, original, command) => {
      const { code, output, pid } = await leavingBehind(original, command)
      assert.equal(code, 7, output)
      assert.include(output, "42")
      assert.include(output, "SIGIL_CLEANUP_INCOMPLETE")
      assert.include(output, `${pid} (`)
    })
  })
}

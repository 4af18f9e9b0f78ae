/** Nothing survives: process trees of real servers, under every way a command can end. */
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { inline, isAlive, makeProject, odd, type Project, until } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

const pids = (file: string): ReadonlyArray<number> =>
  fs.existsSync(file) ? fs.readFileSync(file, "utf8").trim().split(/\s+/).filter(Boolean).map(Number) : []

const stubborn = () => {
  const file = path.join(project.root, "pids")
  return { file, config: inline("stubborn", [odd, "stubborn", file]) }
}

describe("process trees", () => {
  it("are gone after a call: one that ignores SIGTERM, its child, and one in a session of its own", async () => {
    const { file, config } = stubborn()
    const { code, stdout } = await project.run([...config, "mcp", "call", "stubborn", "echo", "a=1"])
    assert.equal(code, 0)
    assert.include(stdout, "echo")
    assert.equal(pids(file).length, 3)
    assert.deepEqual(pids(file).filter(isAlive), [])
  })

  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129]
  ] as const) {
    it(`are gone after ${signal} in the middle of a call, exit ${code}`, async () => {
      const { file, config } = stubborn()
      const running = project.start([...config, "mcp", "call", "stubborn", "hang"])
      await until("the server started", () => pids(file).length === 3)
      running.child.kill(signal)
      const ran = await running.done
      assert.equal(ran.code, code)
      assert.deepEqual(pids(file).filter(isAlive), [])
    })
  }

  it("are gone after SIGKILL of sigil itself", async () => {
    const { file, config } = stubborn()
    const running = project.start([...config, "mcp", "call", "stubborn", "hang"])
    await until("the server started", () => pids(file).length === 3)
    running.child.kill("SIGKILL")
    await running.done
    await until("every process is gone", () => pids(file).every((pid) => !isAlive(pid)))
  })

  it("get notifications/cancelled before they are ended", async () => {
    const file = path.join(project.root, "messages")
    const running = project.start([...inline("odd", [odd, "plain", file]), "mcp", "call", "odd", "hang"])
    await until("the call arrived", () => fs.existsSync(file) && fs.readFileSync(file, "utf8").includes("tools/call"))
    running.child.kill("SIGINT")
    assert.equal((await running.done).code, 130)
    const messages = fs
      .readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    const call = messages.find(({ method }) => method === "tools/call")
    const cancelled = messages.find(({ method }) => method === "notifications/cancelled")
    assert.equal(cancelled?.params.requestId, call?.id)
  })

  it("end with the deadline of a call, which names the field to change", async () => {
    const { code, stderr } = await project.run([
      ...inline("odd", [odd, "plain"]),
      "mcp",
      "call",
      "odd",
      "hang",
      "--timeout",
      "0.2"
    ])
    assert.equal(code, 3)
    assert.include(stderr, "SIGIL_CALL_TIMEOUT")
    assert.include(stderr, "--timeout")
  })
})

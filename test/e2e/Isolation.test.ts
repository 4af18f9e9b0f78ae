/** `isolation = "pidns"`: what hides from every other means is gone too, and nothing starts without it. */
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { inline, makeProject, odd, type Project, type Ran, until } from "../support/Command.ts"
import { hidingServer, running } from "../support/HidingServer.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => {
  // Only a failed test has any left.
  for (const pid of companions.splice(0).flatMap(running)) process.kill(pid, "SIGKILL")
  project.dispose()
})

/** The sleeping times by which the companions of a test are known. */
const companions: Array<string> = []

const pidns = { isolation: "pidns" }

/** A server whose companion is ended after the test, whatever became of it. */
const hiding = (more: object = {}) => {
  const { args, command, seconds } = hidingServer()
  companions.push(seconds)
  return { seconds, config: inline("hiding", args, { command, ...more }) }
}

/** Whether this system has PID namespaces, as sigil sees it. Where it has none the refusal is what a test gets. */
const refused = ({ code, stderr }: Ran): boolean => {
  if (!stderr.includes("SIGIL_ISOLATION_UNAVAILABLE")) return false
  assert.equal(code, 4)
  assert.include(stderr, "fix:")
  return true
}

describe('isolation = "pidns"', () => {
  it("takes along a process that left session, group and environment; without it that survives", async () => {
    const plain = hiding()
    const without = await project.run([...plain.config, "mcp", "call", "hiding", "echo"])
    const survivors = running(plain.seconds)
    for (const pid of survivors) process.kill(pid, "SIGKILL")
    assert.equal(without.code, 0, without.stderr)
    assert.lengthOf(survivors, 1)

    const isolated = hiding(pidns)
    const ran = await project.run([...isolated.config, "mcp", "call", "hiding", "echo"])
    assert.deepEqual(running(isolated.seconds), [])
    if (!refused(ran)) assert.equal(ran.code, 0, ran.stderr)
  })

  for (const signal of ["SIGKILL", "SIGTERM"] as const) {
    it(`leaves nothing after ${signal} of sigil in the middle of a call`, async () => {
      const { seconds, config } = hiding(pidns)
      if (refused(await project.run([...config, "mcp", "call", "hiding", "echo"]))) return
      const started = project.start([...config, "mcp", "call", "hiding", "hang"])
      await until("the companion started", () => running(`sleep\0${seconds}`).length === 1)
      started.child.kill(signal)
      await started.done
      await until("every process is gone", () => running(seconds).length === 0)
    })
  }

  it("changes nothing for a server that behaves: list, call, environment, end", async () => {
    const call = (config: ReadonlyArray<string>, tool: string) =>
      project.run([...config, "mcp", "call", "odd", tool, "--json"])
    const config = inline("odd", [odd, "environment"], pidns)
    const listed = await project.run([...config, "mcp", "tools", "odd"])
    if (refused(listed)) return
    assert.equal(listed.code, 0, listed.stderr)
    assert.include(listed.stdout, "environment")
    const variables = async (more: object): Promise<object> => {
      const ran = await call(inline("odd", [odd, "environment"], more), "environment")
      assert.equal(ran.code, 0, ran.stderr)
      const environment: unknown = JSON.parse(JSON.parse(ran.stdout).content[0].text)
      return { ...Object(environment), SIGIL_GENERATION: "" }
    }
    assert.deepEqual(await variables(pidns), await variables({}))
  })

  it("keeps what a server says when it does not start", async () => {
    const ran = await project.run([...inline("dies", [odd, "dies"], pidns), "mcp", "call", "dies", "x"])
    if (refused(ran)) return
    assert.equal(ran.code, 3)
    assert.include(ran.stderr, "exited with code 3")
    assert.include(ran.stderr, "fatal: cannot find configuration")
  })

  it("is named by explain", async () => {
    const { document } = await project.document("explain", [
      ...inline("odd", [odd, "plain"], pidns),
      "mcp",
      "explain",
      "odd"
    ])
    const gate = document.gates.find(({ gate: name }) => name === "executable")
    if (gate?.verdict === "refuse") assert.include(gate.why, 'isolation = "pidns"')
    else assert.include(gate?.why, "in a PID namespace of its own")
  })

  it("starts nothing where it is not to be had, and says what to install", async () => {
    const file = path.join(project.root, "started")
    const args = ["-e", `require("node:fs").writeFileSync(${JSON.stringify(file)}, "")`]
    const config = inline("odd", args, pidns)
    // No directory of PATH has 'unshare'.
    const env = { PATH: project.root }
    const ran = await project.run([...config, "mcp", "call", "odd", "echo"], { env })
    assert.isTrue(refused(ran), ran.stderr)
    assert.isFalse(fs.existsSync(file))
    assert.include(ran.stderr, "util-linux")
    const explained = await project.run([...config, "mcp", "explain", "odd"], { env })
    assert.include(explained.stdout, "REFUSE")
    assert.include(explained.stdout, "'unshare' was not found")
  })
})

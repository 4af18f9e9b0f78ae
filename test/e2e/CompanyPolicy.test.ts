/** Company policy over the command: no command runs anything of a server that is denied or off. */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { rolldown } from "rolldown"
import { afterAll, afterEach, assert, beforeAll, beforeEach, describe, it } from "vitest"
import { options } from "../../rolldown.config.ts"
import { makeProject, type Project, type Ran, repository } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

const pidServer = path.join(repository, "test", "support", "servers", "pid.mjs")
/** Gets a line for every process of the server that was started. */
const marker = (): string => path.join(project.root, "started")
const ran = (): number => (fs.existsSync(marker()) ? fs.readFileSync(marker(), "utf8").trim().split("\n").length : 0)
const command = (): ReadonlyArray<string> => [process.execPath, pidServer, marker()]

/** The user's settings, which declare the server too. */
const settings = (more: object): string => {
  const [first, ...args] = command()
  return project.write(path.join(project.home, ".sigil", "settings.json"), {
    ...more,
    mcpServers: { s: { transport: "stdio", command: first, args, trust: { approval_default: "allow" } } }
  })
}

/** Commands that start servers when they may. */
const few: ReadonlyArray<ReadonlyArray<string>> = [
  ["mcp", "list", "--status"],
  ["doctor", "--probe"],
  ["mcp", "tools", "--all"],
  ["mcp", "search", "--all", "pid"],
  ["mcp", "explain", "s"],
  ["mcp", "call", "s", "pid", "token=x"]
]
/** All of them. */
const starters: ReadonlyArray<ReadonlyArray<string>> = [
  ...few,
  ["mcp", "tools"],
  ["mcp", "tools", "s"],
  ["mcp", "call", "s/pid", "token=x"],
  ["mcp", "call", "mcp__s__pid", "token=x"],
  ["mcp", "call", "--explain", "s", "pid"],
  ["mcp", "resources", "s"],
  ["mcp", "read", "s", "x:y"],
  ["mcp", "prompt", "s", "p"]
]

const call = ["mcp", "call", "s", "pid", "token=x"] as const

describe("the policy of the user", () => {
  it("lets a server run that it does not forbid", async () => {
    settings({ mcpPolicy: { deniedServers: [{ name: "other" }] }, policyLimits: { mcp: true } })
    assert.equal((await project.run(call)).code, 0)
    assert.equal(ran(), 1)
  })

  const policies: ReadonlyArray<
    readonly [what: string, policy: () => object, reason: string, field: string, line: number]
  > = [
    [
      "denies it by its command",
      () => ({ mcpPolicy: { deniedServers: [{ command: command() }] } }),
      "mcp_policy_denied",
      "mcpPolicy.deniedServers[0]",
      4
    ],
    [
      "allows nothing",
      () => ({ mcpPolicy: { allowedServers: [] } }),
      "mcp_policy_not_allowed",
      "mcpPolicy.allowedServers",
      3
    ],
    ["switches MCP off", () => ({ policyLimits: { mcp: false } }), "company_limit", "policyLimits.mcp", 3]
  ]
  for (const [what, policy, reason, field, line] of policies)
    it(`that ${what} starts nothing, whatever the command`, async () => {
      const file = settings(policy())
      for (const words of reason === "mcp_policy_denied" ? starters : few) {
        const { code, stderr } = await project.run(words)
        assert.include([0, 4], code, `${words.join(" ")}: ${stderr}`)
        assert.equal(ran(), 0, words.join(" "))
      }
      const { code, document } = await project.document("error", call)
      const { error } = document
      assert.deepEqual(
        [code, error.code, error.reason, error.exit, error.where.file, error.where.field, error.where.line],
        [4, "SIGIL_DENIED", reason, 4, file, field, line]
      )
      const list = await project.document("list", ["mcp", "list"])
      assert.deepEqual(
        list.document.servers.map(({ state, reason: why }) => [state, why?.code]),
        [["denied", "SIGIL_DENIED"]]
      )
      const explained = await project.run(["mcp", "explain", "s"])
      assert.include(explained.stdout, `${file}:${line}:`)
      const doctor = await project.document("doctor", ["doctor"])
      assert.equal(doctor.code, 0)
      const finding = doctor.document.checks.find(
        ({ subject, code: name }) => subject === "s" && name.startsWith("mcp:")
      )
      assert.deepEqual([finding?.status, finding?.where?.line, finding?.where?.file], ["warn", line, file])
    }, 60_000)

  it("judges the values that would run", async () => {
    settings({ mcpPolicy: { deniedServers: [{ command: command() }] } })
    const [first, script] = command()
    project.write(".mcp.json", { mcpServers: { t: { command: "${NODE}", args: ["${SCRIPT:-x}", "${MARK}"] } } })
    const env = { NODE: first ?? "", SCRIPT: script ?? "", MARK: marker() }
    await project.run(["mcp", "approve", "t"], { env })
    const list = await project.document("list", ["mcp", "list"], { env })
    assert.deepEqual(
      list.document.servers.map(({ name, state }) => [name, state]),
      [["s", "denied"]],
      "the same command under another name is the same server"
    )
    settings({ mcpPolicy: { deniedServers: [{ command: command() }, { name: "s" }] } })
    const strict = ["--strict-mcp-config", "--mcp-config", path.join(project.root, ".mcp.json")]
    const { code } = await project.document("error", [...strict, "mcp", "call", "t", "pid", "token=x", "--yes"], {
      env
    })
    assert.deepEqual([code, ran()], [4, 0])
  })

  it("says once in the log of a run that MCP is off, and how many servers that costs", async () => {
    settings({ policyLimits: { mcp: { allowed: false, reason: "audit week" } } })
    const line = (stderr: string) =>
      stderr.split("\n").filter((text) => text.includes("MCP is off, 1 server is ignored"))
    for (const words of [
      ["mcp", "list"],
      ["mcp", "tools"],
      ["doctor", "--probe"]
    ]) {
      const logged = line((await project.run(["-d", ...words])).stderr)
      assert.equal(logged.length, 1, words.join(" "))
      assert.match(logged[0] ?? "", /level=INFO .*audit week/)
      assert.deepEqual(line((await project.run(words)).stderr), [])
    }
  })
})

describe("the policy of the machine", () => {
  const at = fs.mkdtempSync(path.join(os.tmpdir(), "sigil-managed-command-"))
  beforeAll(async () => {
    const { output: _, plugins: __, ...input } = options(at)
    const bundle = await rolldown({
      ...input,
      input: path.join(repository, "test", "support", "ManagedCommand.ts"),
      logLevel: "silent"
    })
    await bundle.write({ dir: at, format: "esm", entryFileNames: "managed.mjs", chunkFileNames: "[name]-[hash].mjs" })
    await bundle.close()
  }, 60_000)
  afterAll(() => fs.rmSync(at, { recursive: true, force: true }))

  const me = process.getuid?.() ?? 0
  const file = (): string => path.join(project.root, "etc", "managed.json")
  const managed = (content: string | object, mode = 0o644): void => {
    project.write(file(), content)
    fs.chmodSync(file(), mode)
  }
  const run = (words: ReadonlyArray<string>, owner = me, env: { readonly [name: string]: string } = {}): Ran => {
    const { status, stderr, stdout } = spawnSync(
      process.execPath,
      [path.join(at, "managed.mjs"), file(), String(owner), ...words],
      {
        cwd: project.root,
        encoding: "utf8",
        env: { PATH: process.env["PATH"], HOME: project.home, SIGIL_HOME: path.join(project.home, ".sigil"), ...env }
      }
    )
    return { code: status ?? -1, stdout, stderr }
  }
  const errorOf = (words: ReadonlyArray<string>, owner = me) => {
    const { code, stdout } = run(["--json", ...words], owner)
    const { error } = JSON.parse(stdout)
    return { code, reason: error.reason, where: error.where, fix: error.fix, error: error.code }
  }
  const findings = (owner = me): ReadonlyArray<{ code: string; status: string; message: string; subject: string }> =>
    JSON.parse(run(["--json", "doctor"], owner).stdout).checks

  it("lets run what it allows, and says whose the file is", () => {
    settings({})
    managed({ mcpPolicy: { allowedServers: [{ command: command() }] }, policyLimits: { mcp: true } })
    const { code, stderr } = run(call)
    assert.deepEqual([code, ran()], [0, 1], stderr)
    const found = findings().filter((finding) => finding.code.startsWith("policy:"))
    const owner = me === 0 ? "root" : `user ${me}`
    assert.deepEqual(
      found.map((finding) => [finding.code, finding.status, finding.subject, finding.message]),
      [
        ["policy:managed", "ok", file(), `present, owner ${owner}, mode 0644`],
        ["policy:mcp", "ok", file(), "mcpPolicy: 0 denied entries, an allow list of 1 entry"]
      ]
    )
    fs.rmSync(file())
    assert.include(findings().find((finding) => finding.code === "policy:managed")?.message, "absent")
  })

  it("is not loosened by the user's file, which may tighten it", () => {
    settings({ mcpPolicy: { allowedServers: [{ name: "s" }] }, policyLimits: { mcp: true } })
    managed({ mcpPolicy: { allowedServers: [{ name: "other" }] } })
    const denied = errorOf(call)
    assert.deepEqual([denied.code, denied.reason, denied.where.file], [4, "mcp_policy_not_allowed", file()])
    assert.include(denied.fix, "Ask whoever administers this machine")
    managed({ mcpPolicy: { allowedServers: [{ name: "s" }] }, policyLimits: { mcp: { allowed: false } } })
    assert.deepEqual([errorOf(call).reason, ran()], ["company_limit", 0])
    managed({ mcpPolicy: { allowedServers: [{ name: "s" }] } })
    settings({ mcpPolicy: { deniedServers: [{ name: "s" }] } })
    assert.deepEqual([errorOf(call).reason, ran()], ["mcp_policy_denied", 0])
    settings({})
    assert.deepEqual([run(call).code, ran()], [0, 1])
  })

  it("denies calls that the user's lists allow, and lets the user deny what it allows", () => {
    settings({ permissions: { allow: ["mcp__s"] } })
    managed({ permissions: { deny: ["mcp__s__pid"] } })
    const denied = errorOf(call)
    assert.deepEqual(
      [denied.code, denied.error, denied.reason, denied.where.file],
      [4, "SIGIL_DENIED", "permission_denied", file()]
    )
    managed({ permissions: { allow: ["mcp__s"] } })
    settings({ permissions: { deny: ["mcp__s__pid"] } })
    assert.deepEqual([errorOf(call).code, errorOf(call).reason], [4, "permission_denied"])
    settings({})
    assert.equal(run(call).code, 0)
  })

  it("holds for servers of the command line, without the user's files, and in another home", () => {
    managed({ mcpPolicy: { deniedServers: [{ name: "s" }] } })
    const [first, ...args] = command()
    const inline = JSON.stringify({ mcpServers: { s: { command: first, args, trust: { approval_default: "allow" } } } })
    const elsewhere = path.join(project.root, "elsewhere")
    const env = { SIGIL_HOME: elsewhere, HOME: elsewhere, SIGIL_STATE_HOME: elsewhere, SIGIL_MANAGED: "/dev/null" }
    const ranIt = run(["--strict-mcp-config", "--mcp-config", inline, ...call], me, env)
    assert.deepEqual([ranIt.code, ran()], [4, 0])
    assert.include(ranIt.stderr, "SIGIL_DENIED")
  })

  it("that cannot be trusted or understood refuses every start, with the place and what to do", () => {
    settings({})
    const refused = (owner = me) => {
      for (const words of few) assert.include([0, 1, 4], run(words, owner).code, words.join(" "))
      const { code, error, fix, reason, where } = errorOf(call, owner)
      assert.deepEqual([code, error, where.file, ran()], [4, "SIGIL_SAFETY_UNSUPPORTED", file(), 0])
      const finding = findings(owner).filter((one) => one.code === "policy:managed")
      assert.deepEqual(
        finding.map(({ status }) => status),
        ["error"]
      )
      assert.equal(run(["doctor"], owner).code, 1)
      return [reason, where.line, where.column, fix]
    }
    managed('{\n  "mcpPolicy": { "deniedServer": [] }\n}')
    assert.deepEqual(refused(), [
      "managed_file_invalid",
      2,
      18,
      `Ask whoever administers this machine to correct ${file()} at line 2, column 18.`
    ])
    managed({}, 0o666)
    assert.equal(refused()[0], "managed_file_untrusted")
    managed({})
    assert.equal(refused(me + 1)[0], "managed_file_untrusted")
  }, 60_000)
})

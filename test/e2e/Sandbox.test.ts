/**
 * `[execution] strategy = "sandbox"` with real bubblewrap: what a server can and cannot do inside, and that nothing
 * starts without it. Where the system has no sandbox the typed refusal is what a test gets.
 */
import * as dgram from "node:dgram"
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { makeProject, type Project, type Ran, repository, until } from "../support/Command.ts"
import { hidingServer, running } from "../support/HidingServer.ts"

const servers = path.join(repository, "test", "support", "servers")
const prying = path.join(servers, "prying.mjs")

let project: Project & { readonly dispose: () => void }
const ends: Array<() => void> = []
beforeEach(() => {
  project = makeProject()
})
afterEach(() => {
  for (const end of ends.splice(0)) end()
  project.dispose()
})

/** The settings of the user, and one server that may be called. */
const configured = (execution: string, more = "", entry: ReadonlyArray<string> = [], file?: string): void => {
  project.write(
    file ?? path.join(project.home, ".sigil", "sigil.toml"),
    [
      execution === "" ? "" : `[execution]\n${execution}\nreadable_paths = [${JSON.stringify(servers)}]`,
      more,
      "[[mcp_servers]]",
      'name = "prying"',
      'transport = "stdio"',
      ...(entry.length > 0
        ? entry
        : [`command = ${JSON.stringify(process.execPath)}`, `args = [${JSON.stringify(prying)}]`]),
      "[mcp_servers.trust]",
      'approval_default = "allow"'
    ].join("\n")
  )
}
const sandbox = 'strategy = "sandbox"'
const denied = '[web]\nnetwork_mode = "deny"'

/** Whether the system refused the sandbox, which is then checked to be said properly. */
const refused = ({ code, stderr }: Ran): boolean => {
  if (!/SIGIL_(?:ISOLATION_UNAVAILABLE|NETWORK_REFUSED)/.test(stderr)) return false
  assert.equal(code, 4)
  assert.match(stderr, /fix: (?:Install bubblewrap|Allow user namespaces)/)
  return true
}

/** Calls one act of the server; `undefined` where there is no sandbox here. */
const act = async (
  name: string,
  args: { readonly [key: string]: string | number } = {},
  env: { readonly [name: string]: string } = {}
): Promise<string | undefined> => {
  const ran = await project.run(["--json", "mcp", "call", "prying", name, "--args", JSON.stringify(args)], { env })
  if (ran.code === 4 && refused({ ...ran, stderr: ran.stdout.replace(/"fix":"/, "fix: ") })) return undefined
  assert.equal(ran.code, 0, ran.stdout + ran.stderr)
  const { content } = JSON.parse(ran.stdout)
  return String(content[0].text)
}

/** A listener of this test. */
const listener = async (where: net.ListenOptions): Promise<number> => {
  const server = net.createServer((socket) => socket.destroy())
  ends.push(() => server.close())
  await new Promise<void>((resolve) => server.listen(where, resolve))
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
}

/** A name server that knows every name. */
const nameServer = async (): Promise<number> => {
  const socket = dgram.createSocket("udp4")
  ends.push(() => socket.close())
  socket.on("message", (query, from) => {
    const answer = Buffer.concat([query.subarray(0, 12), query.subarray(12, query.indexOf(0, 12) + 5)])
    answer.writeUInt16BE(0x8180, 2)
    answer.writeUInt16BE(1, 6)
    answer.fill(0, 8, 12)
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 7])
    socket.send(Buffer.concat([answer, record]), from.port, from.address)
  })
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve))
  return socket.address().port
}

describe("a server in the sandbox", () => {
  it("reaches no network under network_mode = deny, and is called all the same", async () => {
    const [port, names] = [await listener({ host: "127.0.0.1", port: 0 }), await nameServer()]
    configured("")
    assert.equal(await act("connect", { port }), "ok")
    assert.equal(await act("resolve", { port: names }), "192.0.2.7")
    configured(sandbox, denied)
    const connected = await act("connect", { port })
    if (connected === undefined) return
    assert.equal(connected, "ECONNREFUSED")
    assert.match((await act("resolve", { port: names })) ?? "", /^E/)
    // An abstract socket belongs to a network namespace as well.
    const abstract = `\0sigil-test-${process.pid}`
    await listener({ path: abstract })
    assert.equal(await act("connect", { path: abstract }), "ECONNREFUSED")
  })

  it("has the network where the policy allows it, unless the settings deny it", async () => {
    const port = await listener({ host: "127.0.0.1", port: 0 })
    configured(sandbox)
    const shared = await act("connect", { port })
    if (shared === undefined) return
    assert.equal(shared, "ok")
    configured(`${sandbox}\nnetwork = "denied"`)
    assert.equal(await act("connect", { port }), "ECONNREFUSED")
  })

  it("writes to the workspace and nowhere else", async () => {
    configured(sandbox)
    const inside = path.join(project.root, "made")
    const first = await act("write", { path: inside })
    if (first === undefined) return
    assert.equal(first, "ok")
    assert.equal(fs.readFileSync(inside, "utf8"), "by the server")
    for (const place of [servers, "/etc", "/usr"]) {
      const file = path.join(place, `sigil-test-${process.pid}`)
      assert.match((await act("write", { path: file })) ?? "", /^(?:EROFS|EACCES)$/)
      assert.isFalse(fs.existsSync(file))
    }
    // Temporary files are possible and go with the server.
    const temporary = `/tmp/sigil-test-${process.pid}`
    assert.equal(await act("write", { path: temporary }), "ok")
    assert.isFalse(fs.existsSync(temporary))

    configured(`${sandbox}\nworkspace = "read-only"`)
    assert.equal(await act("read", { path: inside }), "by the server")
    assert.equal(await act("write", { path: inside }), "EROFS")
  })

  it("sees nothing of sigil's directories, of the home and of its sockets", async () => {
    fs.writeFileSync(path.join(project.home, "secret"), "s")
    const socket = path.join(project.home, "agent.sock")
    await listener({ path: socket })
    configured(sandbox)
    const state = path.join(project.home, ".sigil", "state")
    const listed = await act("list", { path: project.home }, { SSH_AUTH_SOCK: socket })
    if (listed === undefined) return
    assert.equal(listed, "")
    assert.isTrue(fs.existsSync(state))
    assert.equal(await act("list", { path: state }), "ENOENT")
    assert.equal(await act("read", { path: path.join(project.home, "secret") }), "ENOENT")
    assert.equal(await act("connect", { path: socket }), "ENOENT")
    assert.equal(await act("list", { path: "/run" }), "")
  })

  it("sees nothing of sigil's directories inside of the workspace, and cannot move them away", async () => {
    const home = path.join(project.root, "a", "b", ".sigil")
    const env = { SIGIL_HOME: home }
    configured(sandbox, "", [], path.join(home, "sigil.toml"))
    const listed = await act("list", { path: home }, env)
    if (listed === undefined) return
    assert.equal(listed, "")
    assert.equal(await act("write", { path: path.join(home, "sigil.toml") }, env), "EROFS")
    for (const place of [home, path.dirname(home), path.join(project.root, "a")])
      assert.equal(await act("rename", { path: place, to: `${place}-away` }, env), "EBUSY")
    assert.include(fs.readFileSync(path.join(home, "sigil.toml"), "utf8"), "prying")
  })

  it("has exactly the variables of any other server, and none of them acts outside", async () => {
    const trace = path.join(project.home, "trace")
    const entry = [
      `command = ${JSON.stringify(process.execPath)}`,
      `args = [${JSON.stringify(prying)}]`,
      `env = { "no.identifier" = "x", EMPTY = "", LD_DEBUG = "libs", LD_DEBUG_OUTPUT = ${JSON.stringify(trace)} }`
    ]
    const variables = async (): Promise<object | undefined> => {
      const text = await act("environment")
      return text === undefined ? undefined : { ...Object(JSON.parse(text)), SIGIL_GENERATION: "" }
    }
    const traces = () => fs.readdirSync(project.home).filter((name) => name.startsWith("trace"))
    configured(sandbox, "", entry)
    const inside = await variables()
    if (inside === undefined) return
    assert.deepEqual(traces(), [])
    configured("", "", entry)
    assert.deepEqual(inside, await variables())
    // The same variables leave traces where a program outside has them.
    assert.isNotEmpty(traces())
  })

  it("leaves no process, not even one that left session, group and environment", async () => {
    for (const signal of [undefined, "SIGKILL", "SIGTERM"] as const) {
      const { args, command, seconds } = hidingServer()
      configured(sandbox, denied, [`command = ${JSON.stringify(command)}`, `args = ${JSON.stringify(args)}`])
      if (signal === undefined) {
        const ran = await project.run(["mcp", "call", "prying", "echo"])
        if (refused(ran)) return
        assert.equal(ran.code, 0, ran.stderr)
      } else {
        const started = project.start(["mcp", "call", "prying", "hang"])
        await until("the companion started", () => running(`sleep\0${seconds}`).length === 1)
        started.child.kill(signal)
        await started.done
        await until("every process is gone", () => running(seconds).length === 0)
      }
      assert.deepEqual(running(seconds), [])
    }
  })

  it("is on record and shown with what was proved", async () => {
    configured(sandbox, denied)
    const ran = await act("list", { path: "/" })
    const explained = await project.document("explain", ["mcp", "explain", "prying"])
    const gate = (name: string) => explained.document.gates.find((one) => one.gate === name)
    const doctor = await project.document("doctor", ["doctor"])
    const finding = doctor.document.checks.find(({ code }) => code === "execution:sandbox")
    const { document } = await project.document("get", ["mcp", "get", "prying"])
    assert.equal(
      document.effective["process_coverage"],
      "sandboxed local stdio (linux_bubblewrap, workspace writable, network denied)"
    )
    if (ran === undefined) {
      assert.equal(gate("network")?.verdict, "refuse")
      assert.equal(finding?.status, "error")
      return
    }
    assert.match(
      gate("network")?.why ?? "",
      /^network_mode is deny; it has no network, in a sandbox \(linux_bubblewrap/
    )
    assert.equal(finding?.status, "ok")
    const { document: log } = await project.document("audit", ["audit", "show", "--limit", "100"])
    const lifecycle = log.records.find(({ kind }) => kind === "extension_process_lifecycle_recorded")
    assert.deepInclude(Object(lifecycle?.payload["safe_metadata"]), {
      mcp_process_coverage: "local_stdio_sandboxed",
      mcp_process_backend: "linux_bubblewrap",
      mcp_process_backend_capabilities: "network,process_tree,file_system,privileges,environment",
      mcp_process_network: "denied",
      mcp_process_network_isolation_proven: "true",
      mcp_process_network_policy: "deny",
      mcp_process_declared_network_effect: "unknown",
      mcp_process_effective_network_effect: "none",
      mcp_process_explicit_network_approval: "false"
    })
  })
})

describe("without the sandbox that it needs", () => {
  const file = () => path.join(project.root, "started")
  const touch = () => [
    `command = ${JSON.stringify(process.execPath)}`,
    `args = ["-e", ${JSON.stringify(`require("node:fs").writeFileSync(${JSON.stringify(file())}, "")`)}]`
  ]
  /** What a call is refused with, and that nothing was started. */
  const refusal = async (env: { readonly [name: string]: string } = {}) => {
    const { code, document } = await project.document("error", ["mcp", "call", "prying", "echo"], { env })
    assert.isFalse(fs.existsSync(file()))
    return { exit: code, code: document.error.code, reason: document.error.reason, fix: document.error.fix }
  }
  /** No directory of it has a program. */
  const nothing = () => ({ PATH: project.root })

  it("network deny refuses and says what to install", async () => {
    for (const execution of ["", sandbox]) {
      configured(execution, denied, touch())
      const found = await refusal(nothing())
      assert.deepInclude(found, { exit: 4, code: "SIGIL_NETWORK_REFUSED", reason: "network_isolation_unavailable" })
      assert.include(found.fix, "Install bubblewrap")
    }
  })

  it("network ask refuses where nobody can be asked, in a sandbox too", async () => {
    for (const execution of ["", sandbox]) {
      configured(execution, '[web]\nnetwork_mode = "ask"', touch())
      assert.deepInclude(await refusal(), { code: "SIGIL_NETWORK_REFUSED", reason: "network_approval_required" })
    }
  })

  it("a sandbox that is asked for refuses whatever the network policy is", async () => {
    configured(sandbox, "", touch())
    const found = await refusal(nothing())
    assert.deepInclude(found, { exit: 4, code: "SIGIL_ISOLATION_UNAVAILABLE", reason: "bubblewrap_missing" })
    assert.include(found.fix, "Install bubblewrap")
    const doctor = await project.document("doctor", ["doctor"], { env: nothing() })
    assert.equal(doctor.code, 1)
    assert.include(doctor.document.checks.find(({ code }) => code === "execution:sandbox")?.fix, "Install bubblewrap")
  })

  it("a back end that is not built refuses", async () => {
    for (const [backend, reason] of [
      ["docker", "backend_cannot_host_stdio"],
      ["macos_seatbelt", "backend_not_built"]
    ] as const) {
      configured(`${sandbox}\nbackend = "${backend}"`, "", touch())
      assert.deepInclude(await refusal(), { code: "SIGIL_ISOLATION_UNAVAILABLE", reason })
      configured(`${sandbox}\nbackend = "${backend}"`, denied, touch())
      assert.deepInclude(await refusal(), { code: "SIGIL_NETWORK_REFUSED", reason: "network_isolation_unavailable" })
    }
  })

  it("network deny refuses a sandbox that is to share the network", async () => {
    configured(`${sandbox}\nnetwork = "shared"`, denied, touch())
    const { code, reason } = await refusal()
    assert.equal(code, "SIGIL_NETWORK_REFUSED")
    assert.include(["backend_receipt_invalid", "network_isolation_unavailable"], reason)
  })

  it("a home directory as the workspace, and settings that the server could write, refuse", async () => {
    configured(sandbox, "", touch())
    const { document } = await project.document("error", ["--cwd", project.home, "mcp", "call", "prying", "echo"])
    assert.equal(document.error.reason, "sandbox_too_wide")
    configured(sandbox, "", touch(), "sigil.toml")
    const given = await project.document("error", ["--config", "sigil.toml", "mcp", "call", "prying", "echo"])
    assert.equal(given.document.error.reason, "sandbox_exposes_state")
  })

  it("a program that the sandbox hides refuses, and is named", async () => {
    const program = path.join(project.home, "program")
    fs.writeFileSync(program, `#!/bin/sh\n: >${file()}\n`, { mode: 0o755 })
    configured(sandbox, "", [`command = ${JSON.stringify(program)}`])
    const found = await refusal()
    if (found.reason === "refused" || found.reason === "bubblewrap_missing") return
    assert.deepInclude(found, { code: "SIGIL_ISOLATION_UNAVAILABLE", reason: "sandbox_hides_command" })
    assert.include(found.fix, "readable_paths")
  })
})

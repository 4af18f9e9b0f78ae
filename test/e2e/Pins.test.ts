/** Pinning a server and what happens when it is another one. */
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { makeProject, type Project } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

/** A server that names itself as a file says, and notes each start. */
const script = (root: string): string => {
  const file = path.join(root, "server.mjs")
  fs.writeFileSync(
    file,
    `import { appendFileSync, readFileSync } from "node:fs"
appendFileSync(${JSON.stringify(path.join(root, "started"))}, "x")
const [name, version] = readFileSync(${JSON.stringify(path.join(root, "identity"))}, "utf8").trim().split(" ")
const write = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n")
const send = (id, result) => write({ id, result })
let rest = ""
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\\n")
  rest = lines.pop()
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line)
    if (method === "server/discover") write({ id, error: { code: -32601, message: "Method not found" } })
    if (method === "initialize")
      send(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name, version } })
    if (method === "tools/list") send(id, { tools: [{ name: "hello", inputSchema: { type: "object" } }] })
    if (method === "tools/call") send(id, { content: [{ type: "text", text: "hello" }] })
  }
})
process.stdin.on("end", () => process.exit(0))
`
  )
  return file
}
const identity = (text: string): void => void project.write("identity", text)
const starts = (): number => (fs.existsSync(path.join(project.root, "started")) ? project.read("started").length : 0)
const settings = (): string => path.join(project.home, ".sigil", "sigil.toml")
const declare = (args: ReadonlyArray<string>, more = ""): void => {
  fs.mkdirSync(path.dirname(settings()), { recursive: true })
  fs.writeFileSync(
    settings(),
    `# mine\n[[mcp_servers]]\nname = "s"\ntransport = "stdio"\ncommand = ${JSON.stringify(process.execPath)}\nargs = ${JSON.stringify(args)}\n${more}\n[mcp_servers.trust]\napproval_default = "allow" # kept\n`
  )
}
const call = (env: { readonly [name: string]: string } = {}) => project.run(["mcp", "call", "s", "hello"], { env })

describe("a pinned server", () => {
  it("is pinned by one command that keeps the file's comments, and works as before", async () => {
    identity("good 1.0.0")
    declare([script(project.root)])
    const { code, document } = await project.document("change", ["mcp", "pin", "s"])
    assert.equal(code, 0)
    assert.equal(document.action, "pin")
    const text = fs.readFileSync(settings(), "utf8")
    assert.include(text, "# mine")
    assert.include(text, "# kept")
    assert.match(text, /transport_fingerprint = "sha256:[0-9a-f]{64}"/)
    assert.equal((await call()).code, 0)
    // Once more changes nothing.
    const again = await project.document("change", ["mcp", "pin", "s"])
    assert.include(again.document.notes.join(), "did not change")
    assert.equal(fs.readFileSync(settings(), "utf8"), text)
  })

  it("is refused after its handshake when it is another one, with every difference, and accepted by a new pin", async () => {
    identity("good 1.0.0")
    declare([script(project.root)])
    await project.run(["mcp", "pin", "s"])
    const first = fs.readFileSync(settings(), "utf8").replace("server_name =", "# keep\nserver_name =")
    const commented = first.replace('server_version = "1.0.0"', 'server_version = "1.0.0" # looked at')
    fs.writeFileSync(settings(), commented)
    identity("evil 6.6.6")
    const refused = await call()
    assert.equal(refused.code, 4)
    assert.include(
      refused.stderr,
      "server_name is 'evil', pinned is 'good'; server_version is '6.6.6', pinned is '1.0.0'"
    )
    assert.include(refused.stderr, "SIGIL_PIN_MISMATCH")
    assert.include(refused.stderr, "sigil mcp pin s")
    assert.equal((await project.run(["mcp", "pin", "s"])).code, 0)
    assert.equal((await call()).code, 0)
    assert.equal(
      fs.readFileSync(settings(), "utf8"),
      commented.replace('server_name = "good"', 'server_name = "evil"').replace('"1.0.0" #', '"6.6.6" #')
    )
  })

  it("is not even started when its launch is another one; the observed fingerprint is printed", async () => {
    identity("good 1.0.0")
    const file = script(project.root)
    declare([file])
    await project.run(["mcp", "pin", "s"])
    const before = starts()
    const pinned = fs.readFileSync(settings(), "utf8")
    fs.writeFileSync(
      settings(),
      pinned.replace(`args = [${JSON.stringify(file)}]`, `args = [${JSON.stringify(file)}, "--more"]`)
    )
    const refused = await call()
    assert.equal(refused.code, 4)
    assert.match(refused.stderr, /transport_fingerprint is 'sha256:[0-9a-f]{64}', pinned is 'sha256:[0-9a-f]{64}'/)
    assert.equal(starts(), before)
    const explained = await project.run(["mcp", "explain", "s"])
    assert.match(explained.stdout, /pin_and_lock\s+REFUSE/)
    assert.equal(starts(), before)
  })

  it("with grants is bound to the content of its program, too", async () => {
    identity("good 1.0.0")
    const file = script(project.root)
    const program = path.join(project.root, "program")
    fs.writeFileSync(program, `#!/bin/sh\nexec ${process.execPath} ${file}\n`, { mode: 0o755 })
    declare([file], 'inherit_env = ["GRANTED"]')
    fs.writeFileSync(
      settings(),
      fs.readFileSync(settings(), "utf8").replace(JSON.stringify(process.execPath), JSON.stringify(program))
    )
    const env = { GRANTED: "a-granted-value" }
    assert.equal((await project.run(["mcp", "pin", "s"], { env })).code, 0)
    assert.equal((await call(env)).code, 0)
    assert.notInclude(fs.readFileSync(settings(), "utf8"), "a-granted-value")
    const before = starts()
    fs.appendFileSync(program, "# changed\n")
    assert.equal((await call(env)).code, 4)
    assert.equal(starts(), before)
  })

  it("without grants is bound to its launch as written, not to the file of its program, and help says so", async () => {
    identity("good 1.0.0")
    declare([script(project.root)])
    fs.writeFileSync(
      settings(),
      fs.readFileSync(settings(), "utf8").replace(JSON.stringify(process.execPath), '"mysrv"')
    )
    const places = ["one", "two"].map((name) => path.join(project.root, name))
    for (const place of places) {
      fs.mkdirSync(place)
      fs.writeFileSync(path.join(place, "mysrv"), `#!/bin/sh\n# ${place}\nexec ${process.execPath} "$@"\n`, {
        mode: 0o755
      })
    }
    const searching = (list: ReadonlyArray<string>) => ({ PATH: [...list, process.env["PATH"]].join(path.delimiter) })
    assert.equal((await project.run(["mcp", "pin", "s"], { env: searching(places) })).code, 0)
    assert.equal((await call(searching(places.toReversed()))).code, 0)
    const help = await project.run(["mcp", "pin", "--help"])
    assert.match(help.stdout.replaceAll(/\s+/g, " "), /as it is written, not the program file; with a grant .* hash/)
  })

  it("of a project is pending again after it was pinned, and of the command line cannot be pinned", async () => {
    identity("good 1.0.0")
    project.write(".mcp.json", { mcpServers: { s: { command: process.execPath, args: [script(project.root)] } } })
    assert.equal((await project.run(["mcp", "pin", "s"])).code, 4)
    assert.equal(starts(), 0)
    await project.run(["mcp", "approve", "s"])
    const pinned = await project.document("change", ["mcp", "pin", "s"])
    assert.include(pinned.document.notes.join(), "sigil mcp approve s")
    assert.equal((await call()).code, 4)
    await project.run(["mcp", "approve", "s"])
    assert.equal((await project.run(["mcp", "call", "--yes", "s", "hello"])).code, 0)
    const inline = ["--mcp-config", JSON.stringify({ t: { command: "true" } }), "mcp", "pin", "t"]
    const refused = await project.run(inline)
    assert.equal(refused.code, 2)
    assert.include(refused.stderr, "does not edit")
  })
})

describe("a pin in a plugin's manifest", () => {
  it("binds the entry and the program's content, wherever the plugin lies", async () => {
    identity("good 1.0.0")
    const server = script(project.root)
    const program = (text: string): string => `#!/bin/sh\n# ${text}\nexec "$@"\n`
    const install = (home: string, launch: string, more = ""): string => {
      const root = path.join(home, "plugins", "u")
      fs.mkdirSync(root, { recursive: true })
      fs.writeFileSync(path.join(root, "run"), program("first"), { mode: 0o755 })
      const pinned = `transport_fingerprint = "${launch}"\nprotocol_version = "2025-11-25"\nserver_name = "good"\nserver_version = "1.0.0"`
      const entry = `name = "s"\ntransport = "stdio"\ncommand = "./run"\nargs = ${JSON.stringify([process.execPath, server])}${more}`
      fs.writeFileSync(
        path.join(root, "plugin.toml"),
        `id = "u"\n[[mcp_servers]]\n${entry}\n[mcp_servers.trust]\npin_version = true\n[mcp_servers.trust.pinned]\n${pinned}\n`
      )
      return root
    }
    const one = path.join(project.root, "one")
    const other = path.join(project.root, "other")
    const hello = (home: string) =>
      project.document("error", ["mcp", "call", "plugin:u:s", "hello", "--yes"], { env: { SIGIL_HOME: home } })

    install(one, `sha256:${"0".repeat(64)}`)
    const refused = await hello(one)
    assert.deepEqual([refused.code, refused.document.error.code, starts()], [4, "SIGIL_PIN_MISMATCH", 0])
    assert.include(refused.document.error.fix, "manifest")
    const observed = (refused.document.error.message.match(/sha256:[0-9a-f]{64}/g) ?? []).find(
      (one) => !/0{64}/.test(one)
    )
    assert.isDefined(observed)

    const ran = (home: string) =>
      project.run(["mcp", "call", "plugin:u:s", "hello", "--yes"], { env: { SIGIL_HOME: home } })
    install(one, observed)
    assert.equal((await ran(one)).code, 0)
    const root = install(other, observed)
    assert.equal((await ran(other)).code, 0)
    const before = starts()

    fs.writeFileSync(path.join(root, "run"), program("second"), { mode: 0o755 })
    assert.equal((await hello(other)).document.error.code, "SIGIL_PIN_MISMATCH")
    install(other, observed, "\ntool_timeout_secs = 7")
    assert.equal((await hello(other)).document.error.code, "SIGIL_PIN_MISMATCH")
    assert.equal(starts(), before)
  })
})

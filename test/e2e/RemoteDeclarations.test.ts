/** Declaring a remote server and looking at it: nothing is called, and no credential is shown. */
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { makeProject, type Project } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

const TOKEN = "tok-0123456789abcdef"
const toml = (): string => path.join(project.home, ".sigil", "sigil.toml")
const readToml = (): string => fs.readFileSync(toml(), "utf8")
const web = (hosts: string, cidrs: string): string =>
  `[web]\nallowed_private_hosts = [${hosts}]\nallowed_private_cidrs = [${cidrs}]\n`
const add = (...words: ReadonlyArray<string>) => project.document("change", ["mcp", "add", ...words])

describe("sigil mcp add of a server on this machine", () => {
  it("prints the lines that admit it and writes none of them", async () => {
    const { document } = await add("a", "http://127.0.0.1:4000/mcp")
    assert.include(document.notes.join("\n"), '  [web]\n  allowed_private_hosts = ["127.0.0.1"]')
    assert.include(document.notes.join("\n"), '  allowed_private_cidrs = ["127.0.0.0/8"]')
    assert.include(document.notes.join("\n"), toml())
    assert.include(document.notes.join("\n"), "--allow-loopback")
    assert.notInclude(readToml(), "[web]")
    const text = await project.run(["mcp", "add", "b", "http://127.0.0.1:4000/mcp"])
    assert.include(text.stdout, '\n  [web]\n  allowed_private_hosts = ["127.0.0.1"]\n')
  })

  it("writes them with --allow-loopback, and once only", async () => {
    const { document } = await add("--allow-loopback", "a", "http://127.0.0.1:4000/mcp")
    assert.include(document.notes.join("\n"), "allowed now")
    assert.include(readToml(), web('"127.0.0.1"', '"127.0.0.0/8"'))
    assert.include(readToml(), 'url = "http://127.0.0.1:4000/mcp"')
    const again = await add("--allow-loopback", "b", "http://127.0.0.1:5000/mcp")
    assert.notInclude(again.document.notes.join("\n"), "allowed")
    assert.equal(readToml().match(/127\.0\.0\.0\/8/g)?.length, 1)
    // What is admitted needs no lines.
    assert.notInclude((await add("c", "http://127.0.0.1:1/")).document.notes.join("\n"), "[web]")
  })

  it("adds to a table that is there, with its comments", async () => {
    fs.mkdirSync(path.dirname(toml()), { recursive: true })
    fs.writeFileSync(toml(), '# mine\n[web] # net\nallowed_private_hosts = ["nas"] # home\nconnect_timeout_secs = 7\n')
    const { document } = await add("--allow-loopback", "a", "http://localhost:4000/mcp")
    assert.include(document.notes.join("\n"), 'allowed_private_hosts = ["localhost", "nas"]')
    assert.include(
      readToml(),
      '# mine\n[web] # net\nallowed_private_hosts = ["localhost", "nas"] # home\nconnect_timeout_secs = 7\nallowed_private_cidrs = ["127.0.0.0/8", "::1/128"]\n'
    )
  })

  it("writes the lines into the file of --config, whatever the entry's scope", async () => {
    const file = project.write("other.toml", "")
    await project.run([
      "--config",
      file,
      "mcp",
      "add",
      "--allow-loopback",
      "--scope",
      "local",
      "a",
      "http://[::1]:4000/"
    ])
    assert.equal(project.read("other.toml"), web('"::1"', '"::1/128"'))
    assert.isFalse(fs.existsSync(toml()))
  })

  it("takes --allow-loopback for no other server, and then writes nothing", async () => {
    for (const words of [["https://mcp.example.test/mcp"], ["http://10.0.0.1/"], ["--", "node", "x.mjs"]]) {
      const { code, document } = await project.document("error", ["mcp", "add", "--allow-loopback", "a", ...words])
      assert.deepEqual([code, document.error.code], [2, "SIGIL_USAGE"])
    }
    assert.isFalse(fs.existsSync(toml()))
  })

  it("says what will be refused", async () => {
    assert.include((await add("a", "http://mcp.example.test/")).document.notes.join("\n"), "will be refused")
    const shared = await add("--scope", "project", "b", "https://mcp.example.test/")
    assert.include(shared.document.notes.join("\n"), 'project_remote = "approved"')
  })
})

describe("sigil mcp add of an address", () => {
  it("infers WebSocket from its scheme", async () => {
    await add("a", "wss://mcp.example.test/mcp")
    await add("--scope", "local", "b", "ws://localhost:4000/mcp")
    const { document } = await project.document("list", ["mcp", "list"])
    assert.deepEqual(
      document.servers.map(({ name, transport }) => [name, transport]),
      [
        ["a", "ws"],
        ["b", "ws"]
      ]
    )
  })

  it.each([
    ["https://169.254.169.254/latest", "No setting admits"],
    ["https://metadata.google.internal/", "No setting admits"],
    ["https://10.1.2.3/mcp", 'allowed_private_hosts = ["10.1.2.3"]'],
    ["https://[fd00::1]/mcp", 'allowed_private_cidrs = ["fd00::1/128"]'],
    ["ws://mcp.example.test/", "not encrypted"]
  ])("says that %s will be refused, and how to admit it", async (url, what) => {
    const notes = (await add("a", url)).document.notes.join("\n")
    assert.include(notes, "will be refused")
    assert.include(notes, what)
    assert.include(readToml(), url)
  })

  it("says nothing of an address that may be called, or that a variable fills in", async () => {
    for (const [index, url] of ["https://mcp.example.test/mcp", "https://${HOST}/mcp"].entries())
      assert.notInclude((await add(`n${index}`, url)).document.notes.join("\n"), "refused")
    fs.writeFileSync(toml(), web('"10.1.2.3"', '"10.0.0.0/8"'))
    assert.notInclude((await add("a", "https://10.1.2.3/mcp")).document.notes.join("\n"), "refused")
  })

  it.each([
    ["localhost:7701/mcp", "http://"],
    ["127.0.0.1:7701", "http://"],
    ["example.com/mcp", "https://"],
    ["example.com:8443", "https://"],
    ["www.example.com", "https://"],
    ["10.0.0.1/mcp", "https://"]
  ])("notes that %s is taken as a command", async (command, scheme) => {
    const notes = (await add("a", command)).document.notes.join("\n")
    assert.include(notes, `'${command}' is taken as a command; write ${scheme} in front of it`)
    assert.notInclude((await add("b", "--", command)).document.notes.join("\n"), "taken as a command")
  })

  it("takes a command for a command", async () => {
    fs.mkdirSync(path.join(project.root, "tools.d"))
    fs.writeFileSync(path.join(project.root, "tools.d", "run"), "#!/bin/sh\n", { mode: 0o755 })
    for (const [index, command] of ["server.py", "tools.d/run", "npx", "./a.b/c", "@scope/x", "C:\\x.exe"].entries())
      assert.notInclude((await add(`n${index}`, command)).document.notes.join("\n"), "taken as a command", command)
  })

  it.each([
    [["--transport", "http", "a", "wss://h.example.test/"], "URL: ", "url"],
    [["--scope", "local", "a", "https://h.example.test/#x"], "URL: ", "url"],
    [["--header", "Host=x", "a", "https://h.example.test/"], "--header Host: ", "http_headers.Host"],
    [
      ["--bearer-token-env-var", "1x", "a", "https://h.example.test/"],
      "--bearer-token-env-var: ",
      "bearer_token_env_var"
    ],
    [
      ["--scope", "user", "--env", "SIGIL_GENERATION=1", "a", "node"],
      "--env SIGIL_GENERATION: ",
      "env.SIGIL_GENERATION"
    ]
  ])("names the option or argument of an entry that it refuses: %s", async (words, begins, field) => {
    await add("other", "https://h.example.test/other")
    const { code, document } = await project.document("error", ["mcp", "add", ...words])
    assert.equal(code, 2)
    assert.isTrue(document.error.message.startsWith(begins), document.error.message)
    assert.deepEqual(document.error.where, { server: "a", field })
    assert.notInclude(JSON.stringify(document), "mcp_servers")
  })
})

describe("a remote server that is declared", () => {
  const entry = {
    url: `https://mcp.example.test/mcp?key=${TOKEN}`,
    headers: { "X-Api-Key": "${MY_KEY}", "X-Client": "sigil" },
    bearerTokenEnvVar: "MY_TOKEN"
  }
  const env = { MY_KEY: `key-${TOKEN}`, MY_TOKEN: TOKEN }
  const approved = () => {
    fs.mkdirSync(path.dirname(toml()), { recursive: true })
    fs.writeFileSync(toml(), '[mcp]\nproject_remote = "approved"\n')
    project.write(".mcp.json", { mcpServers: { far: entry } })
  }

  it("of a project is refused until the user allows such, and then needs approval", async () => {
    project.write(".mcp.json", { mcpServers: { far: entry } })
    const { document } = await project.document("explain", ["mcp", "explain", "far"], { env })
    assert.equal(document.gates.find(({ verdict }) => verdict === "refuse")?.gate, "declaration")
    approved()
    const pending = await project.document("pending", ["mcp", "pending"], { env })
    const [shown] = pending.document.pending
    assert.deepEqual(
      [shown?.name, shown?.transport, shown?.url, shown?.variables],
      ["far", "streamable_http", "https://mcp.example.test/mcp?key=[hidden]", ["MY_KEY", "MY_TOKEN"]]
    )
    const text = await project.run(["mcp", "pending", "far"], { env })
    assert.match(text.stdout, /would call https:\/\/mcp\.example\.test\/mcp/)
    assert.match(text.stdout, /X-Api-Key='\$\{MY_KEY\}'/)
    assert.match(text.stdout, /Authorization from MY_TOKEN/)
    assert.equal((await project.run(["mcp", "approve", "--all"], { env })).code, 0)
    assert.include((await project.run(["mcp", "list"], { env })).stdout, "pending")
    assert.equal((await project.run(["mcp", "approve", "far"], { env })).code, 0)
    const { document: explained } = await project.document("explain", ["mcp", "explain", "far"], { env })
    assert.isTrue(explained.gates.every(({ verdict }) => verdict === "pass"))
  })

  it("is shown by every command, and its credentials by none", async () => {
    approved()
    await project.run(["mcp", "approve", "far"], { env })
    const commands = [
      ["list", "--all"],
      ["get", "far"],
      ["explain", "far"],
      ["pending", "far"]
    ]
    const words = [...commands.map((command) => ["mcp", ...command]), ["doctor"]]
    for (const command of [...words, ...words.map((command) => ["--json", ...command])]) {
      const { code, stderr, stdout } = await project.run(command, { env })
      assert.equal(code, 0, stdout + stderr)
      assert.notInclude(stdout + stderr, TOKEN)
      assert.notInclude(stdout + stderr, "not supported")
    }
    const { document } = await project.document("get", ["mcp", "get", "far"], { env })
    assert.deepEqual(
      [document.header_names, document.grants, document.effective["on_timeout"], document.server.transport],
      [["X-Api-Key", "X-Client", "Authorization"], ["MY_TOKEN"], "keep", "streamable_http"]
    )
    assert.include((await project.run(["doctor"], { env })).stdout, "transport=streamable_http")
  })

  it("names what is missing, and is called by none of these commands", async () => {
    const callers: Array<net.Socket> = []
    const server = net.createServer((socket) => void callers.push(socket.destroy()))
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    try {
      const { port } = server.address() as net.AddressInfo // it listens on a port, not on a path
      await add("--allow-loopback", "near", `http://127.0.0.1:${port}/mcp`)
      await add("far", `https://127.0.0.1:${port}/mcp`, "--bearer-token-env-var", "MY_TOKEN")
      for (const command of [["mcp", "list"], ["mcp", "get", "near"], ["mcp", "explain", "near"], ["doctor"]])
        await project.run(command)
      const { document } = await project.document("explain", ["mcp", "explain", "far"])
      const refusal = document.gates.find(({ verdict }) => verdict === "refuse")
      assert.equal(refusal?.gate, "grants")
      assert.include(refusal?.why, "MY_TOKEN")
      const call = await project.document("error", ["mcp", "call", "far", "tool"])
      assert.deepEqual(
        [call.code, call.document.error.code, call.document.error.reason],
        [2, "SIGIL_MISSING_GRANT", "authentication_required"]
      )
      assert.deepEqual(callers, [])
    } finally {
      server.close()
    }
  })
})

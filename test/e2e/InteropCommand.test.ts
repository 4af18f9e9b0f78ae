/** The built command against servers of the official SDKs: declared by their URL, as a user would. */
import { afterAll, afterEach, assert, beforeAll, beforeEach, describe, it } from "vitest"
import { makeProject, type Project } from "../support/Command.ts"
import * as Fakes from "../support/interop/Fakes.ts"
import * as Recorder from "../support/interop/Recorder.ts"
import * as Peers from "../support/peers/Peers.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

const peers: ReadonlyArray<readonly [name: string, start: () => Promise<Peers.Peer>, version: string]> = [
  ["SDK 1.x over Streamable HTTP", Peers.sdk1Http, "2025-11-25"],
  ["SDK 1.x over SSE", Peers.sdk1Sse, "2025-11-25"],
  ["SDK 2.x over Streamable HTTP", Peers.sdk2Http, "2026-07-28"]
]
for (const [name, start, version] of peers)
  describe(name, () => {
    let peer: Peers.Peer
    beforeAll(async () => {
      peer = await start()
    })
    afterAll(() => peer.close())

    it("is added, listed, called, read and prompted", async () => {
      const added = await project.run(["mcp", "add", "peer", peer.url, "--approval", "allow", "--allow-loopback"])
      assert.equal(added.code, 0, added.stderr)
      const list = await project.document("list", ["mcp", "list", "--status"])
      const [row] = list.document.servers
      assert.deepInclude(row, { name: "peer", state: "ready" })
      assert.equal(row?.status?.protocol_version, version)
      const tools = await project.document("tools", ["mcp", "tools", "peer"])
      assert.includeMembers(
        (tools.document.servers[0]?.tools ?? []).map((tool) => tool.name),
        ["echo", "ask"]
      )
      const sum = await project.document("call", ["mcp", "call", "peer", "add", "a=2", "b=40"])
      assert.deepEqual(sum.document.structured_content, { sum: 42 })
      const read = await project.run(["mcp", "read", "peer", "peer://note"])
      assert.include(read.stdout, "a note")
      const prompt = await project.run(["mcp", "prompt", "peer", "greet", "name=Ada"])
      assert.include(prompt.stdout, "Greet Ada.")
      const completed = await project.run(["mcp", "complete", "peer", "prompt:greet", "name", "G"])
      assert.include(completed.stdout, "Grace", completed.stderr)
    })

    it("gets the answers of a file to its form", async () => {
      project.write("answers.json", { name: "Ada" })
      const servers = {
        peer: { url: peer.url, trust: { approval_default: "allow" }, clientCapabilities: ["elicitation"] }
      }
      const allowed = await project.run(["mcp", "add", "other", peer.url, "--allow-loopback"])
      assert.equal(allowed.code, 0, allowed.stderr)
      const config = ["--mcp-config", JSON.stringify({ mcpServers: servers })]
      const asked = await project.document("call", [
        ...config,
        "mcp",
        "call",
        "peer",
        "ask",
        "--answers",
        "answers.json"
      ])
      assert.equal(asked.document.content[0]?.["text"], "hello Ada")
      project.write("short.json", { name: 7 })
      const short = await project.document("error", [
        ...config,
        "mcp",
        "call",
        "peer",
        "ask",
        "--answers",
        "short.json"
      ])
      assert.deepEqual([short.code, short.document.error.code], [4, "SIGIL_INPUT_REQUIRED"])
      assert.equal(short.document.error.fix, "Correct 'name' in short.json.")
      const alone = await project.run([...config, "mcp", "call", "peer", "ask"])
      assert.notEqual(alone.code, 0)
      assert.notInclude(alone.stdout, "hello")
      // Commands that call nothing need nobody.
      const list = await project.document("list", [...config, "mcp", "list", "--status"])
      assert.equal(list.document.servers.find(({ name }) => name === "peer")?.state, "ready")
      assert.equal((await project.run([...config, "mcp", "tools", "peer"])).code, 0)
      assert.equal((await project.run([...config, "mcp", "prompts", "peer"])).code, 0)
      assert.equal((await project.run([...config, "mcp", "complete", "peer", "prompt:greet", "name", "G"])).code, 0)
      const doctor = await project.document("doctor", [...config, "doctor", "--probe"])
      assert.deepEqual(
        doctor.document.checks.filter(({ subject }) => subject === "peer").map(({ status }) => status),
        ["ok", "ok"]
      )
      const explained = await project.document("explain", [...config, "mcp", "explain", "peer"])
      assert.equal(explained.document.gates.find(({ verdict }) => verdict === "refuse")?.gate, "credential")
      const logs = await project.run([...config, "mcp", "logs", "peer"])
      assert.include(logs.stderr, "is remote")
    })
  })

it("the next command remembers what a server speaks", async () => {
  const peer = await Peers.sdk1Http()
  const recorder = await Recorder.record(peer.url)
  try {
    const added = await project.run(["mcp", "add", "peer", recorder.url, "--approval", "allow", "--allow-loopback"])
    assert.equal(added.code, 0, added.stderr)
    await project.run(["mcp", "call", "peer", "echo", "text=one"])
    const first = recorder.requests.length
    assert.deepEqual(recorder.said().slice(0, 2), ["server/discover", "initialize"])
    const again = await project.run(["mcp", "call", "peer", "echo", "text=two"])
    assert.include(again.stdout, "two")
    assert.equal(recorder.said()[first], "initialize")
    assert.equal(recorder.said().at(-1), "DELETE")
  } finally {
    await recorder.close()
    await peer.close()
  }
})

it("a server that is dead and one that never answers cost the others nothing in a list", async () => {
  const [hole, peer] = await Promise.all([Fakes.blackHole(), Peers.sdk2Http()])
  try {
    const entry = (url: string): object => ({ url, startupTimeoutSecs: 1, trust: { approval_default: "allow" } })
    project.write("servers.json", {
      mcpServers: { hole: entry(hole.url), dead: entry(await Fakes.dead()), peer: entry(peer.url) }
    })
    const allowed = await project.run(["mcp", "add", "other", peer.url, "--allow-loopback"])
    assert.equal(allowed.code, 0, allowed.stderr)
    const list = await project.document("list", ["--mcp-config", "servers.json", "mcp", "list", "--status"])
    assert.deepEqual(
      list.document.servers
        .filter(({ name }) => name !== "other")
        .map(({ name, state, reason }) => [name, state, reason?.code])
        .toSorted(),
      [
        ["dead", "failed", "SIGIL_START_FAILED"],
        ["hole", "failed", "SIGIL_START_TIMEOUT"],
        ["peer", "ready", undefined]
      ]
    )
  } finally {
    await Promise.all([hole.close(), peer.close()])
  }
})

/** server-everything over each of its transports, and every handshake revision of SDK 1.x, through the library. */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { DynamicServer } from "../../src/index.ts"
import * as Host from "../support/interop/Host.ts"
import * as Peers from "../support/peers/Peers.ts"

const home = Host.makeHome()
afterAll(() => home.dispose())

const over: ReadonlyArray<
  readonly [name: string, peer: (() => Promise<Peers.Peer>) | undefined, entry: (url: string) => DynamicServer]
> = [
  ["stdio", undefined, () => Host.local(Peers.everythingStdio)],
  ["Streamable HTTP", Peers.everythingHttp, (url) => Host.remote(url)],
  ["SSE", Peers.everythingSse, (url) => Host.remote(url)]
]

for (const [name, peer, entry] of over)
  describe(`server-everything over ${name}`, () => {
    let running: Peers.Peer | undefined
    let host: Host.Host
    beforeAll(async () => {
      running = await peer?.()
      host = Host.open(home, { every: entry(running?.url ?? "") }, { name: "Ada", interpretation: "programming" })
    })
    afterAll(async () => {
      await host.close()
      await running?.close()
    })
    const call = async (tool: string, args = {}): Promise<string> => Host.textOf(await host.call("every", tool, args))

    it("answers, with structured content, progress and instructions", async () => {
      assert.match((await host.activate("every")).instructions ?? "", /Everything/)
      assert.equal(await call("echo", { message: "hello" }), "Echo: hello")
      const weather = await host.call("every", "get-structured-content", { location: "Chicago" })
      assert.deepInclude(weather.result["structuredContent"], { temperature: 36 })
      assert.isUndefined(weather.outputProblem)
      const steps: Array<number> = []
      await host.call(
        "every",
        "trigger-long-running-operation",
        { duration: 0.2, steps: 4 },
        { onProgress: ({ progress }) => steps.push(progress) }
      )
      assert.deepEqual(steps, [1, 2, 3, 4])
    })

    it("asks for a form and for the roots", async () => {
      assert.include(JSON.stringify((await host.call("every", "trigger-elicitation-request")).result["content"]), "Ada")
      assert.include(await call("get-roots-list"), `file://${home.workspace}`)
    })

    it("offers resources, prompts and completion with its context", async () => {
      assert.isAbove((await host.list("every", "resources")).length, 0)
      assert.isAbove((await host.list("every", "templates")).length, 0)
      const { result } = await host.read("every", "demo://resource/dynamic/text/1")
      assert.include(JSON.stringify(result["contents"]), "demo://resource/dynamic/text/1")
      const prompt = await host.prompt("every", "args-prompt", { city: "Rome" })
      assert.include(JSON.stringify(prompt.result["messages"]), "Rome")
      const completion = await host.complete("every", "completable-prompt", "department", "S")
      assert.deepInclude(completion, { values: ["Sales", "Support"] })
    })

    it("tells of updates of what was subscribed to", async () => {
      const next = await host.subscribe("every", "demo://resource/dynamic/text/1")
      await call("toggle-subscriber-updates")
      assert.equal(await next(), "demo://resource/dynamic/text/1")
    })

    it("does the work of a task, with a form in its middle", async () => {
      const report = await call("simulate-research-query", { topic: "python", ambiguous: true })
      assert.include(report, "Research Report: python (programming)")
      assert.include(host.forms.map(({ message }) => message).join("\n"), "could have multiple interpretations")
    })
  })

for (const revision of ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
  it(`SDK 1.x speaks ${revision} when its entry demands it`, async () => {
    const peer = await Peers.sdk1Http()
    const host = Host.open(home, {
      process: Host.local(Peers.sdk1Stdio, { protocol: revision }),
      stream: Host.remote(peer.url, { protocol: revision })
    })
    try {
      for (const server of ["process", "stream"]) {
        assert.equal((await host.activate(server)).revision.version, revision)
        assert.equal(Host.textOf(await host.call(server, "echo", { text: "hello" })), "hello")
        assert.equal(Host.textOf(await host.call(server, "ask")), "hello Ada")
      }
    } finally {
      await host.close()
      await peer.close()
    }
  })

/**
 * sigil's public library against the servers of the official SDKs: each peer and each thing that it offers.
 *
 * No entry names an era or a revision: both have to be found.
 */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { DynamicServer } from "../../src/index.ts"
import * as Host from "../support/interop/Host.ts"
import * as Peers from "../support/peers/Peers.ts"

interface Case {
  readonly name: string
  readonly entry: (url: string) => DynamicServer
  readonly peer?: () => Promise<Peers.Peer>
  readonly revision: string
  /** Has sessions of Streamable HTTP; the id is sent. */
  readonly session?: boolean
  /** Can ask, log and announce in the middle of a call and outside; a server without sessions in the older era cannot. */
  readonly duplex: boolean
  /** A stream that the server closes can be resumed. */
  readonly resumes?: boolean
}

const legacy = "2025-11-25"
const modern = "2026-07-28"
const over = (url: string): DynamicServer => Host.remote(url)

const cases: ReadonlyArray<Case> = [
  { name: "sdk 1.x over stdio", entry: () => Host.local(Peers.sdk1Stdio), revision: legacy, duplex: true },
  {
    name: "sdk 1.x over Streamable HTTP",
    peer: Peers.sdk1Http,
    entry: over,
    revision: legacy,
    session: true,
    duplex: true,
    resumes: true
  },
  {
    name: "sdk 1.x over SSE, declared by its URL alone",
    peer: Peers.sdk1Sse,
    entry: over,
    revision: legacy,
    duplex: true
  },
  {
    name: "server-legacy over SSE, declared as sse",
    peer: Peers.legacySse,
    entry: (url) => Host.remote(url, { transport: "sse" }),
    revision: legacy,
    duplex: true
  },
  { name: "sdk 2.x over stdio, both eras", entry: () => Host.local(Peers.sdk2Stdio), revision: modern, duplex: true },
  {
    name: "sdk 2.x over stdio, both eras, held to the older",
    entry: () => Host.local(Peers.sdk2Stdio, { protocol: legacy }),
    revision: legacy,
    duplex: true
  },
  {
    name: "sdk 2.x over stdio, 2026-07-28 only",
    entry: () => Host.local(Peers.sdk2ModernStdio),
    revision: modern,
    duplex: true
  },
  {
    name: "sdk 2.x over Streamable HTTP, both eras",
    peer: Peers.sdk2Http,
    entry: over,
    revision: modern,
    duplex: true
  },
  {
    name: "sdk 2.x over Streamable HTTP, both eras, held to the older",
    peer: Peers.sdk2Http,
    entry: (url) => Host.remote(url, { protocol: legacy }),
    revision: legacy,
    session: true,
    duplex: true,
    resumes: true
  },
  {
    name: "sdk 2.x over Streamable HTTP, held to the older without sessions",
    peer: Peers.sdk2StatelessHttp,
    entry: (url) => Host.remote(url, { protocol: legacy }),
    revision: legacy,
    duplex: false
  },
  {
    name: "sdk 2.x over Streamable HTTP, 2026-07-28 only",
    peer: Peers.sdk2ModernHttp,
    entry: over,
    revision: modern,
    duplex: true
  }
]

const home = Host.makeHome()
afterAll(() => home.dispose())

for (const { name, entry, peer, revision, session, duplex, resumes } of cases)
  describe(name, () => {
    let running: Peers.Peer | undefined
    let host: Host.Host
    beforeAll(async () => {
      running = await peer?.()
      host = Host.open(home, { peer: entry(running?.url ?? "") })
    })
    afterAll(async () => {
      await host.close()
      await running?.close()
    })
    const call = async (tool: string, args = {}): Promise<string> => Host.textOf(await host.call("peer", tool, args))

    it("is found to speak its newest revision, and says what it is", async () => {
      const generation = await host.activate("peer")
      assert.equal(generation.revision.version, revision)
      assert.match(generation.info.name, /^peer-/)
      assert.equal(generation.instructions, "Ask for the note first.")
      assert.includeMembers([...(await host.tools("peer"))], ["echo", "add", "progress", "ask", "grow", "seen"])
    })

    it("answers calls, with structured content that fits its schema", async () => {
      assert.equal(await call("echo", { text: "hello" }), "hello")
      const sum = await host.call("peer", "add", { a: 2, b: 40 })
      assert.deepEqual(sum.result["structuredContent"], { sum: 42 })
      assert.isUndefined(sum.outputProblem)
      const seen = JSON.parse(await call("seen")) as {
        readonly era: string
        readonly session: string | null
        readonly client: { readonly name: string } | null
      }
      assert.equal(seen.era, revision === modern ? "modern" : "legacy")
      if (session !== undefined) assert.isString(seen.session)
      if (revision === legacy && duplex) assert.equal(seen.client?.name, "sigil")
    })

    it("reports progress in its order", async () => {
      const steps: Array<number> = []
      const outcome = await host.call(
        "peer",
        "progress",
        { steps: 3 },
        { onProgress: ({ progress }) => steps.push(progress) }
      )
      assert.equal(Host.textOf(outcome), "3 steps")
      assert.equal(steps.at(-1), 3)
      assert.deepEqual(steps, [...steps].sort())
    })

    it("offers resources, templates, prompts and completion", async () => {
      const resources = await host.list("peer", "resources")
      assert.include(
        resources.map(({ uri }) => uri),
        "peer://note"
      )
      const templates = await host.list("peer", "templates")
      assert.deepEqual(
        templates.map(({ uriTemplate }) => uriTemplate),
        ["peer://items/{id}"]
      )
      const { result } = await host.read("peer", "peer://items/7")
      assert.include(JSON.stringify(result["contents"]), "item 7")
      const prompts = await host.list("peer", "prompts")
      assert.deepEqual(
        prompts.map((prompt) => prompt["name"]),
        ["greet"]
      )
      const greeting = await host.prompt("peer", "greet", { name: "Ada" })
      assert.include(JSON.stringify(greeting.result["messages"]), "Greet Ada.")
      const completion = await host.complete("peer", "greet", "name", "A")
      assert.deepInclude(completion, { values: ["Ada", "Alan"] })
    })

    it("sees a call given up", async () => {
      const waiting = await new Promise<Host.Calling>((resolve) => {
        const calling = host.start("peer", "wait", {}, { onProgress: () => resolve(calling) })
      })
      await waiting.interrupt()
      if (duplex) assert.equal(await call("given-up"), "seen")
    })

    it("sees the deadline of a call, and goes on", async () => {
      const exit = await host.start("peer", "wait", {}, { timeoutMs: 400 }).done
      assert.include(JSON.stringify(exit), "SIGIL_CALL_TIMEOUT")
      assert.equal(await call("echo", { text: "still here" }), "still here")
    })

    it("carries what is large, and no character is torn", async () => {
      const large = "aé€𝄞".repeat(150_000)
      assert.isTrue((await call("echo", { text: large })) === large)
    })

    it("keeps many calls apart", async () => {
      const heard = await Promise.all(
        Array.from({ length: 16 }, async (_, index) => {
          let last = 0
          const onProgress = ({ progress }: { readonly progress: number }): void => {
            last = progress
          }
          const outcome = await host.call("peer", "progress", { steps: index + 1 }, { onProgress })
          return [Host.textOf(outcome), last]
        })
      )
      assert.deepEqual(
        heard,
        heard.map((_, index) => [`${index + 1} steps`, index + 1])
      )
    })

    it("refuses one request without harm to the others", async () => {
      const { id } = await host.activate("peer")
      const failure: unknown = await host.read("peer", "peer://nowhere").catch((error: unknown) => error)
      assert.deepInclude(failure, { code: "SIGIL_REMOTE_ERROR" })
      assert.isTrue((await host.call("peer", "fail")).isError)
      assert.equal((await host.activate("peer")).id, id)
    })

    if (!duplex) return

    it("gets no answer to its form where nobody is there", async () => {
      const answer = host.call("peer", "ask", {}, { alone: true })
      if (revision === modern) {
        const failure: unknown = await answer.catch((error: unknown) => error)
        assert.deepInclude(failure, { code: "SIGIL_INPUT_REQUIRED" })
      } else {
        // The server hears that the method is unknown, and makes of it what it will.
        assert.isTrue((await answer).isError)
      }
    })

    it("asks for a form in the middle of a call", async () => {
      assert.equal(await call("ask"), "hello Ada")
      assert.equal(host.forms.at(-1)?.message, "What is your name?")
    })

    it("asks for the roots", async () => {
      assert.deepEqual(JSON.parse(await call("roots")), [`file://${home.workspace}`])
    })

    it("tells of an update of what was subscribed to", async () => {
      const next = await host.subscribe("peer", "peer://note")
      assert.equal(await call("touch"), "touched")
      assert.equal(await next(), "peer://note")
    })

    it("logs from the level on that was asked for", async () => {
      const generation = await host.activate("peer")
      await host.setLevel("peer", "warning")
      await call("say", { word: "first" })
      await host.setLevel("peer", "debug")
      const heard = new Promise<void>((resolve) => {
        const stop = generation.notices.listen((notice) => {
          if (notice._tag !== "Log" || notice.message.text !== "warning second") return
          stop()
          resolve()
        })
      })
      await call("say", { word: "second" })
      await heard
      assert.deepEqual(
        generation.notices.messages().map(({ level, text }) => [level, text]),
        [
          ["warning", "warning first"],
          ["debug", "debug second"],
          ["warning", "warning second"]
        ]
      )
    })

    it("changes its tools", async () => {
      const generation = await host.activate("peer")
      const changed = new Promise<void>((resolve) => {
        generation.notices.listen((notice) => {
          if (notice._tag === "ListChanged" && notice.surface === "tools") resolve()
        })
      })
      const grown = await call("grow")
      await changed
      await host.settle()
      assert.include(await host.tools("peer"), grown)
      assert.equal(await call(grown), grown)
    })

    if (resumes === true)
      it("answers a call whose stream it closed", async () => {
        assert.equal(await call("cut"), "answered after the cut")
      })
  })

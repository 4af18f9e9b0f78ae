/** Each peer offers what it says, to the official client of its era. */
import * as modern from "@modelcontextprotocol/client"
import { StdioClientTransport as ModernStdio } from "@modelcontextprotocol/client/stdio"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js"
import { afterEach, assert, describe, it } from "vitest"
import * as Peers from "./Peers.ts"

/** What every case opened, closed after it in reverse. */
const opened: Array<() => Promise<void>> = []
afterEach(async () => {
  for (const close of opened.splice(0).toReversed()) await close()
})

/** A client of either era, as far as these tests use it. */
interface Face {
  readonly tools: () => Promise<ReadonlyArray<string>>
  readonly call: (
    name: string,
    args?: Record<string, unknown>
  ) => Promise<{ readonly text: string; readonly structured: unknown }>
  readonly read: (uri: string) => Promise<string>
  readonly templates: () => Promise<ReadonlyArray<string>>
  readonly prompt: (name: string, args: Record<string, string>) => Promise<string>
  /** Progress in the order in which it arrived, with that which the client itself drops beside an answer. */
  readonly progress: ReadonlyArray<number>
  /** Settles at the first change of the tool list. */
  readonly changed: Promise<void>
}

/** Content of a result; both SDKs check its shape before it gets here. */
const textOf = (result: unknown): { readonly text: string; readonly structured: unknown } => {
  const { content, structuredContent } = result as {
    readonly content?: ReadonlyArray<{ readonly text?: string }>
    readonly structuredContent?: unknown
  }
  return { text: content?.[0]?.text ?? "", structured: structuredContent }
}
const firstText = (contents: ReadonlyArray<object>): string => {
  const [first] = contents
  return first !== undefined && "text" in first ? String(first.text) : ""
}

/** A transport of either SDK, as far as it is listened to; their own types of it are no common one. */
interface Heard {
  onmessage?: unknown
}

/** Hears what arrives before the client does. */
const listenTo = (transport: Heard): ReadonlyArray<number> => {
  const progress: Array<number> = []
  // Both SDKs call it with a message and its circumstances.
  const client = transport.onmessage as (message: object, extra?: unknown) => void
  const hear = (message: object, extra?: unknown) => {
    // The client checks messages; this only looks at those that it will accept.
    const { method, params } = message as { readonly method?: string; readonly params?: { readonly progress: number } }
    if (method === "notifications/progress" && params !== undefined) progress.push(params.progress)
    client(message, extra)
  }
  Object.assign(transport, { onmessage: hear })
  return progress
}

const answer = async () => ({ action: "accept" as const, content: { name: "Ada" } })
const capabilities = { elicitation: {}, roots: {} }

const legacyClient = async (transport: Transport): Promise<Face> => {
  const client = new Client({ name: "peers", version: "1" }, { capabilities })
  client.setRequestHandler(ElicitRequestSchema, answer)
  const changed = new Promise<void>((resolve) => {
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve())
  })
  await client.connect(transport)
  const progress = listenTo(transport)
  opened.push(() => client.close())
  return {
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args = {}) =>
      textOf(await client.callTool({ name, arguments: args }, undefined, { onprogress: () => undefined })),
    progress,
    read: async (uri) => firstText((await client.readResource({ uri })).contents),
    templates: async () => (await client.listResourceTemplates()).resourceTemplates.map((one) => one.uriTemplate),
    prompt: async (name, args) =>
      firstText((await client.getPrompt({ name, arguments: args })).messages.map(({ content }) => content)),
    changed
  }
}

const modernClient = async (
  transport: modern.Transport,
  mode: modern.VersionNegotiationMode = "auto"
): Promise<Face> => {
  let resolveChanged: () => void = () => undefined
  const changed = new Promise<void>((resolve) => {
    resolveChanged = resolve
  })
  const client = new modern.Client(
    { name: "peers", version: "2" },
    {
      capabilities,
      versionNegotiation: { mode },
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => resolveChanged() } }
    }
  )
  client.setRequestHandler("elicitation/create", answer)
  await client.connect(transport)
  const progress = listenTo(transport)
  opened.push(() => client.close())
  return {
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args = {}) =>
      textOf(await client.callTool({ name, arguments: args }, { onprogress: () => undefined })),
    progress,
    read: async (uri) => firstText((await client.readResource({ uri })).contents),
    templates: async () => (await client.listResourceTemplates()).resourceTemplates.map((one) => one.uriTemplate),
    prompt: async (name, args) =>
      firstText((await client.getPrompt({ name, arguments: args })).messages.map(({ content }) => content)),
    changed
  }
}

const at = async (peer: Promise<Peers.Peer>): Promise<URL> => {
  const { url, close } = await peer
  opened.push(close)
  return new URL(url)
}
const streamable = async (peer: Promise<Peers.Peer>): Promise<Transport> =>
  // Its optional members are typed with `undefined`, which its own interface does not allow under strict options.
  new StreamableHTTPClientTransport(await at(peer)) as Transport
const sse = async (peer: Promise<Peers.Peer>): Promise<Transport> => new SSEClientTransport(await at(peer))
const stdio = ({ command, args }: Peers.StdioPeer): Transport => new StdioClientTransport({ command, args: [...args] })
const modernHttp = async (peer: Promise<Peers.Peer>) => new modern.StreamableHTTPClientTransport(await at(peer))
const modernStdio = ({ command, args }: Peers.StdioPeer) => new ModernStdio({ command, args: [...args] })

interface Case {
  readonly name: string
  readonly open: () => Promise<Face>
  readonly era: "legacy" | "modern"
  /** Has a session id. */
  readonly session: boolean
  /** Can ask, and can tell of changes; a server without sessions cannot do either in the older era. */
  readonly duplex: boolean
  /** A cut stream can be resumed. */
  readonly resumes?: boolean
}

const cases: ReadonlyArray<Case> = [
  {
    name: "sdk 1.x over stdio",
    open: async () => legacyClient(stdio(Peers.sdk1Stdio)),
    era: "legacy",
    session: false,
    duplex: true
  },
  {
    name: "sdk 1.x over Streamable HTTP",
    open: async () => legacyClient(await streamable(Peers.sdk1Http())),
    era: "legacy",
    session: true,
    duplex: true,
    resumes: true
  },
  {
    name: "sdk 1.x over SSE",
    open: async () => legacyClient(await sse(Peers.sdk1Sse())),
    era: "legacy",
    session: true,
    duplex: true
  },
  {
    name: "sdk 2.x over stdio, initialized",
    open: async () => legacyClient(stdio(Peers.sdk2Stdio)),
    era: "legacy",
    session: false,
    duplex: true
  },
  {
    name: "sdk 2.x over Streamable HTTP, initialized",
    open: async () => legacyClient(await streamable(Peers.sdk2Http())),
    era: "legacy",
    session: true,
    duplex: true,
    resumes: true
  },
  {
    name: "sdk 2.x over Streamable HTTP, initialized without session",
    open: async () => legacyClient(await streamable(Peers.sdk2StatelessHttp())),
    era: "legacy",
    session: false,
    duplex: false
  },
  {
    name: "server-legacy over SSE",
    open: async () => legacyClient(await sse(Peers.legacySse())),
    era: "legacy",
    session: true,
    duplex: true
  },
  {
    name: "sdk 2.x over stdio, both eras",
    open: async () => modernClient(modernStdio(Peers.sdk2Stdio)),
    era: "modern",
    session: false,
    duplex: true
  },
  {
    name: "sdk 2.x over stdio, 2026-07-28 only",
    open: async () => modernClient(modernStdio(Peers.sdk2ModernStdio)),
    era: "modern",
    session: false,
    duplex: true
  },
  {
    name: "sdk 2.x over Streamable HTTP, both eras",
    open: async () => modernClient(await modernHttp(Peers.sdk2Http())),
    era: "modern",
    session: false,
    duplex: true
  },
  {
    name: "sdk 2.x over Streamable HTTP, 2026-07-28 only",
    open: async () => modernClient(await modernHttp(Peers.sdk2ModernHttp()), { pin: "2026-07-28" }),
    era: "modern",
    session: false,
    duplex: true
  }
]

describe("a peer of the official SDKs", () => {
  for (const { name, open, era, session, duplex, resumes } of cases)
    it(name, async () => {
      const face = await open()
      assert.includeMembers([...(await face.tools())], ["echo", "add", "progress", "ask", "grow", "cut", "seen"])
      assert.equal((await face.call("echo", { text: "hello" })).text, "hello")
      assert.deepEqual((await face.call("add", { a: 2, b: 40 })).structured, { sum: 42 })
      await face.call("progress", { steps: 3 })
      assert.deepEqual([...face.progress], [1, 2, 3])
      assert.equal(await face.read("peer://note"), "a note")
      assert.equal(await face.read("peer://items/7"), "item 7")
      assert.deepEqual([...(await face.templates())], ["peer://items/{id}"])
      assert.equal(await face.prompt("greet", { name: "Ada" }), "Greet Ada.")
      const seen = JSON.parse((await face.call("seen")).text) as { readonly era: string; readonly session: unknown }
      assert.equal(seen.era, era)
      assert.equal(typeof seen.session === "string", session)
      if (resumes === true) assert.equal((await face.call("cut")).text, "answered after the cut")
      if (!duplex) return
      assert.equal((await face.call("ask")).text, "hello Ada")
      const { text } = await face.call("grow")
      await face.changed
      assert.include(await face.tools(), text)
    })
})

describe("server-everything", () => {
  const everything: ReadonlyArray<readonly [string, () => Promise<Transport>]> = [
    ["stdio", async () => stdio(Peers.everythingStdio)],
    ["Streamable HTTP", () => streamable(Peers.everythingHttp())],
    ["SSE", () => sse(Peers.everythingSse())]
  ]
  for (const [name, open] of everything)
    it(`answers over ${name}`, async () => {
      const face = await legacyClient(await open())
      assert.equal((await face.call("echo", { message: "hello" })).text, "Echo: hello")
    })
})

it("a peer comes back on its port, without what it knew", async () => {
  const first = await Peers.sdk1Http()
  await first.close()
  const second = await Peers.sdk1Http({ port: first.port })
  opened.push(second.close)
  assert.equal(second.url, first.url)
  const response = await fetch(second.url, {
    method: "POST",
    headers: { "content-type": "application/json", "mcp-session-id": "of the first" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" })
  })
  assert.equal(response.status, 404)
})

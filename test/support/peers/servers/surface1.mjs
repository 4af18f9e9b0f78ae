// What every peer offers, on an SDK 1.x McpServer. `surface2.mjs` offers the same on SDK 2.x.
import { completable } from "@modelcontextprotocol/sdk/server/completable.js"
import { ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js"
import { SubscribeRequestSchema, UnsubscribeRequestSchema } from "@modelcontextprotocol/sdk/types.js"
import { z } from "zod"
import { givenUp, instructions, names } from "./witness.mjs"

const text = (value) => ({ content: [{ type: "text", text: value }] })

/** What a server is made with, besides its name. */
export const options = { instructions, capabilities: { logging: {}, resources: { subscribe: true } } }

/** Registers the surface. `era` is what the tool `seen` says of the connection. */
export const register = (server, era = "legacy") => {
  let grown = 0
  server.registerTool(
    "echo",
    { description: "Answers with its text.", inputSchema: { text: z.string() } },
    ({ text: value }) => text(value)
  )
  server.registerTool(
    "add",
    {
      description: "Adds two numbers.",
      inputSchema: { a: z.number(), b: z.number() },
      outputSchema: { sum: z.number() }
    },
    ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } })
  )
  server.registerTool(
    "progress",
    { description: "Reports each of its steps.", inputSchema: { steps: z.number().int() } },
    async ({ steps }, extra) => {
      const progressToken = extra._meta?.progressToken
      const last = progressToken === undefined ? 0 : steps
      for (let progress = 1; progress <= last; progress += 1) {
        await extra.sendNotification({
          method: "notifications/progress",
          params: { progressToken, progress, total: steps, message: `step ${progress}` }
        })
      }
      return text(`${steps} steps`)
    }
  )
  server.registerTool("ask", { description: "Asks for a name." }, async (extra) => {
    const answer = await server.server.elicitInput(
      {
        mode: "form",
        message: "What is your name?",
        requestedSchema: {
          type: "object",
          properties: { name: { type: "string", default: "nobody" } },
          required: ["name"]
        }
      },
      { relatedRequestId: extra.requestId }
    )
    return text(answer.action === "accept" ? `hello ${answer.content?.name}` : answer.action)
  })
  server.registerTool("roots", { description: "Asks for the roots." }, async (extra) => {
    const { roots } = await server.server.listRoots(undefined, { relatedRequestId: extra.requestId })
    return text(JSON.stringify(roots.map(({ uri }) => uri)))
  })
  server.registerTool("wait", { description: "Says that it began, and waits to be given up." }, async (extra) => {
    await extra.sendNotification({
      method: "notifications/progress",
      params: { progressToken: extra._meta?.progressToken, progress: 1 }
    })
    await givenUp.mark(extra.signal)
    return text("given up")
  })
  server.registerTool("given-up", { description: "Answers once a call was given up." }, async () => {
    await givenUp.next()
    return text("seen")
  })
  server.registerTool("fail", { description: "Fails." }, () => {
    throw new Error("it failed")
  })
  server.registerTool("touch", { description: "Announces a change of the note." }, async () => {
    await server.server.sendResourceUpdated({ uri: "peer://note" })
    return text("touched")
  })
  server.registerTool(
    "say",
    { description: "Logs a word at each level.", inputSchema: { word: z.string() } },
    async ({ word }, extra) => {
      for (const level of ["debug", "warning"])
        await server.sendLoggingMessage({ level, logger: "peer", data: `${level} ${word}` }, extra.sessionId)
      return text("said")
    }
  )
  server.registerTool("grow", { description: "Adds a tool to the list." }, () => {
    grown += 1
    const name = `grown-${grown}`
    server.registerTool(name, { description: "Was added." }, () => text(name))
    return text(name)
  })
  server.registerTool("cut", { description: "Closes the stream of its call before it answers." }, async (extra) => {
    extra.closeSSEStream?.()
    return text(extra.closeSSEStream === undefined ? "there is no stream to close" : "answered after the cut")
  })
  server.registerTool("seen", { description: "Tells what it sees of its caller." }, (extra) =>
    text(
      JSON.stringify({
        era,
        session: extra.sessionId ?? null,
        headers: extra.requestInfo?.headers ?? {},
        client: server.server.getClientVersion() ?? null,
        capabilities: server.server.getClientCapabilities() ?? null
      })
    )
  )
  for (const schema of [SubscribeRequestSchema, UnsubscribeRequestSchema])
    server.server.setRequestHandler(schema, () => ({}))
  server.registerResource("note", "peer://note", { description: "A note.", mimeType: "text/plain" }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: "text/plain", text: "a note" }]
  }))
  server.registerResource(
    "item",
    new ResourceTemplate("peer://items/{id}", { list: undefined }),
    { description: "An item by its id." },
    (uri, { id }) => ({ contents: [{ uri: uri.href, text: `item ${id}` }] })
  )
  server.registerPrompt(
    "greet",
    { description: "A greeting.", argsSchema: { name: completable(z.string(), names) } },
    ({ name }) => ({
      messages: [{ role: "user", content: { type: "text", text: `Greet ${name}.` } }]
    })
  )
}

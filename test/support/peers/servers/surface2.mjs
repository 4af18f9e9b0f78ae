// What every peer offers, on an SDK 2.x McpServer. `surface1.mjs` offers the same on SDK 1.x.
import {
  acceptedContent,
  completable,
  inputRequired,
  inputResponse,
  ResourceTemplate
} from "@modelcontextprotocol/server"
import { z } from "zod"
import { givenUp, instructions, names } from "./witness.mjs"

const text = (value) => ({ content: [{ type: "text", text: value }] })

/** What a server is made with, besides its name. */
export const options = { instructions, capabilities: { logging: {}, resources: { subscribe: true } } }

/**
 * Registers the surface. `era` is what the tool `seen` says of the connection. `grown` holds the names of tools that
 * were added; it outlives a server that is made for one request. `onGrown` is called when one was added, `onTouched`
 * announces a change of the note where the server itself cannot.
 */
export const register = (server, { era, grown, onGrown, onTouched }) => {
  const add = (name) => server.registerTool(name, { description: "Was added." }, () => text(name))
  server.registerTool(
    "echo",
    { description: "Answers with its text.", inputSchema: z.object({ text: z.string() }) },
    ({ text: value }) => text(value)
  )
  server.registerTool(
    "add",
    {
      description: "Adds two numbers.",
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() })
    },
    ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } })
  )
  server.registerTool(
    "progress",
    { description: "Reports each of its steps.", inputSchema: z.object({ steps: z.number().int() }) },
    async ({ steps }, context) => {
      const progressToken = context.mcpReq._meta?.progressToken
      const last = progressToken === undefined ? 0 : steps
      for (let progress = 1; progress <= last; progress += 1) {
        await context.mcpReq.notify({
          method: "notifications/progress",
          params: { progressToken, progress, total: steps, message: `step ${progress}` }
        })
      }
      return text(`${steps} steps`)
    }
  )
  // Written once: the SDK turns this into elicitation/create where the connection is of the older era.
  server.registerTool("ask", { description: "Asks for a name." }, (context) => {
    const accepted = acceptedContent(context.mcpReq.inputResponses, "name")
    if (accepted !== undefined) return text(`hello ${accepted.name}`)
    const answer = inputResponse(context.mcpReq.inputResponses, "name")
    if (answer.kind === "elicit") return text(answer.action)
    return inputRequired({
      inputRequests: {
        name: inputRequired.elicit({
          message: "What is your name?",
          requestedSchema: {
            type: "object",
            properties: { name: { type: "string", default: "nobody" } },
            required: ["name"]
          }
        })
      },
      requestState: "state of the question"
    })
  })
  server.registerTool("roots", { description: "Asks for the roots." }, (context) => {
    const answer = inputResponse(context.mcpReq.inputResponses, "roots")
    if (answer.kind === "roots") return text(JSON.stringify(answer.roots.map(({ uri }) => uri)))
    return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } })
  })
  server.registerTool("wait", { description: "Says that it began, and waits to be given up." }, async (context) => {
    await context.mcpReq.notify({
      method: "notifications/progress",
      params: { progressToken: context.mcpReq._meta?.progressToken, progress: 1 }
    })
    await givenUp.mark(context.mcpReq.signal)
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
    if (onTouched === undefined) await server.server.sendResourceUpdated({ uri: "peer://note" })
    else onTouched("peer://note")
    return text("touched")
  })
  server.registerTool(
    "say",
    { description: "Logs a word at each level.", inputSchema: z.object({ word: z.string() }) },
    async ({ word }, context) => {
      for (const level of ["debug", "warning"]) await context.mcpReq.log(level, `${level} ${word}`, "peer")
      return text("said")
    }
  )
  server.registerTool("grow", { description: "Adds a tool to the list." }, () => {
    const name = `grown-${grown.length + 1}`
    grown.push(name)
    add(name)
    onGrown?.()
    return text(name)
  })
  server.registerTool("cut", { description: "Closes the stream of its call before it answers." }, (context) => {
    const close = context.http?.closeSSE
    close?.()
    return text(close === undefined ? "there is no stream to close" : "answered after the cut")
  })
  server.registerTool("seen", { description: "Tells what it sees of its caller." }, (context) =>
    text(
      JSON.stringify({
        era,
        session: context.sessionId ?? null,
        headers: Object.fromEntries(context.http?.req?.headers ?? []),
        client: server.server.getClientVersion() ?? null,
        capabilities: server.server.getClientCapabilities() ?? null
      })
    )
  )
  if (era === "legacy")
    for (const method of ["resources/subscribe", "resources/unsubscribe"])
      server.server.setRequestHandler(method, () => ({}))
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
    { description: "A greeting.", argsSchema: z.object({ name: completable(z.string(), names) }) },
    ({ name }) => ({ messages: [{ role: "user", content: { type: "text", text: `Greet ${name}.` } }] })
  )
  for (const name of grown) add(name)
}

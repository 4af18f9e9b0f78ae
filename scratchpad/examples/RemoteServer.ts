/** A remote server that asks for a form in the middle of a call; the program answers it. The server runs here, too. */
import { Console, Effect, Layer } from "effect"
import * as fs from "node:fs"
import * as http from "node:http"
import * as os from "node:os"
import * as path from "node:path"
import { type Caller, ClientFeatures, headless, Pipeline, Sigil } from "sigil"

/** What this server looks at in a request. */
interface Params {
  readonly inputResponses?: { readonly who?: { readonly content?: { readonly name?: string } } }
}

/** The least that speaks MCP 2026-07-28 over HTTP: one tool, which wants a name before it greets. */
const answerTo = (method: string, params: Params): object => {
  if (method === "server/discover") return { supportedVersions: ["2026-07-28"], capabilities: { tools: {} } }
  if (method === "tools/list") return { tools: [{ name: "greet", inputSchema: { type: "object" } }] }
  const name = params.inputResponses?.who?.content?.name
  if (name !== undefined) return { content: [{ type: "text", text: `Hello, ${name}!` }] }
  const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] }
  const asked = { method: "elicitation/create", params: { message: "Who are you?", requestedSchema } }
  return { resultType: "input_required", inputRequests: { who: asked } }
}
const server = http.createServer(async (request, response) => {
  let body = ""
  for await (const part of request) body += part
  const { id, method, params } = JSON.parse(body)
  response.writeHead(200, { "content-type": "application/json" })
  response.end(JSON.stringify({ jsonrpc: "2.0", id, result: answerTo(method, params) }))
})
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
const address = server.address()
const port = typeof address === "object" && address !== null ? address.port : 0

// Servers of this machine have to be allowed; those elsewhere need https and nothing more.
const home = fs.mkdtempSync(path.join(os.tmpdir(), "sigil-example-"))
const config = path.join(home, "sigil.toml")
fs.writeFileSync(
  config,
  '[web]\nproxy_mode = "direct"\nallowed_private_hosts = ["127.0.0.1"]\nallowed_private_cidrs = ["127.0.0.0/8"]\n'
)
process.env["SIGIL_HOME"] = home

const greeter = {
  url: `http://127.0.0.1:${port}/mcp`,
  clientCapabilities: ["elicitation"],
  trust: { approvalDefault: "allow" }
} as const
const caller: Caller = {
  ...headless("example"),
  elicitor: {
    form: ({ message }) =>
      Effect.as(Console.log(`the server asks: ${message}`), { action: "accept", content: { name: "Ada" } })
  }
}
const program = Effect.gen(function* () {
  const pipeline = yield* Pipeline
  const { result } = yield* pipeline.call(caller, { server: "greeter", tool: "greet", args: {} })
  yield* Console.log(JSON.stringify(result["content"]))
})
const layer = Sigil.layer({ strict: true, config, servers: { greeter } }).pipe(
  // Only a runtime that says so tells servers that somebody answers forms.
  Layer.provide(Layer.succeed(ClientFeatures, { forms: true, urls: false }))
)

await Effect.runPromise(Effect.provide(program, layer))
server.close()
fs.rmSync(home, { recursive: true, force: true })

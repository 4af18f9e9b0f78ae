// The program under test of the client conformance suite: one scenario over sigil's public library.
// usage: node client.mjs URL      (MCP_CONFORMANCE_SCENARIO and _CONTEXT in the environment; npm run build first)
//
// The server is declared as a library user would, and nothing names an era or a revision: detection must find it.
// Exit 0 when every operation of the scenario came through, 1 when one did not, 2 for a scenario it does not know.
import { Cause, Effect, Exit, Layer } from "effect"
import fs from "node:fs"
import os from "node:os"
import path from "node:path"
import * as library from "../../dist/lib/index.js"
import { scenarios, SERVER } from "./scenarios.mjs"

const { ClientFeatures, headless, Sigil } = library

/** What a person adds to sigil.toml so that a server on this machine may be reached. */
const SETTINGS = `[web]
proxy_mode = "direct"
allowed_private_hosts = ["localhost", "127.0.0.1"]
allowed_private_cidrs = ["127.0.0.0/8", "::1/128"]
`

const fail = (code, text) => {
  process.stderr.write(`${text}\n`)
  process.exit(code)
}

const url = process.argv.at(-1)
const name = process.env.MCP_CONFORMANCE_SCENARIO
const scenario = name !== undefined && Object.hasOwn(scenarios, name) ? scenarios[name] : undefined
if (scenario === undefined) fail(2, `this driver does not know the scenario '${name}'`)
if (!URL.canParse(url)) fail(2, `the last argument is no URL: ${url}`)
if (ClientFeatures === undefined) fail(2, "the built library does not export ClientFeatures")

const home = fs.mkdtempSync(path.join(os.tmpdir(), "sigil-conformance-home-"))
process.on("exit", () => fs.rmSync(home, { recursive: true, force: true }))
fs.writeFileSync(path.join(home, "sigil.toml"), SETTINGS)
process.env.SIGIL_HOME = home
for (const variable of ["SIGIL_STATE_HOME", "SIGIL_CACHE_HOME"]) delete process.env[variable]

const caller = {
  ...headless("conformance"),
  elicitor: { form: () => Effect.succeed({ action: "accept", content: scenario.content ?? {} }) }
}
const features = {
  forms: true,
  urls: false,
  sampling: () =>
    Effect.succeed({ role: "assistant", content: { type: "text", text: "text" }, model: "none", stopReason: "endTurn" })
}
const servers = {
  [SERVER]: {
    url,
    clientCapabilities: ["roots", "elicitation"],
    trust: { approvalDefault: "allow" }
  }
}
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}")
const program = Effect.provide(
  scenario.run({ caller, context }),
  Layer.provideMerge(Sigil.layer({ strict: true, servers, cwd: home }), Layer.succeed(ClientFeatures, features))
)
const exit = await Effect.runPromiseExit(program)
if (Exit.isFailure(exit)) {
  const failure = Cause.squash(exit.cause)
  fail(
    1,
    `${failure?.code ?? "defect"}: ${failure?.text ?? failure?.message ?? String(failure)}\n${Cause.pretty(exit.cause)}`
  )
}

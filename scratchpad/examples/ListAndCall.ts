/** Lists the tools of a server and calls one. The server is a process, declared as a value; no file is read for it. */
import { Console, Effect } from "effect"
import { fileURLToPath } from "node:url"
import { headless, Pipeline, Sigil } from "sigil"

const demo = {
  command: process.execPath,
  args: [fileURLToPath(import.meta.resolve("sigil/demo-server"))],
  trust: { approvalDefault: "allow" }
} as const

const program = Effect.gen(function* () {
  const pipeline = yield* Pipeline
  for (const tool of yield* pipeline.tools("demo")) yield* Console.log(`${tool.name}: ${tool.description}`)
  const { result } = yield* pipeline.call(headless("example"), { server: "demo", tool: "add", args: { a: 2, b: 40 } })
  yield* Console.log(JSON.stringify(result["structuredContent"]))
})

// The server is gone when the program ends, however it ends.
await Effect.runPromise(Effect.provide(program, Sigil.layer({ strict: true, servers: { demo } })))

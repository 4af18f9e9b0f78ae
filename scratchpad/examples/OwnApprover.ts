/** Calls that ask somebody: an approver of one's own, here one that allows everything but one tool. */
import { Console, Effect, Schema } from "effect"
import { type Approver, type Caller, headless, Pipeline, Sigil, tool, toolServer } from "sigil"

const files = toolServer({
  tools: {
    read: tool({
      description: "Reads a file.",
      input: Schema.Struct({ path: Schema.String }),
      run: ({ path }) => Effect.succeed(`the content of ${path}`)
    }),
    remove: tool({
      description: "Removes a file.",
      input: Schema.Struct({ path: Schema.String }),
      annotations: { destructiveHint: true },
      run: ({ path }) => Effect.succeed(`${path} is gone`)
    })
  }
})

const approver: Approver = {
  ask: (question) =>
    Console.log(`may ${question.tool} be called with ${JSON.stringify(question.args)}? (${question.why})`).pipe(
      Effect.as(question.destructive ? "deny" : "once")
    )
}
const caller: Caller = { ...headless("example"), approver }

const program = Effect.gen(function* () {
  const pipeline = yield* Pipeline
  for (const name of ["read", "remove"]) {
    const call = pipeline.call(caller, { server: "files", tool: name, args: { path: "notes.txt" } })
    yield* call.pipe(
      Effect.flatMap(({ result }) => Console.log(JSON.stringify(result["content"]))),
      // One class per decision a caller can make, each with a stable code.
      Effect.catchTag("CallRefused", (refused) => Console.log(`${refused.code}: ${refused.text}`))
    )
  }
})

await Effect.runPromise(Effect.provide(program, Sigil.layerTest({ servers: { files: { inProcess: files } } })))

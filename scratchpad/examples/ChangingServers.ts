/** Servers that come and go while a program runs, and files that are read again on request. */
import { Console, Effect, Schema } from "effect"
import { headless, Pipeline, Registry, Sigil, tool, toolServer } from "sigil"

const greeter = (word: string) =>
  toolServer({
    tools: {
      greet: tool({
        description: "Greets.",
        input: Schema.Struct({}),
        run: () => Effect.succeed({ content: [{ type: "text", text: word }] })
      })
    }
  })
const allow = { trust: { approvalDefault: "allow" } } as const

const program = Effect.gen(function* () {
  const registry = yield* Registry
  const pipeline = yield* Pipeline
  const greet = Effect.map(
    pipeline.call(headless("example"), { server: "greeter", tool: "greet", args: {} }),
    ({ result }) => JSON.stringify(result["content"])
  )
  yield* registry.declare("greeter", { inProcess: greeter("hello"), ...allow })
  yield* Console.log(yield* greet)
  const { changed } = yield* registry.declare("greeter", { inProcess: greeter("good day"), ...allow })
  yield* Console.log(`changed: ${changed.join(", ")}`)
  yield* Console.log(yield* greet)
  const { unchanged } = yield* registry.reload
  yield* Console.log(`still there after a reload: ${unchanged.join(", ")}`)
  yield* registry.withdraw("greeter")
  yield* Console.log(`declared: ${registry.snapshot.servers.length}`)
})

await Effect.runPromise(Effect.provide(program, Sigil.layer({ strict: true })))

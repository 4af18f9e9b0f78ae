/** A server that lives in this program: its tools are functions, its calls take the same path as any other's. */
import { Console, Effect, Schema } from "effect"
import { headless, Pipeline, Sigil, tool, toolServer } from "sigil"

const stock = new Map([
  ["apple", 3],
  ["pear", 0]
])
const shop = toolServer({
  name: "shop",
  tools: {
    in_stock: tool({
      description: "How many of a fruit are left.",
      input: Schema.Struct({ fruit: Schema.String }),
      run: ({ fruit }) => {
        const left = stock.get(fruit)
        return left === undefined ? Effect.fail(`no fruit is named ${fruit}`) : Effect.succeed(`${left} left`)
      }
    })
  }
})

const program = Effect.gen(function* () {
  const pipeline = yield* Pipeline
  for (const fruit of ["apple", "stone"]) {
    const { isError, result } = yield* pipeline.call(headless("example"), {
      server: "shop",
      tool: "in_stock",
      args: { fruit }
    })
    yield* Console.log(isError ? "failed" : "ok", JSON.stringify(result["content"]))
  }
  const wrong = yield* Effect.flip(
    pipeline.call(headless("example"), { server: "shop", tool: "in_stock", args: { fruit: 1 } })
  )
  yield* Console.log(wrong.code)
})

await Effect.runPromise(
  Effect.provide(
    program,
    Sigil.layer({ strict: true, servers: { shop: { inProcess: shop, trust: { approvalDefault: "allow" } } } })
  )
)

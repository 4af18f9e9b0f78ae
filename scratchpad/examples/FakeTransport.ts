/** Code that uses a server, and its test: the same declaration over a transport that starts nothing. */
import { Console, Effect, Layer, Schema } from "effect"
import { headless, MemoryTransportLive, Pipeline, Sigil, tool, toolServer } from "sigil"

/** The code under test. */
const openIssues = (repository: string) =>
  Effect.gen(function* () {
    const pipeline = yield* Pipeline
    const { result } = yield* pipeline.call(headless("app"), {
      server: "github",
      tool: "count_issues",
      args: { repository }
    })
    return result["structuredContent"]
  })

/** What the application declares. */
const servers = {
  github: { command: process.execPath, args: ["github-server.js"], trust: { approvalDefault: "allow" } }
} as const

/** What the test puts in its place: admission, permission, validation and redaction stay real. */
const github = toolServer({
  tools: {
    count_issues: tool({
      description: "Counts open issues.",
      input: Schema.Struct({ repository: Schema.String }),
      run: ({ repository }) =>
        Effect.succeed({ content: [], structuredContent: { open: repository === "sigil" ? 3 : 0 } })
    })
  }
})
const test = Sigil.layerCore.pipe(
  Layer.provideMerge(Sigil.layerPartsTest({ servers })),
  Layer.provide(MemoryTransportLive({ github }))
)

const found = await Effect.runPromise(Effect.provide(openIssues("sigil"), test))
await Effect.runPromise(Console.log(`open issues: ${JSON.stringify(found)}`))

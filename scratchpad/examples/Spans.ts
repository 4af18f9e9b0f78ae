/** Spans of calls, collected by a tracer of one's own. Without one, calls make no spans and cost nothing for them. */
import { Console, Effect, Layer, Tracer } from "effect"
import { headless, Pipeline, Sigil, SpanAttribute, toolServer } from "sigil"

const ended: Array<string> = []
const tracer = Tracer.make({
  context: (run) => run(),
  span: (name, parent, context, links, startTime, kind) => {
    const attributes = new Map<string, unknown>()
    return {
      _tag: "Span",
      name,
      spanId: String(ended.length),
      traceId: "example",
      parent,
      context,
      status: { _tag: "Started", startTime },
      attributes,
      links,
      sampled: true,
      kind,
      attribute: (key, value) => {
        attributes.set(key, value)
      },
      event: () => undefined,
      addLinks: () => undefined,
      end: () => {
        // Calls are client spans; starts and their steps are internal ones.
        if (kind === "client" && name.startsWith("tools/call"))
          ended.push(`${kind} ${name}: ${attributes.get(SpanAttribute.errorType) ?? "ok"}`)
      }
    }
  }
})

const ping = {
  description: "Answers.",
  inputSchema: { type: "object" },
  run: () => Effect.succeed("pong")
}
const servers = { pinger: { inProcess: toolServer({ tools: { ping } }), trust: { approvalDefault: "allow" } } } as const

const program = Effect.gen(function* () {
  const pipeline = yield* Pipeline
  yield* pipeline.call(headless("example"), { server: "pinger", tool: "ping", args: {} })
  yield* Effect.flip(pipeline.call(headless("example"), { server: "pinger", tool: "pong", args: {} }))
  yield* Console.log(ended.join("\n"))
})

await Effect.runPromise(Effect.provide(program, Layer.merge(Sigil.layerTest({ servers }), Layer.setTracer(tracer))))

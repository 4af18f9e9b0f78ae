/** `sigil mcp complete`: what a server suggests for an argument of a prompt or template. */
import * as Effect from "effect/Effect"
import { isJsonObject, own } from "../../base/Json.ts"
import * as Sigil from "../../runtime/Sigil.ts"
import { Registry } from "../../server/Registry.ts"
import { deadlineFromSeconds } from "../../tools/Pipeline.ts"
import { type CompletionReference, Surfaces } from "../../tools/Surfaces.ts"
import { callerOf } from "../Calling.ts"
import type { Input } from "../commands/McpComplete.ts"
import { finish, orFail } from "../Finish.ts"
import type { Handler } from "../Handler.ts"
import { Output } from "../Output.ts"
import { runtimeOptions } from "../Session.ts"
import { textArguments } from "../TextArguments.ts"

const PROMPT = "prompt:"

/** Values of one answer at most (MCP `completion/complete`). */
const MAX_VALUES = 100

/** The handler. */
export const handler: Handler<Input> = ({ args, options }) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    return yield* Effect.gen(function* () {
      const output = yield* Output
      const registry = yield* Registry
      const surfaces = yield* Surfaces
      const known = yield* textArguments(["mcp", "complete"], args.known)
      const caller = yield* callerOf(`completing ${args.argument}`, options.yes)
      const ref: CompletionReference = args.reference.startsWith(PROMPT)
        ? { type: "ref/prompt", name: args.reference.slice(PROMPT.length) }
        : { type: "ref/resource", uri: args.reference }
      const { result, warnings } = yield* orFail(
        registry,
        surfaces.complete(caller, {
          server: args.server,
          ref,
          argument: args.argument,
          value: args.value,
          ...(Object.keys(known).length === 0 ? {} : { context: known }),
          ...(options.timeout === undefined ? {} : { timeoutMs: deadlineFromSeconds(options.timeout) })
        })
      )
      const completion = own(result, "completion")
      const values = isJsonObject(completion) ? own(completion, "values") : undefined
      const items = Array.isArray(values)
        ? values.filter((value) => typeof value === "string").slice(0, MAX_VALUES)
        : []
      const cut = Array.isArray(values) && values.length > MAX_VALUES
      const more = cut || (isJsonObject(completion) && own(completion, "hasMore") === true)
      yield* output.progress("")
      yield* output.document("complete", {
        schema: "sigil.mcp.complete/1",
        server: args.server,
        items,
        complete: !more,
        warnings
      })
      yield* output.text(items)
      if (items.length === 0) yield* output.note("No suggestions.")
      if (more) yield* output.note("The server has more; type more of the value.")
      return yield* finish(registry, 0)
    }).pipe(Effect.scoped, Effect.provide(Sigil.layer(run)))
  })

/** `sigil mcp read`: one resource, bounded like a result; binary content becomes a file. */
import * as Effect from "effect/Effect"
import { isJsonObject, type JsonObject, own } from "../../base/Json.ts"
import { HostEnvironment } from "../../platform/HostEnvironment.ts"
import { Secrets } from "../../policy/Secrets.ts"
import * as Sigil from "../../runtime/Sigil.ts"
import { Registry } from "../../server/Registry.ts"
import { deadlineFromSeconds } from "../../tools/Pipeline.ts"
import { limitsFrom, noLimits, show } from "../../tools/Result.ts"
import { Surfaces } from "../../tools/Surfaces.ts"
import { boundsOf } from "../Bounded.ts"
import { callerOf, keeper } from "../Calling.ts"
import type { Input } from "../commands/McpRead.ts"
import { finish, orFail } from "../Finish.ts"
import type { Handler } from "../Handler.ts"
import { declaring, interactionOf } from "../Interaction.ts"
import { Output } from "../Output.ts"
import { saveResult, saveTarget } from "../SaveTarget.ts"
import { runtimeOptions } from "../Session.ts"

/** Contents of a resource as the blocks of a result, which is what bounding knows. */
const asResult = (result: JsonObject): JsonObject => {
  const contents = own(result, "contents")
  const items = Array.isArray(contents) ? contents.filter(isJsonObject) : []
  return { content: items.map((resource) => ({ type: "resource", resource })) }
}

/** The handler. */
export const handler: Handler<Input> = ({ args, options }) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    const interaction = yield* interactionOf(options.answers)
    return yield* Effect.gen(function* () {
      const output = yield* Output
      const registry = yield* Registry
      const surfaces = yield* Surfaces
      const host = yield* HostEnvironment
      const secrets = yield* Secrets
      const target = yield* saveTarget(options.save, ["mcp", "read"])
      const caller = yield* callerOf(`reading ${args.uri}`, options.yes, interaction.answers)
      const outcome = yield* orFail(
        registry,
        surfaces.read(caller, {
          server: args.server,
          uri: args.uri,
          ...(options.timeout === undefined ? {} : { timeoutMs: deadlineFromSeconds(options.timeout) })
        })
      )
      const result = asResult(outcome.result)
      const shown = yield* show(result, {
        limits: options.full ? noLimits : limitsFrom(host.get),
        escape: !output.json,
        keep: yield* keeper
      })
      yield* output.progress("")
      if (target !== undefined) yield* saveResult(target, result)
      yield* output.document("read", {
        schema: "sigil.mcp.read/1",
        server: args.server,
        uri: secrets.redactText(args.uri),
        // The last block of a cut result has no resource; it stands among the contents as it is.
        contents: shown.content.map((block) => {
          const resource = own(block, "resource")
          return isJsonObject(resource) ? resource : block
        }),
        ...boundsOf(outcome.generation, shown, {
          kind: "resource",
          operation: "resources/read",
          durationMs: outcome.durationMs,
          warnings: outcome.warnings
        })
      })
      yield* output.block(shown.text === "" ? "(empty)" : shown.text)
      for (const warning of [...outcome.warnings, ...shown.warnings]) yield* output.note(`warning: ${warning}`)
      return yield* finish(registry, 0)
    }).pipe(Effect.scoped, Effect.provide(Sigil.layer(run)), declaring(interaction))
  })

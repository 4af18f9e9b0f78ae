/** `sigil mcp prompt`: a prompt's messages with its arguments filled in. */
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
import type { Input } from "../commands/McpPrompt.ts"
import { finish, orFail } from "../Finish.ts"
import type { Handler } from "../Handler.ts"
import { bold } from "../Markup.ts"
import { declaring, interactionOf } from "../Interaction.ts"
import { Output } from "../Output.ts"
import { runtimeOptions } from "../Session.ts"
import { textArguments } from "../TextArguments.ts"

interface Message {
  readonly role: string
  readonly content: JsonObject
}

const messagesOf = (result: JsonObject): ReadonlyArray<Message> => {
  const messages = own(result, "messages")
  if (!Array.isArray(messages)) return []
  return messages.filter(isJsonObject).flatMap((message: JsonObject) => {
    const role = own(message, "role")
    const content = own(message, "content")
    if (typeof content === "string") return [{ role: String(role), content: { type: "text", text: content } }]
    return isJsonObject(content) ? [{ role: typeof role === "string" ? role : "user", content }] : []
  })
}

/** The handler. */
export const handler: Handler<Input> = ({ args, options }) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    const interaction = yield* interactionOf(options.answers)
    return yield* Effect.gen(function* () {
      const output = yield* Output
      const secrets = yield* Secrets
      const registry = yield* Registry
      const surfaces = yield* Surfaces
      const host = yield* HostEnvironment
      const given = yield* textArguments(["mcp", "prompt"], args.words)
      const caller = yield* callerOf(`prompt ${args.name}`, options.yes, interaction.answers)
      const outcome = yield* orFail(
        registry,
        surfaces.prompt(caller, {
          server: args.server,
          name: args.name,
          args: given,
          ...(options.timeout === undefined ? {} : { timeoutMs: deadlineFromSeconds(options.timeout) })
        })
      )
      const messages = messagesOf(outcome.result)
      const shown = yield* show(
        { content: messages.map(({ content }) => content) },
        { limits: options.full ? noLimits : limitsFrom(host.get), escape: !output.json, keep: yield* keeper }
      )
      yield* output.progress("")
      const description = own(outcome.result, "description")
      // Blocks keep their order, so a message's role stands at the same place; only the notice of a cut has none.
      const bounded = shown.content.map((content, index) => ({ role: messages[index]?.role ?? "sigil", content }))
      yield* output.document("prompt", {
        schema: "sigil.mcp.prompt/1",
        server: args.server,
        prompt: secrets.redactText(args.name),
        ...(typeof description === "string" ? { description } : {}),
        messages: bounded,
        ...boundsOf(outcome.generation, shown, {
          kind: "prompt",
          operation: "prompts/get",
          durationMs: outcome.durationMs,
          warnings: outcome.warnings
        })
      })
      for (const { role, content } of bounded) {
        const one = yield* show(
          { content: [content] },
          { limits: noLimits, escape: true, keep: () => Effect.succeed(undefined) }
        )
        yield* output.text([bold(`${role}:`)])
        yield* output.block(`${one.text}\n`)
      }
      for (const warning of [...outcome.warnings, ...shown.warnings]) yield* output.note(`warning: ${warning}`)
      return yield* finish(registry, 0)
    }).pipe(Effect.scoped, Effect.provide(Sigil.layer(run)), declaring(interaction))
  })

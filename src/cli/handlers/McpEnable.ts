/** `sigil mcp enable`. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Declarations from "../../runtime/Declarations.ts"
import * as Records from "../../runtime/Records.ts"
import type { Input } from "../commands/McpEnable.ts"
import type { Handler } from "../Handler.ts"
import { runtimeOptions } from "../Session.ts"
import { toggle } from "../Toggle.ts"

/** The handler. */
export const handler: Handler<Input> = ({ args }) =>
  Effect.flatMap(runtimeOptions, (run) =>
    Effect.provide(toggle("enable", args.name), Layer.provideMerge(Records.layer, Declarations.layer(run)))
  )

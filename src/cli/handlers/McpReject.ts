/** `sigil mcp reject`. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Declarations from "../../runtime/Declarations.ts"
import * as Records from "../../runtime/Records.ts"
import type { Input } from "../commands/McpReject.ts"
import { decide } from "../Decision.ts"
import type { Handler } from "../Handler.ts"
import { runtimeOptions } from "../Session.ts"

/** The handler. */
export const handler: Handler<Input> = ({ args, options }) =>
  Effect.flatMap(runtimeOptions, (run) =>
    Effect.provide(
      decide("reject", { name: args.name, all: options.all }),
      Layer.provideMerge(Records.layer, Declarations.layer(run))
    )
  )

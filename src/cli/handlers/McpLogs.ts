/** `sigil mcp logs`: what the last generation of a server wrote to stderr. */
import * as Effect from "effect/Effect"
import { Locations } from "../../config/Locations.ts"
import * as Declarations from "../../runtime/Declarations.ts"
import * as ServerLog from "../../server/ServerLog.ts"
import type { Input } from "../commands/McpLogs.ts"
import type { Handler } from "../Handler.ts"
import { Output } from "../Output.ts"
import { rowOf, runtimeOptions, snapshot } from "../Session.ts"

/** The handler. */
export const handler: Handler<Input> = ({ args }) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    return yield* Effect.gen(function* () {
      const output = yield* Output
      const { workspace } = yield* snapshot
      const { entry } = yield* rowOf(args.name)
      const remote = entry._tag === "Valid" && entry.declaration.endpoint._tag === "remote"
      const locations = yield* Locations
      const kept = yield* Effect.flatMap(ServerLog.ServerLog, (log) => log.read(args.name)).pipe(
        Effect.provide(ServerLog.layer(locations.logs(workspace)))
      )
      const lines = kept === undefined || kept === "" ? [] : kept.replace(/\n$/, "").split("\n")
      yield* output.document("logs", { schema: "sigil.mcp.logs/1", server: args.name, lines })
      if (remote && lines.length === 0)
        yield* output.note(
          `The server '${args.name}' is remote: its stderr stays where it runs, so sigil keeps no log.`
        )
      else if (kept === undefined) yield* output.note(`The server '${args.name}' has not run in this workspace yet.`)
      else if (lines.length === 0) yield* output.note(`The last run of '${args.name}' wrote nothing to stderr.`)
      yield* output.text(lines)
      return 0
    }).pipe(Effect.provide(Declarations.layer(run)))
  })

/** `sigil mcp remove`: takes an entry out of the file that declares it. */
import * as Effect from "effect/Effect"
import { type EditTarget, removeServer, targetOf } from "../../config/Edit.ts"
import { Locations } from "../../config/Locations.ts"
import { nameOf } from "../../config/ServerDeclaration.ts"
import * as Declarations from "../../runtime/Declarations.ts"
import type { Input } from "../commands/McpRemove.ts"
import type { Handler } from "../Handler.ts"
import { Output } from "../Output.ts"
import { runtimeOptions, snapshot, unknownServer } from "../Session.ts"
import { UsageError } from "../UsageError.ts"

/** The handler. */
export const handler: Handler<Input> = ({ args, options }) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    return yield* Effect.gen(function* () {
      const output = yield* Output
      const locations = yield* Locations
      const facts = yield* snapshot
      const declared = [
        ...facts.servers.map((entry) => {
          const { name, scope, source } = entry._tag === "Valid" ? entry.declaration : entry.broken
          return { name, scope, file: source.file }
        }),
        ...facts.shadowed.map(({ name, scope, source }) => ({ name, scope, file: source.file }))
      ]
      const found = declared.find(
        ({ name, scope }) => name === args.name && (options.scope === undefined || scope === options.scope)
      )
      if (found === undefined) {
        const failure = unknownServer(args.name, facts.servers.map(nameOf))
        if (options.scope === undefined || !declared.some(({ name }) => name === args.name)) return yield* failure
        return yield* new UsageError({
          code: "SIGIL_UNKNOWN_SERVER",
          reason: "unknown_server",
          text: `Scope ${options.scope} declares no server '${args.name}'.`,
          fix: `It is declared in ${declared.find(({ name }) => name === args.name)?.file ?? "another file"}.`,
          where: { server: args.name }
        })
      }
      const { scope, file } = found
      if (scope !== "project" && scope !== "user" && scope !== "local") {
        return yield* new UsageError({
          code: "SIGIL_USAGE",
          reason: "not_editable",
          text: `The server '${args.name}' comes from ${scope === "cli" ? "--mcp-config" : `scope ${scope}`}, which sigil does not edit.`,
          fix: `Remove it where it is declared: ${file}.`,
          where: { server: args.name, file }
        })
      }
      const settings = file === locations.settingsJson
      const target: EditTarget = { ...targetOf(scope, locations, { ...facts, settings }), file }
      yield* removeServer(target, args.name)
      const uncovered = facts.shadowed.find(({ name, by }) => name === args.name && by.name === args.name)
      const notes =
        uncovered === undefined
          ? []
          : [`${uncovered.source.file} (scope ${uncovered.scope}) declares the name too; that entry counts now.`]
      yield* output.document("change", {
        schema: "sigil.mcp.change/1",
        action: "remove",
        name: args.name,
        scope,
        file,
        effective: "next_start",
        notes
      })
      yield* output.text([
        `Removed '${args.name}' from scope ${scope}: ${file}`,
        ...notes,
        "It takes effect at the next start."
      ])
      return 0
    }).pipe(Effect.provide(Declarations.layer(run)))
  })

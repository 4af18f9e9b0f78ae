/** `sigil mcp search`: tools by words, over what is admitted and eager. */
import * as Effect from "effect/Effect"
import { clip } from "../../base/Display.ts"
import { nameOf } from "../../config/ServerDeclaration.ts"
import { Secrets } from "../../policy/Secrets.ts"
import * as Sigil from "../../runtime/Sigil.ts"
import { Registry } from "../../server/Registry.ts"
import type { CatalogTool } from "../../tools/Catalog.ts"
import { shownNames } from "../../tools/Catalog.ts"
import { Pipeline } from "../../tools/Pipeline.ts"
import { search } from "../../tools/Search.ts"
import type { Input } from "../commands/McpSearch.ts"
import { finish } from "../Finish.ts"
import { usage } from "../UsageError.ts"
import type { Handler } from "../Handler.ts"
import { Output } from "../Output.ts"
import { whileWaiting } from "../Waiting.ts"
import type { ShownState } from "../ServerRow.ts"
import { type Row, rows, runtimeOptions } from "../Session.ts"

interface Part {
  readonly server: string
  readonly state: ShownState["state"]
  readonly tools: ReadonlyArray<CatalogTool>
}

const partOf = (row: Row, all: boolean) =>
  Effect.gen(function* () {
    const server = nameOf(row.entry)
    const lazy = row.entry._tag === "Valid" && row.entry.declaration.startup === "lazy"
    if (row.state.state !== "configured") return { server, state: row.state.state, tools: [] } satisfies Part
    if (lazy && !all) return { server, state: "deferred", tools: [] } satisfies Part
    const pipeline = yield* Pipeline
    return yield* Effect.match(pipeline.tools(server), {
      onFailure: (): Part => ({ server, state: "failed", tools: [] }),
      onSuccess: (tools): Part => ({ server, state: "ready", tools })
    })
  })

/** The handler. */
export const handler: Handler<Input> = ({ args, options }) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    return yield* Effect.gen(function* () {
      const output = yield* Output
      const registry = yield* Registry
      const secrets = yield* Secrets
      const query = args.query.join(" ")
      if (query.trim() === "") return yield* usage(["mcp", "search"], "QUERY is empty; give words to look for.")
      const parts = yield* whileWaiting(
        () => "starting servers…",
        Effect.forEach(yield* rows, (row) => partOf(row, options.all), { concurrency: "unbounded" })
      )
      const tools = parts.flatMap((part) => part.tools).filter(({ status }) => status === "available")
      const names = shownNames(tools, secrets.redactText)
      const named = tools.map((tool, index) => ({ ...tool, visibleName: names[index] ?? tool.visibleName }))
      const found = search(named, query).slice(0, Math.max(1, options.limit))
      const matches = found.map(({ tool, score }) => ({
        server: tool.server,
        name: secrets.redactText(tool.name),
        visible_name: secrets.redactText(tool.visibleName),
        score,
        description: secrets.redactText(tool.description)
      }))
      const skipped = parts.filter(({ state }) => state !== "ready").map(({ server, state }) => ({ server, state }))
      yield* output.document("search", { schema: "sigil.mcp.search/1", query, matches, not_searched: skipped })
      if (matches.length === 0) yield* output.text([`No tool fits '${query}' among ${tools.length}.`])
      else {
        yield* output.table(
          ["SCORE", "SERVER", "TOOL", "DESCRIPTION"],
          matches.map(({ score, server, name, description }) => [
            String(score),
            server,
            name,
            clip(description.replace(/\s+/g, " ").trim(), 300)
          ])
        )
      }
      for (const { server, state } of skipped) {
        yield* output.note(`not searched: ${server} is ${state}${state === "deferred" ? "; --all starts it" : ""}`)
      }
      return yield* finish(registry, 0)
    }).pipe(Effect.provide(Sigil.layer(run)))
  })

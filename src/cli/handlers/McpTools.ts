/** `sigil mcp tools`: what servers offer, with the token bill and the reason of every tool that cannot be called. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Failure } from "../../base/Failure.ts"
import { clip } from "../../base/Display.ts"
import { nameOf } from "../../config/ServerDeclaration.ts"
import { stringify } from "../../protocol/Codec.ts"
import { Secrets } from "../../policy/Secrets.ts"
import * as Sigil from "../../runtime/Sigil.ts"
import { Registry } from "../../server/Registry.ts"
import { type CatalogTool, tokensOf, shownNames } from "../../tools/Catalog.ts"
import { Pipeline } from "../../tools/Pipeline.ts"
import { project, type Provider } from "../../tools/SchemaProjection.ts"
import type { Input } from "../commands/McpTools.ts"
import { finish } from "../Finish.ts"
import { errorOf } from "../FailureText.ts"
import { hideInPointer } from "../../tools/HideSecrets.ts"
import type { Handler } from "../Handler.ts"
import { bold, dim, red, yellow } from "../Markup.ts"
import { Output } from "../Output.ts"
import { whileWaiting } from "../Waiting.ts"
import type { ShownState } from "../ServerRow.ts"
import { noteLostFiles, type Row, rowOf, rows, runtimeOptions } from "../Session.ts"

/** One server's part of the answer. */
interface Part {
  readonly server: string
  readonly state: ShownState["state"]
  readonly failure?: Failure
  readonly tools: ReadonlyArray<CatalogTool>
  readonly warnings?: ReadonlyArray<string>
}

const startup = (row: Row): "eager" | "lazy" => (row.entry._tag === "Valid" ? row.entry.declaration.startup : "lazy")

/** A listed server with what was odd about its list. */
const readyPart = (server: string, tools: ReadonlyArray<CatalogTool>) =>
  Effect.map(Registry, (registry): Part => {
    const generation = registry.status(server).generation
    const oddities = generation?.connection.oddities.warnings ?? []
    return { server, state: "ready", tools, warnings: [...(generation?.warnings ?? []), ...oddities] }
  })

/** Without a name: eager servers are started, lazy ones named, refused ones shown with their reason. */
const partOf = (row: Row, all: boolean) =>
  Effect.gen(function* () {
    const server = nameOf(row.entry)
    if (row.state.state !== "configured") return { server, state: row.state.state, tools: [] } satisfies Part
    if (!all && startup(row) === "lazy") return { server, state: "deferred", tools: [] } satisfies Part
    const pipeline = yield* Pipeline
    const tools = yield* Effect.either(pipeline.tools(server))
    return Either.isRight(tools)
      ? yield* readyPart(server, tools.right)
      : ({ server, state: "failed", failure: tools.left, tools: [] } satisfies Part)
  })

/** Paths and messages repeat names of the server's schema. */
const reasonOf = (reason: NonNullable<CatalogTool["reason"]>, redact: (text: string) => string) => ({
  ...reason,
  path: hideInPointer(redact, reason.path),
  message: redact(reason.message)
})

const toolDocument = (
  tool: CatalogTool,
  redactor: { redactText: (text: string) => string; redactSchema: (schema: object) => unknown }
) => ({
  name: redactor.redactText(tool.name),
  visible_name: redactor.redactText(tool.visibleName),
  ...(tool.title === undefined ? {} : { title: redactor.redactText(tool.title) }),
  description: redactor.redactText(tool.description),
  // A definition that was refused is not repeated: it may be megabytes, or too deep to print.
  input_schema: tool.status === "quarantined" ? {} : redactor.redactSchema(tool.inputSchema),
  ...(tool.outputSchema === undefined || tool.status === "quarantined"
    ? {}
    : { output_schema: redactor.redactSchema(tool.outputSchema) }),
  ...(tool.annotations === undefined || tool.status === "quarantined"
    ? {}
    : { annotations: redactor.redactSchema(tool.annotations) }),
  tokens: tokensOf(tool),
  status: tool.status,
  ...(tool.reason === undefined ? {} : { reason: reasonOf(tool.reason, redactor.redactText) })
})

const sum = (tools: ReadonlyArray<CatalogTool>): number =>
  tools.reduce((total, tool) => total + (tool.status === "available" ? tokensOf(tool) : 0), 0)

const print = (parts: ReadonlyArray<Part>) =>
  Effect.gen(function* () {
    const output = yield* Output
    const secrets = yield* Secrets
    const redactor = {
      redactText: secrets.redactText,
      redactSchema: (schema: object) => secrets.redactJson({ ...schema }, "schema")
    }
    yield* output.document("tools", {
      schema: "sigil.mcp.tools/1",
      servers: parts.map(({ server, state, failure, tools, warnings }) => ({
        server,
        state,
        ...(failure === undefined ? {} : { error: errorOf(failure) }),
        tokens: sum(tools),
        tools: tools.map((tool) => toolDocument(tool, redactor)),
        warnings: (warnings ?? []).map(redactor.redactText)
      }))
    })
    for (const { server, state, failure, tools, warnings = [] } of parts) {
      if (state !== "ready") {
        const hint = state === "deferred" ? "lazy; name it or give --all to start it" : (failure?.code ?? "")
        yield* output.text([[bold(server), "  ", yellow(state), hint === "" ? "" : ` (${hint})`], ""])
        if (failure !== undefined) yield* output.failure(failure)
        continue
      }
      const usable = tools.filter(({ status }) => status === "available")
      yield* output.text([
        [bold(server), `  ${usable.length} tool${usable.length === 1 ? "" : "s"}, about ${sum(tools)} tokens`],
        ""
      ])
      const cells = tools.map((tool) => [
        tool.status === "available"
          ? `  ${redactor.redactText(tool.name)}`
          : ["  ", dim(redactor.redactText(tool.name))],
        tool.status === "available" ? `${tokensOf(tool)}` : red(tool.status),
        tool.status === "available"
          ? clip(redactor.redactText(tool.description).replace(/\s+/g, " ").trim(), 400)
          : redactor.redactText(tool.reason?.message ?? "") +
            (tool.reason?.path ? ` (at ${clip(hideInPointer(redactor.redactText, tool.reason.path), 60)})` : "")
      ])
      yield* output.table(["  TOOL", "TOKENS", "DESCRIPTION"], cells)
      yield* output.text([""])
      for (const warning of warnings) yield* output.note(`warning: ${server}: ${redactor.redactText(warning)}`)
    }
  })

/** The list exactly as a provider would get it. */
const printFor = (provider: Provider, parts: ReadonlyArray<Part>) =>
  Effect.gen(function* () {
    const output = yield* Output
    const secrets = yield* Secrets
    const all = parts.flatMap(({ tools }) => tools)
    // One set: names that models see depend on all tools together.
    const names = shownNames(all, secrets.redactText)
    const named = all.map((tool, index) => ({ ...tool, visibleName: names[index] ?? tool.visibleName }))
    const tools = named
      .filter(({ status }) => status === "available")
      .map((tool) => secrets.redactJson(project(tool, provider), "schema"))
    const left = named
      .filter(({ status }) => status !== "available")
      .map(({ server, name, status, reason }) => ({ server, name, reason: reason?.message ?? status }))
    yield* output.document("tools_for", { schema: "sigil.mcp.tools_for/1", provider, tools, left_out: left })
    yield* output.block(stringify(tools, 2))
    for (const { server, name, reason } of left) yield* output.note(`left out: ${name} of ${server}: ${reason}`)
    for (const { server, state, failure } of parts) {
      if (failure !== undefined) yield* output.note(`not included: ${server}: ${failure.text}`)
      else if (state !== "ready") yield* output.note(`not included: ${server} is ${state}`)
    }
  })

/** The handler. */
export const handler: Handler<Input> = ({ args, options }) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    return yield* Effect.gen(function* () {
      const output = yield* Output
      const registry = yield* Registry
      if (args.server !== undefined) {
        // Strict: a named server that cannot start is the command's failure.
        yield* rowOf(args.server)
        const { server } = args
        const pipeline = yield* Pipeline
        const tools = yield* whileWaiting(() => `starting ${server}…`, pipeline.tools(server))
        const only: ReadonlyArray<Part> = [yield* readyPart(server, tools)]
        yield* options.for === undefined ? print(only) : printFor(options.for, only)
        return yield* finish(registry, 0)
      }
      const parts = yield* whileWaiting(
        () => "starting servers…",
        Effect.forEach(yield* rows, (row) => partOf(row, options.all), { concurrency: "unbounded" })
      )
      if (options.for !== undefined) {
        yield* printFor(options.for, parts)
        return yield* finish(registry, 0)
      }
      if (parts.length === 0)
        yield* output.text(["No servers are declared.", "Declare one: sigil mcp add NAME COMMAND…"])
      yield* noteLostFiles
      yield* print(parts)
      return yield* finish(registry, 0)
    }).pipe(Effect.provide(Sigil.layer(run)))
  })

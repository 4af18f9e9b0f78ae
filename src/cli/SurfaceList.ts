/** `sigil mcp resources | templates | prompts`: one list of a server. */
import * as Effect from "effect/Effect"
import { clip } from "../base/Display.ts"
import { isJsonObject, type JsonObject, own } from "../base/Json.ts"
import * as Sigil from "../runtime/Sigil.ts"
import { Registry } from "../server/Registry.ts"
import { deadlineFromSeconds } from "../tools/Pipeline.ts"
import { type ListKind, Surfaces } from "../tools/Surfaces.ts"
import { callerOf } from "./Calling.ts"
import { finish, orFail } from "./Finish.ts"
import { Output } from "./Output.ts"
import { runtimeOptions } from "./Session.ts"

const text = (item: JsonObject, key: string): string => {
  const value = own(item, key)
  return typeof value === "string" ? value.replace(/\s+/g, " ") : ""
}

const argumentsOf = (item: JsonObject): string => {
  const args = own(item, "arguments")
  if (!Array.isArray(args)) return ""
  return args
    .filter(isJsonObject)
    .map((arg: JsonObject) => (own(arg, "required") === true ? `<${text(arg, "name")}>` : `[${text(arg, "name")}]`))
    .join(" ")
}

const columns: {
  readonly [kind in ListKind]: {
    readonly header: ReadonlyArray<string>
    readonly row: (item: JsonObject) => ReadonlyArray<string>
  }
} = {
  resources: {
    header: ["URI", "NAME", "TYPE", "DESCRIPTION"],
    row: (item) => [text(item, "uri"), text(item, "name"), text(item, "mimeType"), clip(text(item, "description"), 200)]
  },
  templates: {
    header: ["TEMPLATE", "NAME", "TYPE", "DESCRIPTION"],
    row: (item) => [
      text(item, "uriTemplate"),
      text(item, "name"),
      text(item, "mimeType"),
      clip(text(item, "description"), 200)
    ]
  },
  prompts: {
    header: ["PROMPT", "ARGUMENTS", "DESCRIPTION"],
    row: (item) => [text(item, "name"), argumentsOf(item), clip(text(item, "description"), 200)]
  }
}

/** Prints the list. */
export const printList = (
  kind: ListKind,
  input: {
    readonly args: { readonly server: string }
    readonly options: { readonly timeout: number | undefined; readonly yes: boolean }
  }
) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    return yield* Effect.gen(function* () {
      const output = yield* Output
      const registry = yield* Registry
      const surfaces = yield* Surfaces
      const { server } = input.args
      const caller = yield* callerOf(`${server} ${kind}`, input.options.yes)
      const request = {
        server,
        kind,
        ...(input.options.timeout === undefined ? {} : { timeoutMs: deadlineFromSeconds(input.options.timeout) })
      }
      const { items, warnings } = yield* orFail(registry, surfaces.list(caller, request))
      yield* output.progress("")
      const list = { server, items, complete: true, warnings }
      if (kind === "resources") yield* output.document(kind, { schema: "sigil.mcp.resources/1", ...list })
      else if (kind === "templates") yield* output.document(kind, { schema: "sigil.mcp.templates/1", ...list })
      else yield* output.document(kind, { schema: "sigil.mcp.prompts/1", ...list })
      if (items.length === 0) yield* output.text([`${server} has no ${kind}.`])
      else yield* output.table(columns[kind].header, items.map(columns[kind].row))
      for (const warning of warnings) yield* output.note(`warning: ${warning}`)
      return yield* finish(registry, 0)
    }).pipe(Effect.scoped, Effect.provide(Sigil.layer(run)))
  })

/** `sigil mcp pending`: what the project wants to run, from where, with which variables, and what changed. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { variablesOf } from "../../config/Expansion.ts"
import { declarationFingerprint } from "../../config/Fingerprint.ts"
import { placeInProject } from "../../config/ProjectIdentity.ts"
import { nameOf, type ServerDeclaration } from "../../config/ServerDeclaration.ts"
import { ApprovalStore } from "../../policy/ApprovalStore.ts"
import { difference, keptOf, shownValue } from "../../policy/EntryDifference.ts"
import { type Approvals, emptyApprovals, keyOf, leftOutOfAll } from "../../policy/ProjectApproval.ts"
import * as Declarations from "../../runtime/Declarations.ts"
import type { Input } from "../commands/McpPending.ts"
import type { Handler } from "../Handler.ts"
import { bold, green, type Line, red, yellow } from "../Markup.ts"
import { Output } from "../Output.ts"
import { quoted, shownCommand, shownUrl, transportOf } from "../ServerRow.ts"
import { noteLostFiles, rowOf, rows, runtimeOptions, snapshot } from "../Session.ts"

const changeOf = (declaration: ServerDeclaration, identity: string, stored: Approvals) => {
  const key = keyOf(identity, declaration.name)
  if (!stored.approved.includes(key)) return undefined
  const before = Object.hasOwn(stored.entries, key) ? stored.entries[key] : undefined
  const place = Object.hasOwn(stored.places, key) ? stored.places[key] : undefined
  const now = placeInProject(declaration.source.file)
  const moved =
    place === undefined || place === now ? {} : { before: { "(directory)": place }, now: { "(directory)": now } }
  const change =
    before === undefined && moved.now === undefined
      ? undefined
      : difference({ ...before, ...moved.before }, { ...(before && keptOf(declaration)), ...moved.now })
  return change === undefined || change.fields.length === 0 ? undefined : change
}

const itemOf = (declaration: ServerDeclaration, identity: string, stored: Approvals) => {
  const { endpoint, source } = declaration
  const change = changeOf(declaration, identity, stored)
  return {
    name: declaration.name,
    source: { file: source.file, line: source.line },
    transport: transportOf(endpoint),
    ...(endpoint._tag === "stdio" ? { command: shownCommand(endpoint) } : { url: shownUrl(endpoint) }),
    ...(endpoint._tag === "stdio" && Object.keys(endpoint.env).length > 0
      ? {
          env: Object.fromEntries(Object.entries(endpoint.env).map(([name, value]) => [name, shownValue(name, value)]))
        }
      : {}),
    variables: [...new Set(variablesOf(declaration).map(({ name }) => name))].sort(),
    fingerprint: declarationFingerprint(declaration),
    ...(change === undefined ? {} : { change })
  }
}

type Item = ReturnType<typeof itemOf>

/** Variables that change which program or library is loaded. */
const steersCode = (name: string): boolean =>
  /^(?:PATH|NODE_OPTIONS|NODE_PATH|LD_PRELOAD|LD_LIBRARY_PATH|LD_AUDIT|DYLD_.*|PYTHON(?:PATH|STARTUP|HOME)|RUBYOPT|RUBYLIB|PERL5(?:OPT|LIB)|JAVA_TOOL_OPTIONS|BASH_ENV|ENV|GIT_(?:SSH|EXEC_PATH).*|npm_config_.*)$/i.test(
    name
  )

const coloured = (line: string): Line => (line.startsWith("-") ? red(`    ${line}`) : green(`    ${line}`))

const describe = (item: Item, declaration: ServerDeclaration, identity: string): ReadonlyArray<Line> => {
  const { endpoint, plugin } = declaration
  const values = Object.entries(endpoint._tag === "stdio" ? endpoint.env : endpoint.headers)
  const verb = endpoint._tag === "stdio" ? "sets " : "sends"
  const left = leftOutOfAll(declaration, identity)
  return [
    [bold(item.name), item.change === undefined ? "" : " (changed since it was approved)"],
    `  from       ${item.source.file}:${item.source.line}`,
    ...(plugin === undefined ? [] : [`  plugin     ${plugin.id}; a change anywhere in its manifest asks again`]),
    endpoint._tag === "stdio"
      ? `  would run  ${shownCommand(endpoint).map(quoted).join(" ")}`
      : `  would call ${shownUrl(endpoint)}`,
    ...(endpoint._tag === "stdio" && (endpoint.cwd !== undefined || plugin !== undefined)
      ? [`  in         ${quoted(endpoint.cwd ?? plugin?.root ?? "")}`]
      : []),
    `  reads      ${item.variables.length === 0 ? "no variables of yours" : item.variables.join(", ")}`,
    ...values.map(
      ([name, value], index) => `  ${index === 0 ? verb : "     "}      ${name}=${quoted(shownValue(name, value))}`
    ),
    ...(endpoint._tag === "remote"
      ? [
          ...Object.entries(endpoint.envHeaders),
          ...(endpoint.bearerTokenEnvVar === undefined ? [] : [["Authorization", endpoint.bearerTokenEnvVar] as const])
        ].map(
          ([name, variable], index) => `  ${values.length + index === 0 ? verb : "     "}      ${name} from ${variable}`
        )
      : []),
    ...values
      .filter(([name]) => endpoint._tag === "stdio" && steersCode(name))
      .map(([name]) => [yellow("  warning"), `    ${name} decides which code runs`]),
    ...(left === undefined ? [] : [`  note       'approve --all' does not cover it: ${left}`]),
    ...(item.change === undefined ? [] : ["  changed", ...item.change.diff.split("\n").map(coloured)]),
    ""
  ]
}

/** The handler. */
export const handler: Handler<Input> = ({ args }) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    return yield* Effect.gen(function* () {
      const output = yield* Output
      const { projectIdentity } = yield* snapshot
      const read = yield* Effect.flatMap(ApprovalStore, (store) => Effect.either(store.read))
      const stored = Either.getOrElse(read, () => emptyApprovals)
      if (Either.isLeft(read)) yield* output.note(`no stored decision counts: ${read.left.text} ${read.left.fix ?? ""}`)
      const wanted = args.name === undefined ? yield* rows : [yield* rowOf(args.name)]
      const declared = wanted.flatMap(({ entry, state }) =>
        entry._tag === "Valid" && (args.name !== undefined || state.state === "pending")
          ? [{ declaration: entry.declaration, state: state.state }]
          : []
      )
      const pending = declared.filter(({ state }) => state === "pending")
      // A named server is shown whatever was decided, so that a decision can be looked at again.
      const shown = args.name === undefined ? pending : declared
      const items = shown.map(({ declaration }) => itemOf(declaration, projectIdentity, stored))
      yield* output.document("pending", { schema: "sigil.mcp.pending/1", project: projectIdentity, pending: items })
      if (args.name !== undefined && wanted[0]?.entry._tag === "Broken") return yield* wanted[0].entry.broken.error
      if (items.length === 0) {
        yield* output.text([`Nothing is pending for ${projectIdentity}.`])
        yield* noteLostFiles
        return 0
      }
      for (const [index, item] of items.entries()) {
        const one = shown[index]
        if (one === undefined) continue
        yield* output.text(describe(item, one.declaration, projectIdentity))
        if (one.state !== "pending") yield* output.text([`It is not pending: its state is '${one.state}'.`])
      }
      if (pending.length > 0) {
        const names = pending.map(({ declaration }) => quoted(nameOf({ _tag: "Valid", declaration })))
        yield* output.text([
          `Project: ${projectIdentity}`,
          `Approve: sigil mcp approve ${names[0] ?? "NAME"}    Reject: sigil mcp reject ${names[0] ?? "NAME"}`
        ])
      }
      return 0
    }).pipe(Effect.provide(Declarations.layer(run)))
  })

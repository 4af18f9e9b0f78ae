/** What handlers share: the runtime options of this run, the rows of all servers, the snapshot. */
import * as Effect from "effect/Effect"
import type { Failure } from "../base/Failure.ts"
import { Configuration, type ConfigSnapshot } from "../config/Configuration.ts"
import { type Entry, nameOf } from "../config/ServerDeclaration.ts"
import { near } from "../base/Near.ts"
import type { RuntimeOptions } from "../runtime/Declarations.ts"
import { Admission } from "../server/Admission.ts"
import { placeOf } from "./FailureText.ts"
import { GlobalOptions } from "./GlobalOptions.ts"
import { Output } from "./Output.ts"
import { stateOf, type StateOfServer } from "./ServerRow.ts"
import { UsageError } from "./UsageError.ts"

/** The global options as the runtime takes them. */
export const runtimeOptions: Effect.Effect<RuntimeOptions, never, GlobalOptions> = Effect.map(
  GlobalOptions,
  (globals) => ({
    config: globals.config,
    cwd: globals.cwd,
    mcpConfig: globals.mcpConfig,
    strict: globals.strict
  })
)

/** The configuration of this run. */
export const snapshot = Effect.flatMap(Configuration, (configuration) => configuration.load)

/** One server with its state. */
export interface Row {
  readonly entry: Entry
  readonly state: StateOfServer
}

/** Every server with its state; starts nothing. */
export const rows = Effect.gen(function* () {
  const admission = yield* Admission
  const facts = { snapshot: yield* snapshot, networkApproved: false }
  return yield* Effect.forEach(facts.snapshot.servers, (entry) =>
    Effect.map(admission.explain(entry, facts), (verdicts): Row => ({ entry, state: stateOf(verdicts) }))
  )
})

/** The failure for a name that nothing declares. */
export const unknownServer = (name: string, names: ReadonlyArray<string>): Failure & UsageError =>
  new UsageError({
    code: "SIGIL_UNKNOWN_SERVER",
    reason: "unknown_server",
    text: `No declared server is named '${name}'.`,
    fix: names.length === 0 ? "Declare one with 'sigil mcp add NAME COMMAND…'." : undefined,
    where: { server: name },
    candidates: near(name, names)
  })

/** Codes of problems that cost a whole file: its servers are unknown, not absent. */
const costly = new Set(["SIGIL_CONFIG_INVALID", "SIGIL_CONFIG_UNREADABLE"])

/** Files that could not be read. */
export const lostFiles = (facts: ConfigSnapshot): ReadonlyArray<Failure> =>
  facts.problems.filter(({ code }) => costly.has(code))

/** Says which files could not be read, where a command would otherwise seem to know all servers. */
export const noteLostFiles = Effect.gen(function* () {
  const output = yield* Output
  for (const { text, where } of lostFiles(yield* snapshot)) {
    yield* output.note(`not read: ${text}${where === undefined ? "" : ` (${placeOf(where) ?? ""})`}`)
  }
})

/** Why a name that nothing declares is not there: hidden by another entry, lost with its file, or simply unknown. */
export const absent = (name: string, facts: ConfigSnapshot): Failure & UsageError => {
  const hidden = facts.shadowed.find((shadowed) => shadowed.name === name)
  if (hidden !== undefined) {
    return new UsageError({
      code: "SIGIL_UNKNOWN_SERVER",
      reason: "hidden",
      text: `The entry '${name}' of scope ${hidden.scope} is hidden by '${hidden.by.name}' of scope ${hidden.by.scope}, which has the same command or URL.`,
      fix: `Use '${hidden.by.name}', or remove one of the two.`,
      where: { file: hidden.source.file, line: hidden.source.line, server: name }
    })
  }
  const [lost] = lostFiles(facts)
  const names = facts.servers.map(nameOf)
  if (lost === undefined || near(name, names).length > 0) return unknownServer(name, names)
  return new UsageError({
    code: lost.code,
    reason: lost.reason,
    text: `No server is named '${name}' in what could be read. ${lost.text}`,
    fix: lost.fix,
    where: { ...lost.where, server: name }
  })
}

/** The row of an exact name. */
export const rowOf = (name: string) =>
  Effect.gen(function* () {
    const all = yield* rows
    const row = all.find(({ entry }) => nameOf(entry) === name)
    return row ?? (yield* absent(name, yield* snapshot))
  })

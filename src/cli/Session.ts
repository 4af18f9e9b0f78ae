/** What handlers share: the runtime options of this run, the rows of all servers, the snapshot. */
import * as Effect from "effect/Effect"
import type { Failure } from "../base/Failure.ts"
import { Configuration } from "../config/Configuration.ts"
import { type Entry, nameOf } from "../config/ServerDeclaration.ts"
import { near } from "../base/Near.ts"
import type { RuntimeOptions } from "../runtime/Declarations.ts"
import { Admission } from "../server/Admission.ts"
import { GlobalOptions } from "./GlobalOptions.ts"
import { stateOf, type StateOfServer } from "./ServerRow.ts"
import { UsageError } from "./UsageError.ts"

/** The global options as the runtime takes them. */
export const runtimeOptions: Effect.Effect<RuntimeOptions, never, GlobalOptions> = Effect.map(GlobalOptions, (globals) => ({
  config: globals.config,
  cwd: globals.cwd,
  mcpConfig: globals.mcpConfig,
  strict: globals.strict
}))

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

/** The row of an exact name. */
export const rowOf = (name: string) =>
  Effect.gen(function* () {
    const all = yield* rows
    const row = all.find(({ entry }) => nameOf(entry) === name)
    return row ?? (yield* unknownServer(name, all.map(({ entry }) => nameOf(entry))))
  })

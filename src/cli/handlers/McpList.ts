/** `sigil mcp list`: one row per declaration; `--status` connects inside one total bound. */
import * as Effect from "effect/Effect"
import { SECOND_MS } from "../../base/Units.ts"
import { nameOf } from "../../config/ServerDeclaration.ts"
import * as Declarations from "../../runtime/Declarations.ts"
import * as Sigil from "../../runtime/Sigil.ts"
import type { Generation } from "../../server/Generation.ts"
import { type ActivationError, Registry } from "../../server/Registry.ts"
import { catalogue } from "../../tools/Catalog.ts"
import type { Input } from "../commands/McpList.ts"
import { errorOf } from "../FailureText.ts"
import { finish } from "../Finish.ts"
import type { Handler } from "../Handler.ts"
import { Output } from "../Output.ts"
import { connectAll } from "../Probing.ts"
import { lineOf, serverDocument, type ShownState, transportOf } from "../ServerRow.ts"
import { type Row, rows, runtimeOptions, snapshot } from "../Session.ts"

/** What a connected server is like. */
const statusOf = (generation: Generation) => {
  const tools = catalogue([generation]).filter(({ status }) => status === "available").length
  const { oddities } = generation.connection
  return {
    tools,
    protocol_version: generation.revision.version,
    server: generation.info,
    generation: generation.id,
    ...(generation.wire.pid === undefined ? {} : { pid: generation.wire.pid }),
    ready_ms: Math.round(generation.readyMs),
    noise_lines: oddities.noiseLines,
    odd_messages: oddities.strayMessages,
    idle_messages: oddities.idleMessages
  }
}

interface Shown {
  readonly row: Row
  readonly state: ShownState
  readonly status?: ReturnType<typeof statusOf>
}

/** Connects to what could start; no row waits longer than the total bound, and a slow one never hides the others. */
const connect = (all: ReadonlyArray<Row>, totalMs: number) =>
  Effect.gen(function* () {
    const registry = yield* Registry
    const startable = all.filter(({ state }) => state.state === "configured").map(({ entry }) => nameOf(entry))
    const attempts = yield* connectAll(startable, totalMs)
    const found = new Map(startable.map((name, index) => [name, attempts[index]]))
    // Counted when all have had their time: an odd server is often odd a little later.
    return all.map((row): Shown => {
      const name = nameOf(row.entry)
      const attempt = row.state.state === "configured" ? found.get(name) : undefined
      if (attempt === undefined) return { row, state: row.state }
      switch (attempt._tag) {
        case "Queued":
          return { row, state: { state: "activating", queued: true } }
        case "Late":
          return { row, state: { state: "failed", reason: { code: "SIGIL_START_TIMEOUT", message: attempt.text } } }
        case "Failed":
          return {
            row,
            state: {
              state: attempt.failure?.code === "SIGIL_SIGN_IN_NEEDED" ? "needs_auth" : "failed",
              ...reasonOf(attempt.failure)
            }
          }
        case "Ready": {
          const now = registry.status(name)
          if (now.generation === attempt.generation) {
            return { row, state: { state: now.state }, status: statusOf(attempt.generation) }
          }
          return { row, state: { state: now.state, ...reasonOf(now.failure) } }
        }
      }
    })
  })

const reasonOf = (failure: ActivationError | undefined) =>
  failure === undefined ? {} : { reason: { code: failure.code, message: failure.text } }

const stateText = ({ state, status }: Shown): string => {
  if (status !== undefined) {
    const odd = status.noise_lines + status.odd_messages
    const manners = odd === 0 ? "" : `, ${odd} odd message${odd === 1 ? "" : "s"}`
    return `${state.state}, ${status.tools} tool${status.tools === 1 ? "" : "s"}${manners}`
  }
  if (state.queued === true) return "activating (queued)"
  // These three say it all; the others need the code to be looked up.
  const plain = state.state === "pending" || state.state === "rejected" || state.state === "disabled"
  return state.reason === undefined || plain ? state.state : `${state.state} (${state.reason.code})`
}

const print = (shown: ReadonlyArray<Shown>, all: boolean) =>
  Effect.gen(function* () {
    const output = yield* Output
    const { shadowed, problems, workspace } = yield* snapshot
    if (output.json) {
      return yield* output.document("list", {
        schema: "sigil.mcp.list/1",
        workspace,
        servers: shown.map(({ row, state, status }) => ({
          ...serverDocument(row.entry, state),
          ...(status === undefined ? {} : { status })
        })),
        shadowed: shadowed.map(({ name, scope, source, by, why }) => ({
          name,
          scope,
          source: { file: source.file, line: source.line },
          by,
          why
        })),
        problems: problems.map(errorOf)
      })
    }
    if (shown.length === 0) {
      yield* output.text(["No servers are declared.", "Declare one: sigil mcp add NAME COMMAND…"])
    } else {
      yield* output.text([`${shown.length} server${shown.length === 1 ? "" : "s"}`, ""])
      const header = ["NAME", "STATE", "SCOPE", "TRANSPORT", "FROM", "RUNS"]
      const cells = shown.map((one) => {
        const { entry } = one.row
        const { name, scope, source } = entry._tag === "Valid" ? entry.declaration : entry.broken
        const transport = entry._tag === "Valid" ? transportOf(entry.declaration.endpoint) : "?"
        return [name, stateText(one), scope, transport, `${source.file}:${source.line}`, lineOf(entry)]
      })
      yield* output.table(header, cells)
    }
    const pending = shown.filter(({ state }) => state.state === "pending").map(({ row }) => nameOf(row.entry))
    if (pending.length > 0) {
      yield* output.text([
        "",
        `Pending approval: ${pending.join(", ")}. Review with 'sigil mcp pending', then 'sigil mcp approve NAME'.`
      ])
    }
    for (const { row, state } of shown) {
      if (state.reason === undefined || ["pending", "rejected", "disabled"].includes(state.state)) continue
      const [first = "", ...more] = state.reason.message.split("\n")
      yield* output.note(`${nameOf(row.entry)}: ${first}`)
      for (const line of more) yield* output.note(`  ${line}`)
    }
    if (all) {
      for (const { name, scope, source, by, why } of shadowed) {
        yield* output.text([
          `hidden: ${name} (${scope}, ${source.file}:${source.line}) by ${by.name} (${by.scope}), same ${why === "name" ? "name" : "command or URL"}`
        ])
      }
    } else if (shadowed.length > 0) {
      yield* output.note(`${shadowed.length} declaration(s) hidden by others; 'sigil mcp list --all' shows them.`)
    }
    for (const problem of problems) yield* output.failure(problem)
  })

/** The handler. */
export const handler: Handler<Input> = ({ options }) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    const declared = Effect.map(rows, (all): ReadonlyArray<Shown> => all.map((row) => ({ row, state: row.state })))
    if (!options.status) {
      yield* Effect.provide(
        Effect.flatMap(declared, (shown) => print(shown, options.all)),
        Declarations.layer(run)
      )
      return 0
    }
    return yield* Effect.provide(
      Effect.gen(function* () {
        const shown = yield* connect(yield* rows, options.timeout * SECOND_MS)
        yield* print(shown, options.all)
        return yield* finish(yield* Registry, 0)
      }),
      Sigil.layer(run)
    )
  })

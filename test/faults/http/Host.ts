/**
 * sigil with two servers over HTTP for one row: the hostile one and a good neighbour of the other era.
 *
 * The whole as a library user composes it, over real sockets, with a home of its own. Every call carries a value of its
 * own, is counted when it is made and when it settles, and a successful answer is compared with that value.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import * as HostEnvironment from "../../../src/platform/HostEnvironment.ts"
import * as Terminal from "../../../src/platform/Terminal.ts"
import * as Library from "../../../src/runtime/Library.ts"
import * as Sigil from "../../../src/runtime/Sigil.ts"
import * as Transports from "../../../src/runtime/Transports.ts"
import { Registry } from "../../../src/server/Registry.ts"
import { headless } from "../../../src/tools/Caller.ts"
import { Pipeline } from "../../../src/tools/Pipeline.ts"
import { newTally, type Outcome, outcomeOf, type Tally, within } from "../Host.ts"
import { type Hostile, hostile } from "./Hostile.ts"
import type { Row } from "./Row.ts"

/** Pause between two calls of the neighbour, ms. */
const NEIGHBOUR_PAUSE_MS = 60
/** Longest time of a call of the neighbour, ms; over it is hung. */
const NEIGHBOUR_MS = 30_000
/** Header of the entry that goes with every message, and nowhere else. */
export const ENTRY_HEADER = "x-fault-row"

/** What a person adds to sigil.toml so that a server on this machine may be reached. */
const SETTINGS = `[web]
proxy_mode = "direct"
allowed_private_hosts = ["127.0.0.1"]
allowed_private_cidrs = ["127.0.0.0/8"]
`

/** sigil under test. */
export interface Host {
  readonly server: Hostile
  readonly neighbourServer: Hostile
  readonly tally: Tally
  readonly neighbour: Tally
  /** Value of the entry's own header. */
  readonly secret: string
  readonly start: (boundMs: number) => Promise<Outcome>
  readonly call: (boundMs: number) => Promise<Outcome>
  /** How often each call of the hostile server was sent, by its value; most first. */
  readonly sends: () => ReadonlyArray<number>
  /** Ends every server and the runtime; whether the cleanups were complete, or that it did not come to an end. */
  readonly close: (boundMs: number) => Promise<"complete" | "incomplete" | "hang">
  /** Ends both servers and removes the home. */
  readonly remove: () => Promise<void>
}

const textOf = (value: unknown): string | undefined => {
  // Looked at by one known key; whatever else it is has none.
  const { text } = (value ?? {}) as { readonly text?: unknown }
  return typeof text === "string" ? text : undefined
}

/** Opens sigil for one row. Starts nothing but the neighbour and its calls. */
export const open = async (row: Row): Promise<Host> => {
  const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-http-faults-")))
  fs.writeFileSync(path.join(base, "sigil.toml"), SETTINGS)
  const id = path.basename(base)
  const secret = `value-of-${id}`
  const server = await hostile({ ...row.options, era: row.era, script: row.script })
  const neighbourServer = await hostile({ era: row.era === "legacy" ? "modern" : "legacy" })
  const mcpServers = {
    hostile: {
      type: "http",
      url: server.url,
      headers: { [ENTRY_HEADER]: secret },
      trust: { approvalDefault: "allow" },
      timeout: row.startMs,
      toolTimeoutSecs: row.callMs / 1_000,
      ...row.declaration
    },
    neighbour: { type: "http", url: neighbourServer.url, trust: { approvalDefault: "allow" } }
  }
  const options = { mcpConfig: [JSON.stringify({ mcpServers })], strict: true, cwd: base }
  const runtime = ManagedRuntime.make(
    Library.layerCore.pipe(
      Layer.provide(Layer.provide(Transports.layer, Terminal.layerTest())),
      Layer.provideMerge(Library.layerParts(options)),
      Layer.provide(Sigil.layerEras(options)),
      Layer.provide(HostEnvironment.layerTest({ variables: { SIGIL_HOME: base }, homeDirectory: base, cwd: base }))
    )
  )
  const pipeline = await runtime.runPromise(Pipeline)
  const registry = await runtime.runPromise(Registry)
  const tally = newTally()
  const neighbour = newTally()
  let calls = 0

  const call = async (name: string, counts: Tally, boundMs: number): Promise<Outcome> => {
    const text = `${id}-${name}-${(calls += 1)}`
    counts.opened += 1
    const made = runtime
      .runPromiseExit(
        Effect.map(
          pipeline.call(headless("faults"), { server: name, tool: "echo", args: { text } }),
          ({ generation, result }) => ({ generation, token: JSON.stringify(result["content"]) })
        )
      )
      .then((exit) => {
        counts.settled += 1
        return exit
      })
    const outcome = outcomeOf(await within(boundMs, made))
    if (outcome.kind !== "ok") counts.failed += 1
    else if (outcome.token !== JSON.stringify([{ type: "text", text }])) counts.crossed += 1
    return outcome
  }

  const over = new AbortController()
  const up = await runtime.runPromiseExit(registry.activate("neighbour"))
  if (Exit.isFailure(up)) neighbour.failed += 1
  const visits = (async () => {
    while (!over.signal.aborted) {
      await call("neighbour", neighbour, NEIGHBOUR_MS)
      await pause(NEIGHBOUR_PAUSE_MS)
    }
  })()

  return {
    server,
    neighbourServer,
    tally,
    neighbour,
    secret,
    start: async (boundMs) =>
      outcomeOf(
        await within(
          boundMs,
          runtime.runPromiseExit(Effect.map(registry.activate("hostile"), (generation) => ({ generation })))
        )
      ),
    call: (boundMs) => call("hostile", tally, boundMs),
    sends: () => {
      const counts = new Map<string, number>()
      for (const { message } of server.seen) {
        const text = message.method === "tools/call" ? textOf(message.params?.["arguments"]) : undefined
        if (text !== undefined) counts.set(text, (counts.get(text) ?? 0) + 1)
      }
      return [...counts.values()].toSorted((a, b) => b - a)
    },
    close: async (boundMs) => {
      over.abort()
      await visits
      const ended = await within(
        boundMs,
        runtime.runPromise(registry.closeAll).then(async (reports) => {
          await runtime.dispose()
          return reports
        })
      )
      if (ended === "hang") return "hang"
      return ended.every(({ report }) => report.complete) ? "complete" : "incomplete"
    },
    remove: async () => {
      await server.close()
      await neighbourServer.close()
      fs.rmSync(base, { recursive: true, force: true })
    }
  }
}

/**
 * A configuration that can change while a run goes on: read again on request, and with servers that a program
 * declares and takes back.
 *
 * What was read and what was declared are kept apart, so that declaring reads no file and reading again forgets no
 * declaration. Every change is whole or does not happen; changes come one after the other.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { near } from "../base/Near.ts"
import { ConfigError } from "./ConfigError.ts"
import type { ConfigSnapshot, Configuration } from "./Configuration.ts"
import type { DecodeContext } from "./DecodeEntry.ts"
import type { Decoded } from "./DecodeToml.ts"
import { DYNAMIC, decodeDynamicIn, type DynamicEntry } from "./DynamicSource.ts"
import { merge } from "./Merge.ts"
import { type Entry, nameOf, type Scope } from "./ServerDeclaration.ts"

/** Everything that was read, ready to be merged with what a program declares. */
export interface Reading {
  /** How a program's entries are decoded. */
  readonly context: DecodeContext
  /** Servers that the program declared at the start. */
  readonly initial: Decoded
  /** Why a file of the user's own does not count; the run starts without it, a reload does not happen. */
  readonly unusable: ConfigError | undefined
  readonly assemble: (dynamic: Decoded) => ConfigSnapshot
}

const scopeOf = (entry: Entry): Scope => (entry._tag === "Valid" ? entry.declaration.scope : entry.broken.scope)

/** A reading that is a finished snapshot, for tests. */
export const readingOf = (snapshot: ConfigSnapshot): Reading => {
  const isDynamic = (entry: Entry): boolean => scopeOf(entry) === "dynamic"
  return {
    context: {
      scope: "dynamic",
      file: DYNAMIC,
      projectRemote: false,
      userFile: "sigil.toml",
      insideWorkspace: () => true,
      defaults: {}
    },
    initial: { entries: snapshot.servers.filter(isDynamic), problems: [] },
    unusable: undefined,
    assemble: ({ entries }) => {
      const merged = merge([...snapshot.servers.filter((entry) => !isDynamic(entry)), ...entries])
      return { ...snapshot, servers: merged.servers, shadowed: [...snapshot.shadowed, ...merged.shadowed] }
    }
  }
}

const unknown = (name: string, snapshot: ConfigSnapshot): ConfigError => {
  const entry = snapshot.servers.find((candidate) => nameOf(candidate) === name)
  return new ConfigError({
    code: "SIGIL_UNKNOWN_SERVER",
    reason: "unknown_server",
    text:
      entry === undefined
        ? `No server named '${name}' was declared by the program.`
        : `The server '${name}' comes from scope ${scopeOf(entry)}; only servers of scope dynamic can be taken back.`,
    where: { server: name },
    candidates: near(name, snapshot.servers.filter((one) => scopeOf(one) === "dynamic").map(nameOf))
  })
}

/** The configuration over something that reads all sources. */
export const make = (
  read: Effect.Effect<Reading, ConfigError>
): Effect.Effect<Context.Tag.Service<typeof Configuration>> =>
  Effect.gen(function* () {
    const turn = yield* Effect.makeSemaphore(1)
    let held: { readonly reading: Reading; readonly snapshot: ConfigSnapshot } | undefined
    let declared: ReadonlyMap<string, DynamicEntry> = new Map()
    let withdrawn: ReadonlySet<string> = new Set()

    const names = (reading: Reading): ReadonlySet<string> =>
      new Set([...declared.keys(), ...reading.initial.entries.map(nameOf).filter((name) => !withdrawn.has(name))])
    const assemble = (reading: Reading): ConfigSnapshot => {
      const own = decodeDynamicIn(Object.fromEntries(declared))(reading.context)
      const entries = reading.initial.entries.filter(
        (entry) => !declared.has(nameOf(entry)) && !withdrawn.has(nameOf(entry))
      )
      return reading.assemble({
        entries: [...entries, ...own.entries],
        problems: [...reading.initial.problems, ...own.problems]
      })
    }
    const hold = (reading: Reading): ConfigSnapshot => {
      const snapshot = assemble(reading)
      held = { reading, snapshot }
      return snapshot
    }
    const current = Effect.suspend(() => (held === undefined ? Effect.tap(read, hold) : Effect.succeed(held.reading)))

    return {
      load: Effect.suspend(() =>
        held === undefined
          ? turn.withPermits(1)(Effect.map(current, (reading) => held?.snapshot ?? hold(reading)))
          : Effect.succeed(held.snapshot)
      ),
      reload: turn.withPermits(1)(
        Effect.flatMap(read, (reading) =>
          reading.unusable === undefined ? Effect.sync(() => hold(reading)) : Effect.fail(reading.unusable)
        )
      ),
      declare: (name, entry) =>
        turn.withPermits(1)(
          Effect.flatMap(current, (reading) => {
            const { entries, problems } = decodeDynamicIn({ [name]: entry })(reading.context)
            const [decoded] = entries
            if (decoded?._tag === "Broken") return Effect.fail(decoded.broken.error)
            if (problems[0] !== undefined) return Effect.fail(problems[0])
            return Effect.sync(() => {
              declared = new Map([...declared, [name, entry]])
              return hold(reading)
            })
          })
        ),
      withdraw: (name) =>
        turn.withPermits(1)(
          Effect.flatMap(current, (reading) => {
            if (!names(reading).has(name)) return Effect.fail(unknown(name, held?.snapshot ?? assemble(reading)))
            return Effect.sync(() => {
              declared = new Map([...declared].filter(([other]) => other !== name))
              withdrawn = new Set([...withdrawn, name])
              return hold(reading)
            })
          })
        )
    }
  })

/**
 * Servers switched on or off by their user, per project: `mcp-state.json` (S section 8.1).
 *
 * A private file of the user; the declaring file is never touched. It overrides `enabled` of the entry for every
 * source. A name stands in at most one of the two lists.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Locations } from "../config/Locations.ts"
import { readText, update } from "../platform/AtomicFile.ts"
import type { FileError } from "../platform/FileError.ts"
import { fileDamaged } from "../platform/FileFault.ts"

/** The two lists of one project. */
export interface ToggleState {
  readonly disabledMcpServers: ReadonlyArray<string>
  readonly enabledMcpServers: ReadonlyArray<string>
}

/** What the user said about a name; `undefined` leaves it to the entry. */
export const stateOf = (toggles: ToggleState, name: string): boolean | undefined => {
  if (toggles.disabledMcpServers.includes(name)) return false
  return toggles.enabledMcpServers.includes(name) ? true : undefined
}

/** Switched servers. */
export class Toggles extends Context.Tag("sigil/policy/Toggles")<
  Toggles,
  {
    /** The lists of a project; empty when the file is missing or damaged. */
    readonly read: (identity: string) => Effect.Effect<ToggleState, FileError>
    /** Switches one server; the path of the file that was written. A damaged file is kept, and fails. */
    readonly set: (identity: string, name: string, enabled: boolean) => Effect.Effect<string, FileError>
  }
>() {}

/** Nothing switched. */
export const emptyToggles: ToggleState = { disabledMcpServers: [], enabledMcpServers: [] }

const Names = Schema.optionalWith(Schema.Array(Schema.String), { default: () => [] })
const decode = Schema.decodeUnknownOption(
  Schema.parseJson(Schema.Struct({ disabledMcpServers: Names, enabledMcpServers: Names }))
)
const parse = (text: string | undefined): ToggleState =>
  text === undefined ? emptyToggles : Option.getOrElse(decode(text), () => emptyToggles)

const switched = (toggles: ToggleState, name: string, enabled: boolean): ToggleState => {
  const without = (names: ReadonlyArray<string>): ReadonlyArray<string> => names.filter((other) => other !== name)
  const disabled = without(toggles.disabledMcpServers)
  const on = without(toggles.enabledMcpServers)
  return enabled
    ? { disabledMcpServers: disabled, enabledMcpServers: [...on, name] }
    : { disabledMcpServers: [...disabled, name], enabledMcpServers: on }
}

/** Toggles in the user's private files. */
export const layer: Layer.Layer<Toggles, never, Locations> = Layer.effect(
  Toggles,
  Effect.map(Locations, (locations) => ({
    read: (identity) => Effect.map(readText(locations.mcpState(identity)), parse),
    set: (identity, name, enabled) => {
      const file = locations.mcpState(identity)
      return update(file, (text) =>
        text !== undefined && Option.isNone(decode(text))
          ? fileDamaged(file, "the servers that are switched on and off")
          : Effect.succeed(`${JSON.stringify(switched(parse(text), name, enabled), undefined, 2)}\n`)
      ).pipe(Effect.as(file))
    }
  }))
)

/** Toggles in memory. */
export const layerMemory: Layer.Layer<Toggles> = Layer.sync(Toggles, () => {
  const projects = new Map<string, ToggleState>()
  return {
    read: (identity) => Effect.sync(() => projects.get(identity) ?? emptyToggles),
    set: (identity, name, enabled) =>
      Effect.sync(() => {
        projects.set(identity, switched(projects.get(identity) ?? emptyToggles, name, enabled))
        return "memory"
      })
  }
})

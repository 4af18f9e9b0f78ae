/**
 * What a configuration that was read again, or a declaration at run time, changes: pure.
 *
 * A server is unchanged when its entry means the same: a line that moved is no change, another directory, default or
 * manifest is one. What is unchanged keeps its generation; the rest is retired and starts anew when it is asked for.
 */
import { isDeepStrictEqual } from "node:util"
import type { ConfigError } from "../config/ConfigError.ts"
import type { ConfigSnapshot } from "../config/Configuration.ts"
import { type Entry, nameOf } from "../config/ServerDeclaration.ts"
import type { Refusal } from "./Admission.ts"
import type { ServerCleanup } from "./Supervisor.ts"

/** Names by what became of them; each in the order of the configuration. */
export interface Changes {
  readonly added: ReadonlyArray<string>
  readonly changed: ReadonlyArray<string>
  readonly removed: ReadonlyArray<string>
  readonly unchanged: ReadonlyArray<string>
}

/** What a reload, `declare` or `withdraw` came to. */
export interface ReloadReport extends Changes {
  /** Unchanged servers that ran and are not allowed to any more, e.g. because a policy was tightened; they were retired, too. */
  readonly refused: ReadonlyArray<{ readonly name: string; readonly failure: Refusal }>
  /** What is wrong in the configuration as it holds now. */
  readonly problems: ReadonlyArray<ConfigError>
  /** What could not be confirmed gone of what was retired. */
  readonly incomplete: ReadonlyArray<ServerCleanup>
}

/** What an entry means, without the place where it happens to stand in its file. */
const meaning = (entry: Entry): unknown => {
  if (entry._tag === "Valid") {
    const { source, ...rest } = entry.declaration
    return { ...rest, file: source.file }
  }
  const { error, scope, source } = entry.broken
  return { scope, file: source.file, code: error.code, reason: error.reason, text: error.text }
}

const isInProcess = (entry: Entry): boolean => entry._tag === "Valid" && entry.declaration.inProcess === true

/** Whether two entries of one name mean the same. */
export const isSame = (before: Entry, after: Entry): boolean => isDeepStrictEqual(meaning(before), meaning(after))

/**
 * The changes from one snapshot to the next. `replaced` names servers whose entry reads the same but whose code in
 * this process is another one.
 */
export const changesBetween = (
  before: Pick<ConfigSnapshot, "servers" | "workspace">,
  after: Pick<ConfigSnapshot, "servers" | "workspace">,
  replaced: ReadonlySet<string> = new Set()
): Changes => {
  const known = new Map(before.servers.map((entry) => [nameOf(entry), entry] as const))
  const left = new Set(after.servers.map(nameOf))
  const sameWorkspace = before.workspace === after.workspace
  const added: Array<string> = []
  const changed: Array<string> = []
  const unchanged: Array<string> = []
  for (const entry of after.servers) {
    const name = nameOf(entry)
    const old = known.get(name)
    if (old === undefined) added.push(name)
    else if (sameWorkspace && !(replaced.has(name) && isInProcess(entry)) && isSame(old, entry)) unchanged.push(name)
    else changed.push(name)
  }
  return { added, changed, removed: [...known.keys()].filter((name) => !left.has(name)), unchanged }
}

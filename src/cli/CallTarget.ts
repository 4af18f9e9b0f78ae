/**
 * Which tool of which server the words of `mcp call` mean: SERVER TOOL, SERVER/TOOL, or the name a model sees.
 *
 * A visible name is never taken apart to find its owner: it selects the servers that could own it, and their
 * catalogues decide. Exact server names win, also ones that hold a slash.
 */
import type { ConfigSnapshot } from "../config/Configuration.ts"
import { nameOf } from "../config/ServerDeclaration.ts"
import { mayOwn } from "../tools/Naming.ts"
import { absent } from "./Session.ts"
import { usage, type UsageError } from "./UsageError.ts"

/** What was meant. */
export interface Target {
  /** Servers to look in, in order; one unless a visible name fits several. */
  readonly servers: ReadonlyArray<string>
  readonly tool: string
  /** Words that are arguments. */
  readonly rest: ReadonlyArray<string>
}

/** Reads the words. */
export const readTarget = (
  facts: ConfigSnapshot,
  target: string,
  words: ReadonlyArray<string>
): Target | UsageError => {
  const names = facts.servers.map(nameOf)
  const [first, ...others] = words
  if (names.includes(target)) {
    return first === undefined
      ? usage(["mcp", "call"], `Which tool of '${target}'? See 'sigil mcp tools ${target}'.`)
      : { servers: [target], tool: first, rest: others }
  }
  // The longest server name that the target begins with, so that a slash in a name is no trap.
  const owner = names
    .filter((name) => target.startsWith(`${name}/`))
    .sort((left, right) => right.length - left.length)[0]
  if (owner !== undefined) return { servers: [owner], tool: target.slice(owner.length + 1), rest: words }
  if (target.startsWith("mcp__")) {
    const owners = names.filter((name) => mayOwn(name, target))
    if (owners.length > 0) return { servers: owners, tool: target, rest: words }
  }
  const slash = target.indexOf("/")
  return absent(slash > 0 ? target.slice(0, slash) : target, facts)
}

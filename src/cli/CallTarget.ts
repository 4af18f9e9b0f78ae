/**
 * Which tool of which server the words of `mcp call` mean: SERVER TOOL, SERVER/TOOL, or the name a model sees.
 *
 * A visible name is never taken apart to find its owner: it selects the servers that could own it, and their
 * catalogues decide. One that means several tools calls none of them. Exact server names win, also ones that hold a slash.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { ConfigSnapshot } from "../config/Configuration.ts"
import { nameOf } from "../config/ServerDeclaration.ts"
import { Secrets } from "../policy/Secrets.ts"
import { mayOwn } from "../tools/Naming.ts"
import { Pipeline } from "../tools/Pipeline.ts"
import { absent } from "./Session.ts"
import { usage, type UsageError } from "./UsageError.ts"

/** What was meant. */
export interface Target {
  /** Servers to look in, in order; one unless a visible name fits several. */
  readonly servers: ReadonlyArray<string>
  /** Exact name, or the name a model sees. */
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

/**
 * The one tool that is meant. A name that several servers could own is looked up in the catalogue of each: a suffix
 * tells one tool from all others, and a name that several tools share without it is refused.
 */
export const exactTool = ({
  servers,
  tool
}: Target): Effect.Effect<{ readonly server: string; readonly tool: string }, UsageError, Pipeline | Secrets> =>
  Effect.gen(function* () {
    const [first = "", ...others] = servers
    if (others.length === 0) return { server: first, tool }
    const pipeline = yield* Pipeline
    const { redactText } = yield* Secrets
    const lists = yield* Effect.forEach(servers, (server) => Effect.either(pipeline.tools(server)))
    const found = lists.flatMap((list) => {
      const named = (Either.isRight(list) ? list.right : []).filter(
        ({ possibleNames, visibleName }) => visibleName === tool || possibleNames.includes(tool)
      )
      // A server that lists a name twice has one such tool.
      return named.filter(({ name }, index) => named.findIndex((other) => other.name === name) === index)
    })
    const [one, ...more] = found
    if (one === undefined) return { server: first, tool }
    if (more.length === 0) return { server: one.server, tool: one.name }
    return yield* usage(
      ["mcp", "call"],
      `The name '${tool}' means ${found.length} tools, so none of them was called.`,
      {
        reason: "ambiguous_tool",
        candidates: found.map(({ server, name }) => redactText(`${server} ${name}`)),
        fix: `Name the server and its tool: ${found.map(({ server, name }) => redactText(`sigil mcp call ${quote(server)} ${quote(name)}`)).join(" or ")}.`
      }
    )
  })

/** A word as a shell takes it. */
const quote = (word: string): string => (/^[\w./:@-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)

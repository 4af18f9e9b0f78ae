/**
 * `mcpPolicy`: may this server exist at all (spec section 3, S section 5.1); pure.
 *
 * Denied lists go first and are absolute: an entry matches if any of its keys does. Then every allow list that is
 * present must hold the server: an entry matches if all its keys do, and an empty list holds nobody. Several files
 * may speak, the managed one first; a file can only take away from what the others leave. Matched is what would run:
 * the values with their variables filled in. No value of a server is repeated in an outcome.
 */
import type { AllowList, CompanyPolicy, PolicyEntry } from "../config/CompanyPolicy.ts"
import type { RemoteEndpoint, StdioEndpoint } from "../config/ServerDeclaration.ts"

/** What is decided about. */
export interface Subject {
  /** The exact configured name, a plugin's with its prefix. */
  readonly name: string
  /** With its variables filled in. */
  readonly endpoint: Pick<StdioEndpoint, "_tag" | "command" | "args"> | Pick<RemoteEndpoint, "_tag" | "url">
}

/** What an entry can be compared by. */
export type Key = "name" | "command" | "url"

/** An entry with the file it stands in. */
export interface Deciding<A extends PolicyEntry | AllowList> {
  readonly policy: CompanyPolicy
  readonly entry: A
}

/** The decision with the entries that led to it. */
export type Outcome =
  /** `by` has one entry for each allow list; none when there is no such list. */
  | { readonly _tag: "Allowed"; readonly by: ReadonlyArray<Deciding<PolicyEntry>> }
  | { readonly _tag: "Denied"; readonly by: Deciding<PolicyEntry>; readonly key: Key }
  /** No entry of this list matches. */
  | { readonly _tag: "NotAllowed"; readonly by: Deciding<AllowList> }

const STAR = "*"

/** Whether a pattern is the whole text, where `*` is any run of characters. Parts are found left to right, once. */
export const urlMatches = (pattern: string, url: string): boolean => {
  const [head = "", ...rest] = pattern.split(STAR)
  const tail = rest.pop()
  if (tail === undefined) return pattern === url
  if (!url.startsWith(head)) return false
  let at = head.length
  for (const part of rest) {
    const found = url.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return url.length - tail.length >= at && url.endsWith(tail)
}

const commandMatches = (command: ReadonlyArray<string>, { endpoint }: Subject): boolean => {
  if (endpoint._tag !== "stdio") return false
  const words = [endpoint.command, ...endpoint.args]
  return words.length === command.length && words.every((word, index) => word === command[index])
}

/** The keys of an entry, each with whether it matches. */
const comparisons = (entry: PolicyEntry, subject: Subject): ReadonlyArray<readonly [Key, boolean]> => {
  const { command, name, url } = entry
  const { endpoint } = subject
  return [
    ...(name === undefined ? [] : [["name", name === subject.name] as const]),
    ...(command === undefined ? [] : [["command", commandMatches(command, subject)] as const]),
    ...(url === undefined ? [] : [["url", endpoint._tag === "remote" && urlMatches(url, endpoint.url)] as const])
  ]
}

/** An entry without keys holds nobody; the decoder refuses it before. */
const allows = (entry: PolicyEntry, subject: Subject): boolean => {
  const compared = comparisons(entry, subject)
  return compared.length > 0 && compared.every(([, matches]) => matches)
}

/** Decides. */
export const decide = (company: ReadonlyArray<CompanyPolicy>, subject: Subject): Outcome => {
  for (const policy of company)
    for (const entry of policy.mcpPolicy?.denied ?? []) {
      const hit = comparisons(entry, subject).find(([, matches]) => matches)
      if (hit !== undefined) return { _tag: "Denied", by: { policy, entry }, key: hit[0] }
    }
  const by: Array<Deciding<PolicyEntry>> = []
  for (const policy of company) {
    const list = policy.mcpPolicy?.allowed
    if (list === undefined) continue
    const entry = list.entries.find((candidate) => allows(candidate, subject))
    if (entry === undefined) return { _tag: "NotAllowed", by: { policy, entry: list } }
    by.push({ policy, entry })
  }
  return { _tag: "Allowed", by }
}

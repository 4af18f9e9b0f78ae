/**
 * One entry per name, out of all sources (spec section 2).
 *
 * Scopes are taken in their order of precedence. A name belongs to the highest scope that declares it, even when
 * that entry is broken or disabled: a typo of the user never activates a namesake of a repository. A launch
 * (command line or URL) belongs to the first scope whose kept entry has it; two names for one launch in one scope are
 * two servers. An entry that is not kept claims no launch. Nothing depends on the order inside a scope.
 */
import { ConfigError } from "./ConfigError.ts"
import { type Entry, nameOf, type Scope, scopes, type ServerDeclaration, type Source } from "./ServerDeclaration.ts"

/** A declaration that lost its name or its launch to a higher one. */
export interface Shadowed {
  readonly name: string
  readonly scope: Scope
  readonly source: Source
  readonly by: { readonly name: string; readonly scope: Scope }
  readonly why: "name" | "signature"
}

/** The servers that count, and what they hide. */
export interface Merged {
  readonly servers: ReadonlyArray<Entry>
  readonly shadowed: ReadonlyArray<Shadowed>
}

const scopeOf = (entry: Entry): Scope => (entry._tag === "Valid" ? entry.declaration.scope : entry.broken.scope)

/** Where an entry stands. */
export const sourceOf = (entry: Entry): Source =>
  entry._tag === "Valid" ? entry.declaration.source : entry.broken.source

/** What an endpoint launches, as one text: `[command, ...args]`, or the URL whatever the transport. */
export const signatureOfEndpoint = (endpoint: ServerDeclaration["endpoint"]): string =>
  endpoint._tag === "stdio" ? `stdio:${JSON.stringify([endpoint.command, ...endpoint.args])}` : `url:${endpoint.url}`

const bySource = (left: Entry, right: Entry): number => {
  const [a, b] = [sourceOf(left), sourceOf(right)]
  return a.file < b.file ? -1 : a.file > b.file ? 1 : a.line - b.line || a.column - b.column
}

/** The entry that stands for a group of one name: the entry itself, or a broken one when there are several. */
const representative = (group: ReadonlyArray<Entry>): Entry | undefined => {
  const sorted = group.toSorted(bySource)
  const [first, second] = sorted
  if (first === undefined || second === undefined) return first
  const name = nameOf(first)
  const places = sorted.map((entry) => `${sourceOf(entry).file}:${sourceOf(entry).line}`)
  const error = new ConfigError({
    code: "SIGIL_DUPLICATE_NAME",
    reason: "duplicate_mcp_server_name",
    text: `The server '${name}' is declared ${sorted.length} times in scope ${scopeOf(first)} (${places.join(", ")}), so none of them is used.`,
    where: { ...sourceOf(second), server: name }
  })
  return { _tag: "Broken", broken: { name, scope: scopeOf(first), source: sourceOf(first), error } }
}

/**
 * Merges the entries of all sources. `signatureOf` gives the launch on expanded values; `undefined` when it cannot be
 * known, for instance because a variable is missing. By default the templates are compared.
 */
export const merge = (
  entries: ReadonlyArray<Entry>,
  signatureOf: (declaration: ServerDeclaration) => string | undefined = ({ endpoint }) => signatureOfEndpoint(endpoint)
): Merged => {
  const names = new Map<string, Scope>()
  const launches = new Map<string, { readonly name: string; readonly scope: Scope }>()
  const servers: Array<Entry> = []
  const shadowed: Array<Shadowed> = []
  for (const scope of scopes) {
    const groups = new Map<string, Array<Entry>>()
    for (const entry of entries) {
      if (scopeOf(entry) !== scope) continue
      const group = groups.get(nameOf(entry))
      if (group === undefined) groups.set(nameOf(entry), [entry])
      else group.push(entry)
    }
    const claims: Array<readonly [signature: string, name: string]> = []
    for (const [name, group] of groups) {
      const owner = names.get(name)
      if (owner !== undefined) {
        for (const entry of group)
          shadowed.push({ name, scope, source: sourceOf(entry), by: { name, scope: owner }, why: "name" })
        continue
      }
      names.set(name, scope)
      const entry = representative(group)
      if (entry === undefined) continue
      const signature = entry._tag === "Valid" ? signatureOf(entry.declaration) : undefined
      const holder = signature === undefined ? undefined : launches.get(signature)
      if (holder !== undefined) {
        shadowed.push({ name, scope, source: sourceOf(entry), by: holder, why: "signature" })
        continue
      }
      servers.push(entry)
      if (signature !== undefined) claims.push([signature, name])
    }
    // Claims of this scope count for lower scopes only; the first name in order holds a shared one.
    for (const [signature, name] of claims.toSorted(([, a], [, b]) => (a < b ? -1 : 1)))
      if (!launches.has(signature)) launches.set(signature, { name, scope })
  }
  return { servers, shadowed }
}

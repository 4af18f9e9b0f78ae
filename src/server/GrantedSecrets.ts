/**
 * Values of the environment that the user's own entries hand to servers, as grants or by `${NAME}`, and that are
 * secrets there. Used before something is written where others can read it; nothing is started for it.
 */
import type { Entry } from "../config/ServerDeclaration.ts"
import { variablesOf } from "../config/Expansion.ts"
import { needsApproval } from "../policy/ProjectApproval.ts"
import * as SecretMatcher from "../policy/SecretMatcher.ts"
import { isPublic } from "./ChildEnvironment.ts"

/** A value that says nothing: every other option has it, too. */
const isCommon = (value: string): boolean => /^(?:|true|false|yes|no|on|off|none|null|\d{1,3})$/i.test(value)

/** Finds out whose value a text holds, also encoded: the name of the variable, or `undefined`. */
export const grantedSecrets = (
  entries: ReadonlyArray<Entry>,
  lookup: (name: string) => string | undefined
): ((text: string) => string | undefined) => {
  const known = new Map<string, SecretMatcher.SecretMatcher>()
  for (const entry of entries) {
    if (entry._tag === "Broken" || needsApproval(entry.declaration)) continue
    const { endpoint } = entry.declaration
    const [grants, open] = endpoint._tag === "stdio" ? [endpoint.inheritEnv, endpoint.publicEnv] : [[], []]
    for (const name of [...grants, ...variablesOf(entry.declaration).map((use) => use.name)]) {
      const value = lookup(name)
      if (value === undefined || known.has(name) || isCommon(value) || isPublic(name, value, open)) continue
      const matcher = SecretMatcher.make()
      matcher.add(value)
      known.set(name, matcher)
    }
  }
  return (text) => [...known].find(([, matcher]) => matcher.finds(text))?.[0]
}

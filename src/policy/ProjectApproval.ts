/**
 * Whether a project's server may run: a pure decision over stored answers (spec section 4, S section 2).
 *
 * Fail closed: what was never decided, and what changed since, is pending. A rejection is by name and survives
 * edits; an approval holds for one fingerprint; "approve all" holds for the project whatever the fingerprints, but
 * never for entries that hand credentials or data to code nobody has seen.
 */
import type { JsonObject } from "../base/Json.ts"
import { variablesOf } from "../config/Expansion.ts"
import { isOfProject } from "../config/ProjectIdentity.ts"
import type { PluginOrigin, Scope, ServerDeclaration } from "../config/ServerDeclaration.ts"

/** Stored answers, as the file has them (S section 2.3). Keys are `<identity>:<server>`. */
export interface Approvals {
  readonly approved: ReadonlyArray<string>
  readonly rejected: ReadonlyArray<string>
  readonly approveAllProjects: ReadonlyArray<string>
  readonly fingerprints: { readonly [key: string]: string }
  /** Where the approved entry's file stands in its checkout; a copy elsewhere is another entry. */
  readonly places: { readonly [key: string]: string }
  /** The approved entry with literal values hidden, to show what changed later. */
  readonly entries: { readonly [key: string]: JsonObject }
}

/** Nothing decided: everything is pending. */
export const emptyApprovals: Approvals = {
  approved: [],
  rejected: [],
  approveAllProjects: [],
  fingerprints: {},
  places: {},
  entries: {}
}

/** Key of one server of one project. */
export const keyOf = (identity: string, name: string): string => `${identity}:${name}`

/** Whether somebody else wrote an entry. A plugin of the user's own home was put there by its user. */
export const needsApproval = (entry: { readonly scope: Scope; readonly plugin?: PluginOrigin }): boolean =>
  entry.scope === "project" || entry.scope === "imported" || (entry.scope === "plugin" && entry.plugin?.from !== "user")

/**
 * Why an entry is left out of "approve all" of a project; `undefined` when it is covered (spec section 4). A file above
 * the project is read too, and whoever can write there was never trusted. What was imported is kept per project.
 */
export const leftOutOfAll = (declaration: ServerDeclaration, identity: string): string | undefined => {
  if (declaration.scope !== "imported" && !isOfProject(declaration.source.file, identity))
    return `its file is outside of the project ${identity}`
  if (declaration.endpoint._tag === "remote") return "it is remote"
  const variables = [...new Set(variablesOf(declaration).map(({ name }) => name))]
  if (variables.length > 0) return `it reads the environment (${variables.join(", ")})`
  return declaration.looserTrust === true ? "it asks for looser trust" : undefined
}

/** The question. */
export interface Subject {
  readonly identity: string
  readonly name: string
  readonly fingerprint: string
  /** `placeInProject` of the declaring file. */
  readonly place: string
  /** Whether "approve all" may cover it. */
  readonly coverable: boolean
}

/** The decision. */
export type Decision =
  | { readonly _tag: "Approved"; readonly why: string }
  | { readonly _tag: "Rejected" }
  | { readonly _tag: "Pending"; readonly changed: boolean }

/** rejected, then approved with this fingerprint, then the whole project, then pending (S section 2.5). */
export const decide = (stored: Approvals, subject: Subject): Decision => {
  const key = keyOf(subject.identity, subject.name)
  if (stored.rejected.includes(key)) return { _tag: "Rejected" }
  const approved = stored.approved.includes(key)
  const known = Object.hasOwn(stored.fingerprints, key) ? stored.fingerprints[key] : undefined
  const place = Object.hasOwn(stored.places, key) ? stored.places[key] : undefined
  if (approved && known === subject.fingerprint && place === subject.place)
    return { _tag: "Approved", why: "approved as it is written now" }
  if (subject.coverable && stored.approveAllProjects.includes(subject.identity)) {
    return { _tag: "Approved", why: "covered by 'approve --all' of this project" }
  }
  return { _tag: "Pending", changed: approved }
}

/** The answers after one decision; approving and rejecting exclude each other. */
export const record = (
  stored: Approvals,
  subject: Pick<Subject, "identity" | "name" | "fingerprint" | "place">,
  decision: "approved" | "rejected",
  entry: JsonObject | undefined
): Approvals => {
  const key = keyOf(subject.identity, subject.name)
  const without = (keys: ReadonlyArray<string>): ReadonlyArray<string> => keys.filter((other) => other !== key)
  const drop = <A>(values: { readonly [key: string]: A }): ReadonlyArray<readonly [string, A]> =>
    Object.entries(values).filter(([other]) => other !== key)
  const approving = decision === "approved"
  return {
    approved: approving ? [...without(stored.approved), key] : without(stored.approved),
    rejected: approving ? without(stored.rejected) : [...without(stored.rejected), key],
    approveAllProjects: stored.approveAllProjects,
    fingerprints: Object.fromEntries([
      ...drop(stored.fingerprints),
      ...(approving ? [[key, subject.fingerprint] as const] : [])
    ]),
    places: Object.fromEntries([...drop(stored.places), ...(approving ? [[key, subject.place] as const] : [])]),
    entries: Object.fromEntries([
      ...drop(stored.entries),
      ...(approving && entry !== undefined ? [[key, entry] as const] : [])
    ])
  }
}

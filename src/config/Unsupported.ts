/**
 * Fields that are understood but whose feature this build does not have yet.
 *
 * The one place that says so: a server that uses one of them is refused with the field's name instead of running
 * without it. A feature that arrives deletes its line here.
 */
import { own } from "../base/Json.ts"
import type { ServerDeclaration, Unsupported } from "./ServerDeclaration.ts"

type Decoded = Omit<ServerDeclaration, "unsupported">

const written = (declaration: Decoded, ...keys: ReadonlyArray<string>): boolean =>
  keys.some((key) => own(declaration.raw, key) !== undefined)

/** Field as shown, and when a declaration uses it. */
const missingFeatures: ReadonlyArray<readonly [field: string, used: (declaration: Decoded) => boolean]> = [
  ["oauth", (declaration) => written(declaration, "oauth")],
  ["auth", (declaration) => written(declaration, "auth")],
  ["share", ({ share }) => share === "per_client"],
  ["env_mode", ({ envMode }) => envMode === "inherit_all"]
]

/** What this declaration asks for that this build lacks. */
export const unsupportedOf = (declaration: Decoded): ReadonlyArray<Unsupported> =>
  missingFeatures.flatMap(([field, used]) => (used(declaration) ? [{ field, kind: "feature" as const }] : []))

/**
 * The company policy as a thing: whether this machine has one, whose file it is, and what each file forbids.
 *
 * Which servers a policy denies is a finding of each server (`ServerCheck.ts`).
 */
import type { CompanyPolicy } from "../config/CompanyPolicy.ts"
import type { ConfigSnapshot } from "../config/Configuration.ts"
import type { ManagedFacts } from "../config/ManagedFile.ts"
import * as CompanyLimit from "../policy/CompanyLimit.ts"
import { type Finding, fine } from "./Check.ts"

/** Owner and mode as far as the system tells them. */
const describe = ({ mode, ownerId }: ManagedFacts): string => {
  const owner = ownerId === undefined ? [] : [`owner ${ownerId === 0 ? "root" : `user ${ownerId}`}`]
  const bits = mode === undefined ? [] : [`mode 0${mode.toString(8).padStart(3, "0")}`]
  return ["present", ...owner, ...bits].join(", ")
}

const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`

const rulesOf = ({ file, mcpPolicy }: CompanyPolicy): ReadonlyArray<Finding> => {
  if (mcpPolicy === undefined) return []
  const { allowed, at, denied, field } = mcpPolicy
  const list =
    allowed === undefined ? "no allow list" : `an allow list of ${counted(allowed.entries.length, "entry", "entries")}`
  return [
    {
      ...fine("policy:mcp", file, `${field}: ${counted(denied.length, "denied entry", "denied entries")}, ${list}`),
      where: { file, line: at.line, column: at.column, field }
    }
  ]
}

/** Findings about the managed file, the limit and the lists. */
export const checkPolicy = (snapshot: ConfigSnapshot): ReadonlyArray<Finding> => {
  const { managed, settings, unsupportedSafety } = snapshot
  const faults =
    managed === undefined
      ? []
      : unsupportedSafety
          .filter(({ source }) => source === managed.file)
          .map(({ at, field, fix, why }): Finding => ({
            code: "policy:managed",
            subject: managed.file,
            status: "error",
            message: `${managed.present ? `${describe(managed)}; ` : ""}'${field}': ${why ?? "this version cannot enforce it"}; no server is started.`,
            fix: fix ?? "Ask whoever administers this machine, or use a version of sigil that enforces it.",
            where: { file: managed.file, ...at, field }
          }))
  const file =
    managed === undefined || faults.length > 0
      ? faults
      : [fine("policy:managed", managed.file, managed.present ? describe(managed) : "absent: no policy of the machine")]
  const off = CompanyLimit.offBy(settings.company)
  const limit: ReadonlyArray<Finding> =
    off === undefined
      ? []
      : [
          {
            code: "policy:limit",
            subject: off.limit.field,
            status: "warn",
            message: `MCP is off, no server is started: ${CompanyLimit.describe(off)}`,
            fix: off.policy.managed
              ? `Ask whoever administers this machine to change ${off.policy.file}.`
              : `Change it in ${off.policy.file}, if you want servers.`,
            where: {
              file: off.policy.file,
              line: off.limit.at.line,
              column: off.limit.at.column,
              field: off.limit.field
            }
          }
        ]
  return [...file, ...limit, ...settings.company.flatMap(rulesOf)]
}

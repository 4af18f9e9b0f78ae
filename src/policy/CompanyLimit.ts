/**
 * `policyLimits.mcp`: whether MCP is off altogether (spec section 3, S section 5.3); pure.
 *
 * Off in one file is off, whatever another one says. What an IDE declares at run time is its own integration and is
 * spared; `mcpPolicy` still counts for it.
 */
import { clip, escapeLine } from "../base/Display.ts"
import type { CompanyPolicy, McpLimit } from "../config/CompanyPolicy.ts"
import type { Entry, ServerDeclaration } from "../config/ServerDeclaration.ts"

/** Longest reason that is repeated, characters. */
const MAX_REASON = 300

/** The limit that switches MCP off, with the file it stands in. */
export interface Off {
  readonly policy: CompanyPolicy
  readonly limit: McpLimit
}

/** The first limit that switches MCP off. */
export const offBy = (company: ReadonlyArray<CompanyPolicy>): Off | undefined => {
  for (const policy of company) if (policy.mcpLimit?.allowed === false) return { policy, limit: policy.mcpLimit }
  return undefined
}

/** Whether a limit does not reach this server. */
export const isSpared = ({ origin, scope }: Pick<ServerDeclaration, "origin" | "scope">): boolean =>
  scope === "dynamic" && origin === "ide"

/** The limit that this server is off by. */
export const decide = (
  company: ReadonlyArray<CompanyPolicy>,
  declaration: Pick<ServerDeclaration, "origin" | "scope">
): Off | undefined => (isSpared(declaration) ? undefined : offBy(company))

/** What switches MCP off, and the reason that was given, for people. */
export const describe = ({ limit, policy }: Off): string =>
  `${limit.field} in ${policy.file}${limit.reason === undefined ? "" : `: ${escapeLine(clip(limit.reason, MAX_REASON))}`}`

/** The one line for the log of a run: how many of these servers are off, and by what. */
export const announcement = (
  company: ReadonlyArray<CompanyPolicy>,
  servers: ReadonlyArray<Entry>
): string | undefined => {
  const off = offBy(company)
  if (off === undefined) return undefined
  const ignored = servers.filter((entry) => entry._tag === "Broken" || !isSpared(entry.declaration)).length
  return `MCP is off, ${ignored} server${ignored === 1 ? " is" : "s are"} ignored: ${describe(off)}`
}

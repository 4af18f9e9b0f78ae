/**
 * Rules that can match nothing that is declared: a typo in a deny protects nobody, and nothing else would say so.
 *
 * Judged by server names only, since tools are known only while a server runs; a rule is named when no reading of it
 * reaches any declared server. Rules about other tools than a server's are left alone.
 */
import type { Where } from "../base/Failure.ts"
import type { ConfigSnapshot } from "../config/Configuration.ts"
import { asVisible } from "../config/PermissionLists.ts"
import { decisions } from "../config/PermissionSettings.ts"
import { nameOf } from "../config/ServerDeclaration.ts"
import { near } from "../base/Near.ts"
import { glob } from "../policy/permission/Glob.ts"
import { reachesServer } from "../policy/permission/ToolPattern.ts"
import { sanitise } from "../tools/Naming.ts"
import type { Finding } from "./Check.ts"

const TRUST = "mcp_trust_class:"
const SERVER = "mcp_server:"
const trustClasses = ["official", "self_hosted", "third_party"]

/** One pattern of the user's. */
interface Written {
  readonly pattern: string
  readonly about: "tool" | "subject"
  /** It allows in sigil.toml, where only the exact spelling counts. */
  readonly exact: boolean
  readonly where: Where | undefined
}

const writtenIn = ({ settings: { lists, permission } }: ConfigSnapshot): ReadonlyArray<Written> => [
  ...permission.rules.flatMap(({ mode, subjectGlob, toolName }, index): ReadonlyArray<Written> => {
    const where = permission.places[`rules[${index}]`]
    const exact = mode === "allow"
    return [
      ...(toolName === undefined ? [] : [{ pattern: toolName, about: "tool" as const, exact, where }]),
      ...(subjectGlob === undefined ? [] : [{ pattern: subjectGlob, about: "subject" as const, exact, where }])
    ]
  }),
  ...Object.entries(permission.tools).map(([pattern, mode]): Written => ({
    pattern,
    about: "tool",
    exact: mode === "allow",
    where: permission.places[`tools.${pattern}`]
  })),
  ...[...decisions, "allowedTools" as const].flatMap((list) =>
    lists[list].map(({ tool, where }): Written => ({ pattern: tool, about: "tool", exact: false, where }))
  )
]

const reaches = ({ about, exact, pattern }: Written, servers: ReadonlyArray<string>): boolean => {
  if (about === "subject" && pattern.startsWith(TRUST)) return trustClasses.some((one) => glob(pattern, TRUST + one))
  if (about === "subject" && pattern.startsWith(SERVER)) return servers.some((one) => glob(pattern, SERVER + one))
  if (!pattern.toLowerCase().startsWith("mcp__")) return true
  if (exact && asVisible(pattern) !== pattern) return false
  return servers.some((server) => reachesServer(asVisible(pattern), sanitise(server), exact))
}

/** Findings about rules. */
export const checkPermission = (snapshot: ConfigSnapshot): ReadonlyArray<Finding> => {
  const servers = snapshot.servers.map(nameOf)
  return writtenIn(snapshot)
    .filter((written) => !reaches(written, servers))
    .map(({ pattern, where }): Finding => {
      const [, part = ""] = /^mcp__(.*?)(?:__|$)/i.exec(pattern) ?? []
      const parts = servers.map(sanitise)
      const meant = sanitise(part).toLowerCase()
      const likely = parts.find((one) => one.toLowerCase() === meant) ?? near(part, parts)[0]
      return {
        code: "permission:rule",
        subject: pattern,
        status: "warn",
        message: "This rule matches no server that is declared here.",
        fix:
          likely === undefined
            ? "Correct the name, or remove the rule if it is not for another project."
            : `Correct the name: did you mean 'mcp__${likely}'?`,
        ...(where === undefined ? {} : { where })
      }
    })
}

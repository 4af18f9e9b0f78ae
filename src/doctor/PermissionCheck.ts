/**
 * Rules that can match nothing that is declared: a typo in a deny protects nobody, and nothing else would say so.
 *
 * Judged by server names only, since tools are known only while a server runs; a rule is named when no reading of it
 * reaches any declared server. Rules about other tools than a server's are left alone.
 */
import type { Where } from "../base/Failure.ts"
import type { ConfigSnapshot } from "../config/Configuration.ts"
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
  readonly where: Where | undefined
}

const writtenIn = ({ settings: { lists, permission } }: ConfigSnapshot): ReadonlyArray<Written> => [
  ...permission.rules.flatMap(({ subjectGlob, toolName }, index): ReadonlyArray<Written> => {
    const where = permission.places[`rules[${index}]`]
    return [
      ...(toolName === undefined ? [] : [{ pattern: toolName, about: "tool" as const, where }]),
      ...(subjectGlob === undefined ? [] : [{ pattern: subjectGlob, about: "subject" as const, where }])
    ]
  }),
  ...Object.keys(permission.tools).map((pattern): Written => ({
    pattern,
    about: "tool",
    where: permission.places[`tools.${pattern}`]
  })),
  ...[...decisions, "allowedTools" as const].flatMap((list) =>
    lists[list].map(({ tool, where }): Written => ({ pattern: tool, about: "tool", where }))
  )
]

const reaches = ({ about, pattern }: Written, servers: ReadonlyArray<string>): boolean => {
  if (about === "subject" && pattern.startsWith(TRUST)) return trustClasses.some((one) => glob(pattern, TRUST + one))
  if (about === "subject" && pattern.startsWith(SERVER)) return servers.some((one) => glob(pattern, SERVER + one))
  if (!pattern.toLowerCase().startsWith("mcp__")) return true
  return servers.some((server) => reachesServer(pattern, sanitise(server)))
}

/** Findings about rules. */
export const checkPermission = (snapshot: ConfigSnapshot): ReadonlyArray<Finding> => {
  const servers = snapshot.servers.map(nameOf)
  return writtenIn(snapshot)
    .filter((written) => !reaches(written, servers))
    .map(({ pattern, where }): Finding => {
      const [, part = ""] = /^mcp__(.*?)(?:__|$)/i.exec(pattern) ?? []
      const [likely] = near(part, servers.map(sanitise))
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

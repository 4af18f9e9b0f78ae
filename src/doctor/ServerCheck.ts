/** Whether each declared server could start: command, grants, approval, network. Starts nothing. */
import { type Entry, grantsOf } from "../config/ServerDeclaration.ts"
import { fixOf } from "../base/Failure.ts"
import type { Verdict } from "../server/Admission.ts"
import type { Finding } from "./Check.ts"

/** Findings about one server, from the verdicts of admission. */
export const checkServer = (entry: Entry, verdicts: ReadonlyArray<Verdict>): ReadonlyArray<Finding> => {
  // A broken entry is the configuration check's finding.
  if (entry._tag === "Broken") return []
  const { declaration } = entry
  const subject = declaration.name
  const { endpoint, trust } = declaration
  const refused = verdicts.find(({ verdict }) => verdict === "refuse")
  const container = containerFinding(entry)
  if (refused?.refusal === undefined) {
    const granted = endpoint._tag === "stdio" ? endpoint.inheritEnv : grantsOf(endpoint)
    const grants = granted.length > 0 ? granted.join(", ") : "none"
    const message = [
      ...(endpoint._tag === "stdio" ? [] : [`transport=${endpoint.transport}`]),
      declaration.startup,
      `required=${declaration.required}`,
      `trust=${trust.trustClass}`,
      `approval=${trust.approvalDefault}`,
      `secrets=${trust.allowSecrets ? "allowed" : "blocked"}`,
      `grants=${grants}`
    ].join(", ")
    return [{ code: "mcp:server", subject, status: "ok", message }, ...container]
  }
  const { refusal, gate } = refused
  const optional = !declaration.required || declaration.startup === "lazy"
  // A decision that somebody took or has yet to take is no breakage; a missing command matters as much as the server.
  const decided = gate === "approval" || gate === "enabled" || refusal.code === "SIGIL_DENIED"
  const status = decided || (gate === "executable" && optional) ? "warn" : "error"
  return [
    {
      code: `mcp:${gate}`,
      subject,
      status,
      message: refusal.text,
      fix: fixOf(refusal),
      ...(refusal.where === undefined ? {} : { where: refusal.where })
    },
    ...container
  ]
}

/** A container that outlives its client is the classic leak (spec section 15). */
const containerFinding = (entry: Entry): ReadonlyArray<Finding> => {
  if (entry._tag === "Broken" || entry.declaration.endpoint._tag !== "stdio") return []
  const { command, args } = entry.declaration.endpoint
  if (!/(?:^|\/)(?:docker|podman)$/.test(command) || args[0] !== "run") return []
  const missing = ["--rm", "--init"].filter((flag) => !args.includes(flag))
  if (missing.length === 0) return []
  return [
    {
      code: "mcp:container",
      subject: entry.declaration.name,
      status: "warn",
      message: `'${command} run' is used without ${missing.join(" and ")}: the container may outlive its server.`,
      fix: `Add ${missing.join(" ")} after 'run' in args.`,
      where: { ...entry.declaration.source, server: entry.declaration.name, field: "args" }
    }
  ]
}

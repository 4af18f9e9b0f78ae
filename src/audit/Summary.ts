/** One line about a record, for lists: the facts a reader looks for first, whatever the kind. */
import type { AuditRecord } from "./AuditRecord.ts"

/** Keys that say most, in the order in which they are shown; the others follow in their own order. */
const first = [
  "action",
  "status",
  "phase",
  "gate",
  "what",
  "code",
  "tool_name",
  "operation",
  "kind",
  "safe_logical_destination",
  "route",
  "policy_decision",
  "user_decision",
  "destination",
  "sent",
  "reason",
  "duration_ms",
  "message"
]
/** Keys that stand in other columns, or say nothing to a person. */
const elsewhere = new Set([
  "call_id",
  "name",
  "subject",
  "server_name",
  "process_kind",
  "generation",
  // Ids and digests of what is sent to remote servers: `--json` has them.
  "authorization_id",
  "binding_origin",
  "correlation_id",
  "disclosure_content_sha256",
  "disclosure_id",
  "profile_config_proxy_fingerprint",
  "record_id",
  "root_run_id",
  "route_fingerprint",
  "safe_transport_destination",
  "sink_fingerprint"
])
/** So many of the first keys need no name. */
const SHOWN_ALONE = 11
/** Facts in a line. */
const MAX_FACTS = 6

const shown = (value: unknown): string | undefined => {
  if (typeof value === "string") return value === "" ? undefined : value
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined
}

/** Short facts of the payload, as `name=value`; the best known ones as the value alone. Not escaped. */
export const summaryOf = ({ payload }: AuditRecord): string => {
  const known = first.filter((key) => Object.hasOwn(payload, key))
  const others = Object.keys(payload).filter((key) => !first.includes(key) && !elsewhere.has(key))
  return [...known, ...others]
    .flatMap((key) => {
      const value = shown(payload[key])
      if (value === undefined) return []
      return first.indexOf(key) >= 0 && first.indexOf(key) < SHOWN_ALONE ? [value] : [`${key}=${value}`]
    })
    .slice(0, MAX_FACTS)
    .join(" ")
}

/** MCP revision 2025-03-26 (K section 9.3: batches must be accepted). */
import type { Revision } from "../Revision.ts"

/** Adapter of revision 2025-03-26. */
export const revision: Revision = {
  version: "2025-03-26",
  era: "handshake",
  versionHeader: false,
  batches: true,
  urlRequired: false,
  declaresCompletions: true
}

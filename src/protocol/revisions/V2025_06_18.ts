/** MCP revision 2025-06-18 (K section 9.4: structured content, form elicitation, no batches). */
import type { Revision } from "../Revision.ts"

/** Adapter of revision 2025-06-18. */
export const revision: Revision = {
  version: "2025-06-18",
  era: "handshake",
  versionHeader: true,
  batches: false,
  urlRequired: false,
  declaresCompletions: true
}

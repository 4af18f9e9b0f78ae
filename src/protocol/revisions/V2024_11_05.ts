/** MCP revision 2024-11-05 (K section 9.2). */
import type { Revision } from "../Revision.ts"

/** Adapter of revision 2024-11-05. */
export const revision: Revision = {
  version: "2024-11-05",
  era: "handshake",
  versionHeader: false,
  batches: false,
  urlRequired: false,
  declaresCompletions: false
}

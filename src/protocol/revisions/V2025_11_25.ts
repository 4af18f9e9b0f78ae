/** MCP revision 2025-11-25 (K section 9.5: JSON Schema 2020-12 is the default dialect). */
import type { Revision } from "../Revision.ts"

/** Adapter of revision 2025-11-25. */
export const revision: Revision = {
  version: "2025-11-25",
  era: "handshake",
  versionHeader: true,
  batches: false,
  urlRequired: true,
  declaresCompletions: true
}

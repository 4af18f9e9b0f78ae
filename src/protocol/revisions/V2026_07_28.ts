/** MCP revision 2026-07-28 (K section 9.6): no handshake, no session, every request complete in itself. */
import type { Revision } from "../Revision.ts"

/** Adapter of revision 2026-07-28. */
export const revision: Revision = {
  version: "2026-07-28",
  era: "stateless",
  versionHeader: true,
  batches: false,
  urlRequired: false,
  declaresCompletions: true
}

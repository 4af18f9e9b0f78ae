/** When something can go wrong between an HTTP client and its server, and which request belongs to which moment. */

/** Which protocol the server speaks: with sessions (up to 2025-11-25), or without (2026-07-28). */
export type Era = "legacy" | "modern"

/**
 * The moments, in their order.
 *
 * `connect` is every new connection, before any byte. `probe` is `server/discover` at a server that does not know it,
 * `handshake` what opens the era: `initialize`, or `server/discover`. `call` is the first `tools/call`, `next` every
 * later one. `stream` is the stream for what the server has to say: GET, or `subscriptions/listen`. `delete` ends the
 * session.
 */
export const steps = [
  "connect",
  "probe",
  "handshake",
  "initialized",
  "list",
  "call",
  "next",
  "stream",
  "delete"
] as const
export type Step = (typeof steps)[number]

/** What belongs to the older era alone. */
const legacyOnly: ReadonlySet<Step> = new Set<Step>(["probe", "initialized", "delete"])

/** Whether this moment exists in the era. */
export const exists = (step: Step, era: Era): boolean => era === "legacy" || !legacyOnly.has(step)

/** The moment of one request; `undefined` for one that no fault is about. `calls` is how many calls came before it. */
export const stepOf = (
  era: Era,
  request: { readonly http: string; readonly method: string | undefined; readonly calls: number }
): Step | undefined => {
  if (request.http === "DELETE") return "delete"
  if (request.http === "GET") return era === "legacy" ? "stream" : undefined
  switch (request.method) {
    case "server/discover":
      return era === "legacy" ? "probe" : "handshake"
    case "initialize":
      return era === "legacy" ? "handshake" : undefined
    case "notifications/initialized":
      return "initialized"
    case "tools/list":
      return "list"
    case "tools/call":
      return request.calls === 0 ? "call" : "next"
    case "subscriptions/listen":
      return "stream"
    default:
      return undefined
  }
}

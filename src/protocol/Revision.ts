/**
 * Protocol revisions: what differs between them, as one adapter per revision behind this interface.
 *
 * The code above asks the adapter and never compares version strings. Facts: K sections 9.2 to 9.6 and 12.
 */

/** What a revision of MCP allows and how it spells things. */
export interface Revision {
  readonly version: string
  /**
   * `handshake`: `initialize` first, then both sides remember; servers ask by requests of their own.
   * `stateless`: each request says everything (2026-07-28); servers ask by the result `input_required`.
   */
  readonly era: "handshake" | "stateless"
  /** Whether `MCP-Protocol-Version` goes with every HTTP request after the handshake (since 2025-06-18). */
  readonly versionHeader: boolean
  /** Whether JSON-RPC arrays must be accepted (2025-03-26 only). */
  readonly batches: boolean
  /** Whether error -32042 asks for addresses to be opened (2025-11-25 only). */
  readonly urlRequired: boolean
  /** Whether `completions` must be declared by a server before it is used. */
  readonly declaresCompletions: boolean
}

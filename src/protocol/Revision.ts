/**
 * Protocol revisions: what differs between them, as one adapter per revision behind this interface.
 *
 * The code above asks the adapter and never compares version strings. Facts: K sections 9.2 to 9.5 and 12.
 */

/** What a revision of MCP allows and how it spells things. */
export interface Revision {
  readonly version: string
  /** Whether JSON-RPC arrays must be accepted (2025-03-26 only). */
  readonly batches: boolean
  /** Whether `completions` must be declared by a server before it is used. */
  readonly declaresCompletions: boolean
}

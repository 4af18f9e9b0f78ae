/**
 * Where a client may connect to, as the user's settings say (`[web]` of sigil.toml, R sections 1.9 and 8.11).
 *
 * Addresses of this machine and of private networks need both lists: the exact host in `allowedPrivateHosts`, and each
 * of its addresses inside one of `allowedPrivateCidrs`. Some addresses are never allowed (`Destination.ts`).
 */

/** The rules of one client. */
export interface DestinationRules {
  /** Hosts, exact, whose addresses may be private or of this machine. */
  readonly allowedPrivateHosts: ReadonlyArray<string>
  /** Networks that those addresses have to lie in. */
  readonly allowedPrivateCidrs: ReadonlyArray<string>
  /** Hosts and all below them that are never dialled. */
  readonly blockedDomains: ReadonlyArray<string>
  /** Where not empty: the only hosts, with all below them. */
  readonly allowedDomains: ReadonlyArray<string>
}

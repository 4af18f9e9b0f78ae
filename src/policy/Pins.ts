/**
 * Whether a server is still the one that was pinned (spec section 12, R sections 3.4 to 3.7; pure).
 *
 * The fingerprint of the launch is compared before anything is started, the identity that the server tells after its
 * handshake. All differences are told together, each with the value that was observed, so that somebody who expected
 * the change can pin it.
 */
import type { Trust } from "../config/ServerDeclaration.ts"

/** The pinned values. */
export type Pinned = NonNullable<Trust["pinned"]>

/** What is observed of a server; what is not known yet is absent. */
export type Observed = { readonly [field in keyof Pinned]?: string }

/** One value that is not what was pinned. */
export interface Difference {
  /** As the files spell it. */
  readonly field: string
  readonly pinned: string
  readonly observed: string
}

const spelled: ReadonlyArray<readonly [keyof Pinned, string]> = [
  ["transportFingerprint", "transport_fingerprint"],
  ["protocolVersion", "protocol_version"],
  ["serverName", "server_name"],
  ["serverVersion", "server_version"]
]

/** Every observed value that differs, in the order of the fields. */
export const differences = (pinned: Pinned, observed: Observed): ReadonlyArray<Difference> =>
  spelled.flatMap(([key, field]) => {
    const seen = observed[key]
    return seen === undefined || seen === pinned[key] ? [] : [{ field, pinned: pinned[key], observed: seen }]
  })

/** The differences as one text (R section 3.7). */
export const describe = (found: ReadonlyArray<Difference>): string =>
  found.map(({ field, observed, pinned }) => `${field} is '${observed}', pinned is '${pinned}'`).join("; ")

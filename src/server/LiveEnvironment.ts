/**
 * Notices when a variable that was passed to a server changes in sigil's own environment.
 *
 * The server keeps the value it was started with; going on with it after the user replaced or withdrew a credential
 * would use a grant that does not exist any more (R section 3.3). So every message in either direction asks here
 * first. Values are compared in memory and never leave; what may be shown is a fingerprint with a key that lives as
 * long as the process, useless to whoever wants to guess the value.
 */
import type * as Context from "effect/Context"
import { createHmac, randomBytes } from "node:crypto"
import type { HostEnvironment } from "../platform/HostEnvironment.ts"

/** The variables of one launch as they were. */
export interface LiveEnvironment {
  /** `hmac-sha256:<hex>` over the names and values, under this process's key. */
  readonly fingerprint: string
  /** The first variable that is different now; `undefined` while all are as they were. */
  readonly changed: () => string | undefined
}

/** Remembers launches under one key. */
export type Bind = (names: ReadonlyArray<string>, staticFingerprint: string) => LiveEnvironment

const unchanged = (): undefined => undefined

/** Makes a binder with a fresh key. */
export const makeBinder = (host: Context.Tag.Service<typeof HostEnvironment>): Bind => {
  const key = randomBytes(32)
  return (names, staticFingerprint) => {
    const held = [...new Set(names)].sort().map((name) => [name, host.get(name)] as const)
    const hmac = createHmac("sha256", key)
    // Length-prefixed, so that no two lists of parts read the same.
    const part = (text: string): void => {
      hmac.update(`${Buffer.byteLength(text)}:`).update(text)
    }
    part(staticFingerprint)
    for (const [name, value] of held) {
      part(name)
      part(value === undefined ? "unset" : `set:${value}`)
    }
    return {
      fingerprint: `hmac-sha256:${hmac.digest("hex")}`,
      changed: held.length === 0 ? unchanged : () => held.find(([name, value]) => host.get(name) !== value)?.[0]
    }
  }
}

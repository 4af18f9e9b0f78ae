/**
 * Whether a value may leave for a server as far as secrets go (spec section 9): pure.
 *
 * What somebody chose to send is judged here: arguments of tools and prompts, addresses, completion, answers to forms.
 * Roots and metadata are sigil's own and only searched for secrets (`Generation.ts`). A placeholder of sigil's own never leaves, also not to a server that may have secrets: sent in the
 * place of a value that was read before, it would overwrite it.
 */
import type * as Context from "effect/Context"
import type { Json } from "../base/Json.ts"
import type { Secrets } from "./Secrets.ts"

/** Where the value may not leave, as a JSON pointer, and why. */
export interface Kept {
  readonly why: "secret" | "placeholder"
  readonly path: string
}

/** What keeps a value from leaving; `undefined` when nothing does. */
export const keeps = (
  secrets: Pick<Context.Tag.Service<Secrets>, "containsSecret" | "containsPlaceholder">,
  allowSecrets: boolean,
  value: Json
): Kept | undefined => {
  const placeholder = secrets.containsPlaceholder(value)
  if (placeholder !== undefined) return { why: "placeholder", path: placeholder.path }
  const secret = allowSecrets ? undefined : secrets.containsSecret(value)
  return secret === undefined ? undefined : { why: "secret", path: secret.path }
}

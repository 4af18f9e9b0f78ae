/**
 * What configuration alone says of sending to an address: by which route, and whether at all. Nothing is resolved.
 *
 * Asked when a server is admitted and again when its client is made; the addresses of a name are judged at each dial.
 */
import { type Destination, judgeUrl, placeOf, type Refusal } from "./Destination.ts"
import type { DestinationRules } from "./DestinationRules.ts"
import { routeOf, type Route } from "./Proxy.ts"

/** What is known before anything is sent. */
export interface Circumstances {
  readonly url: string
  /** Whether a credential goes along. */
  readonly credentials: boolean
  readonly rules: DestinationRules
  readonly proxyMode: "environment" | "direct"
  /** Variables of the environment, where proxies are named. */
  readonly get: (name: string) => string | undefined
}

/** The route and the destination, or why nothing is sent there. */
export const judge = ({
  credentials,
  get,
  proxyMode,
  rules,
  url
}: Circumstances): { readonly _tag: "Allow"; readonly destination: Destination; readonly route: Route } | Refusal => {
  let route: Route = { _tag: "direct" }
  if (proxyMode === "environment" && URL.canParse(url)) {
    const found = routeOf(placeOf(new URL(url)), get)
    if (found._tag === "Refuse") return found
    route = found
  }
  const verdict = judgeUrl(url, { credentials, rules, proxied: route._tag === "proxy_remote" })
  return verdict._tag === "Refuse" ? verdict : { _tag: "Allow", destination: verdict.destination, route }
}

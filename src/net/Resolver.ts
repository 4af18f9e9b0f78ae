/** Names to addresses, as a service: tests say what a name resolves to, and see whether it was asked at all. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as dns from "node:dns"
import { errorCodeOf, type NetError, notSent } from "./NetError.ts"

/** The resolver. */
export class Resolver extends Context.Tag("sigil/net/Resolver")<
  Resolver,
  {
    /** All addresses of a host, IPv4 and IPv6, in the order to try. Fails with `SIGIL_CONNECTION_LOST`. */
    readonly resolve: (host: string) => Effect.Effect<ReadonlyArray<string>, NetError>
  }
>() {}

const unresolved = (host: string, code: string): NetError =>
  notSent(
    "SIGIL_CONNECTION_LOST",
    "name_not_resolved",
    code === "ENOTFOUND"
      ? `There is no host '${host}': its name could not be resolved (${code}).`
      : code === "EAI_AGAIN"
        ? `The host name '${host}' could not be resolved: the name service did not answer (${code}).`
        : `The host name '${host}' could not be resolved (${code}).`,
    code === "EAI_AGAIN"
      ? "Check the connection to the network and its name service (DNS), then try again."
      : "Check the host name in the URL of the server, and the connection to the network."
  )

/** The system's resolver: hosts file, DNS and whatever else it is set up with. */
export const layer: Layer.Layer<Resolver> = Layer.succeed(Resolver, {
  resolve: (host) =>
    Effect.async((resume) => {
      dns.lookup(host, { all: true, verbatim: true }, (error, found) => {
        resume(
          error === null
            ? Effect.succeed(found.map(({ address }) => address))
            : Effect.fail(unresolved(host, errorCodeOf(error)))
        )
      })
    })
})

/** Answers from a table or a function, at each question anew; what it does not know does not resolve. */
export const layerTest = (
  answers: { readonly [host: string]: ReadonlyArray<string> } | ((host: string) => ReadonlyArray<string> | undefined)
): Layer.Layer<Resolver> =>
  Layer.succeed(Resolver, {
    resolve: (host) =>
      Effect.suspend(() => {
        const found = typeof answers === "function" ? answers(host) : answers[host]
        return found === undefined ? Effect.fail(unresolved(host, "ENOTFOUND")) : Effect.succeed(found)
      })
  })

/**
 * Shows the user where something is about to be sent, before the name is even resolved (R section 8.10).
 *
 * What cannot be shown is not sent.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { escapeLine } from "../base/Display.ts"
import { Terminal } from "../platform/Terminal.ts"
import type { NetError } from "./NetError.ts"

/** What kind of thing is sent. */
export type DataKind = "connection_metadata" | "request" | "workspace_root_uri" | "interactive_response"

const dataTexts: { readonly [kind in DataKind]: string } = {
  connection_metadata: "connection metadata",
  request: "request",
  workspace_root_uri: "workspace root URI",
  interactive_response: "interactive response"
}

/** One destination and what goes there. */
export interface Disclosure {
  /** Exact name of the server. */
  readonly server: string
  /** What part of sigil sends. */
  readonly surface: string
  /** Origin, nothing more. */
  readonly destination: string
  readonly route: "direct" | "proxy_remote"
  /** Origin of the proxy. */
  readonly proxy?: string | undefined
  readonly data: DataKind
}

/** Whoever shows disclosures. */
export class Presenter extends Context.Tag("sigil/net/Presenter")<
  Presenter,
  {
    /** Stable label of where it is shown; its fingerprint is recorded. */
    readonly sink: string
    /** Returns when the disclosure has been shown. */
    readonly present: (disclosure: Disclosure) => Effect.Effect<void, NetError>
  }
>() {}

/** The block that is shown, with its line ends. */
export const disclosureText = ({ server, surface, destination, route, proxy, data }: Disclosure): string =>
  [
    "[sigil network disclosure]",
    escapeLine(server),
    `surface: ${escapeLine(surface)}`,
    `destination: ${escapeLine(destination)}`,
    `route: ${route === "direct" ? "direct" : `environment proxy${proxy === undefined ? "" : ` ${escapeLine(proxy)}`}`}`,
    `data: ${dataTexts[data]}`,
    ""
  ].join("\n")

/** Blocks on stderr; shown when the system has taken them. */
export const layer: Layer.Layer<Presenter, never, Terminal> = Layer.effect(
  Presenter,
  Effect.map(Terminal, (terminal) => ({
    sink: "cli-stderr-flush-v1",
    present: (disclosure: Disclosure) => terminal.writeError(disclosureText(disclosure))
  }))
)

/** Collects what is shown into `shown`; `first` runs before and may fail instead. */
export const layerTest = (
  shown: Array<Disclosure> = [],
  first: (disclosure: Disclosure) => Effect.Effect<void, NetError> = () => Effect.void
): Layer.Layer<Presenter> =>
  Layer.succeed(Presenter, {
    sink: "test",
    present: (disclosure) =>
      Effect.zipRight(
        first(disclosure),
        Effect.sync(() => void shown.push(disclosure))
      )
  })

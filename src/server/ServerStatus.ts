/** What a server is doing, in the words that people and documents get (spec section 7). */
import type * as Generation from "./Generation.ts"
import type * as ServerState from "./ServerState.ts"
import { type ActivationError, downNote, exhaustedNote } from "./StartFailure.ts"

/** What a server is doing, as it is shown (spec section 7). */
export interface ServerStatus {
  readonly state:
    | "deferred"
    | "activating"
    | "refreshing"
    | "restarting"
    | "stale tools"
    | "stale resources"
    | "stale prompts"
    | "ready"
    | "failed"
    | "needs_auth"
    | "pending"
    | "disabled"
  /** Its start waits for its turn behind others; its budget has not begun. */
  readonly queued?: boolean
  /** The generation that answers calls now. */
  readonly generation?: Generation.Generation
  /** Why it is not running. */
  readonly failure?: ActivationError
}

/** What whoever meets a server that is down is told. */
export const shownFailure = (
  name: string,
  state: Extract<ServerState.State<unknown, ActivationError>, { _tag: "Failed" }>
): ActivationError =>
  state.exhausted ? exhaustedNote(state.failure) : state.wasReady ? downNote(name, state.failure) : state.failure

/** The status of a state. */
export const statusOf = (
  name: string,
  state: ServerState.State<unknown, ActivationError>,
  live: Generation.Generation | undefined
): ServerStatus => {
  const generation = live === undefined ? {} : { generation: live }
  switch (state._tag) {
    case "Deferred":
    case "Stopping":
      return { state: "deferred" }
    case "Activating":
      return { state: state.kind === "restart" ? "restarting" : "activating", queued: state.queued }
    case "Ready": {
      const [stale] = state.stale
      return { state: stale === undefined ? "ready" : `stale ${stale}`, ...generation }
    }
    case "Refreshing":
      return { state: "refreshing", queued: state.opening && state.queued, ...generation }
    case "Ending":
      return { state: state.loss.restart ? "restarting" : "failed", failure: state.loss.failure }
    case "Restarting":
      return { state: "restarting", failure: state.failure }
    case "Failed":
      return { state: "failed", failure: shownFailure(name, state) }
    case "Barred":
      return { state: state.bar, failure: state.failure }
  }
}

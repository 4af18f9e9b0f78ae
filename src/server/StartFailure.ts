/** Why a server is not running: the failures a supervisor tells, and what each means for the next start. */
import * as Cause from "effect/Cause"
import { type CleanupReport, describeSurvivors } from "../platform/CleanupReport.ts"
import type { Refusal } from "./Admission.ts"
import * as RestartPolicy from "./RestartPolicy.ts"
import { type ConnectionError, StartError } from "./ServerError.ts"
import type { FailureKind } from "./ServerState.ts"

/** Why a server could not be made ready: a gate refused, the start failed, or it ended and is not started again. */
export type ActivationError = Refusal | StartError | ConnectionError

/** Whether the same start may go better next time. */
export const kindOf = (failure: ActivationError): FailureKind => {
  switch (failure.code) {
    case "SIGIL_PENDING_APPROVAL":
    case "SIGIL_REJECTED":
      return "pending"
    case "SIGIL_DISABLED":
      return "disabled"
    case "SIGIL_SIGN_IN_NEEDED":
      return "needs_auth"
    default:
      // What was left behind by the last start would run beside the next one.
      if (failure.details?.["cleanup_completed"] === false) return "unclean"
      return failure._tag === "StartError" && RestartPolicy.mayRetryStart(failure.code) ? "passing" : "final"
  }
}

/** It was stopped while somebody waited for it. */
export const stopped = (server: string): StartError =>
  new StartError({
    code: "SIGIL_CONNECTION_LOST",
    reason: "stopped",
    text: `The server '${server}' was stopped before it was ready.`,
    where: { server }
  })

/** A fault of sigil's own during a start; it costs this start only. */
export const unexpected = (server: string, cause: Cause.Cause<unknown>): StartError => {
  const fault = Cause.squash(cause)
  return new StartError({
    code: "SIGIL_INTERNAL",
    reason: "defect",
    text: `A fault inside sigil while '${server}' was started: ${fault instanceof Error ? fault.message : String(fault)}`,
    where: { server }
  })
}

/** Processes of a generation could not be confirmed gone; nothing is started beside them (spec section 7). */
export const incompleteCleanup = (server: string, report: CleanupReport): StartError => {
  const names = describeSurvivors(report)
  return new StartError({
    code: "SIGIL_CLEANUP_INCOMPLETE",
    reason: report.reason ?? "unconfirmed",
    text: `Processes of the server '${server}' could not be confirmed gone${names === "" ? "" : `: ${names}`}. It is not started beside them.`,
    fix: "End these processes by their id, then start the server again.",
    where: { server, operation: "close" },
    details: { cleanup_completed: false, cleanup_reason: report.reason ?? "unconfirmed", survivors: report.survivors }
  })
}

/** What a failed start left behind, when that could not be confirmed gone. */
export const leftBehind = (failure: ActivationError): CleanupReport | undefined => {
  const { details } = failure
  if (details?.["cleanup_completed"] !== false) return undefined
  const survivors = details["survivors"]
  return {
    complete: false,
    // Put there by `Generation.open` from a report.
    survivors: Array.isArray(survivors) ? (survivors as CleanupReport["survivors"]) : [],
    steps: [],
    reason: String(details["cleanup_reason"] ?? "unconfirmed"),
    durationMs: 0
  }
}

/** The same failure in other words. */
const reworded = (
  failure: ActivationError,
  words: { readonly text: string; readonly fix?: string }
): ActivationError => {
  // The same class with other texts: these classes take exactly their own fields.
  const Class = failure.constructor as new (fields: object) => ActivationError
  return new Class({ ...failure, ...words })
}

/** A sentence after a text that may end in a list of lines. */
export const addSentence = (text: string, sentence: string): string =>
  `${text}${text.includes("\n") ? "\n" : " "}${sentence}`

/** The failure of a server that was started again too often. */
export const exhaustedNote = (failure: ActivationError): ActivationError => {
  const minutes = RestartPolicy.WINDOW_MS / 60_000
  const text = `It was started again ${RestartPolicy.MAX_ATTEMPTS} times within ${minutes} minutes and is left alone now.`
  return reworded(failure, { text: addSentence(failure.text, text) })
}

/** The failure of a start that happened earlier, told to somebody who did not cause one. */
export const downNote = (server: string, failure: ActivationError): ActivationError =>
  failure._tag === "ConnectionError" || failure.code === "SIGIL_CLEANUP_INCOMPLETE"
    ? failure
    : reworded(failure, {
        text: `The server '${server}' is down since its last start failed: ${failure.text}`,
        fix: `Mend the cause, then refresh '${server}' to start it again.`
      })

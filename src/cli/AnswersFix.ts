/**
 * What to do about a call whose server wanted input, in the words of the command that made it.
 *
 * A failure cannot know how it came about: it speaks of `--answers FILE`, which few commands have and which may have been
 * given already.
 */
import { type Failure, fixOf } from "../base/Failure.ts"

/** What the command line says of answers. */
export interface Answering {
  /** Whether the command has `--answers`. */
  readonly has: boolean
  /** The file that was given. */
  readonly file: string | undefined
}

const named = (details: Failure["details"]): string => {
  const fields = details?.["fields"]
  const names = Array.isArray(fields) ? fields.filter((field) => typeof field === "string") : []
  return names.length === 0 ? "the fields of the form" : names.map((name) => `'${name}'`).join(", ")
}

const fixFor = (failure: Failure, { file, has }: Answering): string => {
  if (!has) return "Nobody is asked by this command without a terminal: run it in one."
  if (file === undefined) return fixOf(failure)
  if (failure.reason === "answer_misfit") return `Correct ${named(failure.details)} in ${file}.`
  if (failure.reason === "input_required") return `Add ${named(failure.details)} to ${file}.`
  return "Call from a terminal without --answers: the file answers forms only."
}

/** The failure with a fix that fits the command line; others as they are. */
export const fitting =
  (answering: Answering) =>
  (failure: Failure): Failure => {
    if (failure.code !== "SIGIL_INPUT_REQUIRED" || !fixOf(failure).includes("--answers")) return failure
    const { _tag, candidates, code, details, reason, text, where } = failure
    return { _tag, code, reason, text, fix: fixFor(failure, answering), where, candidates, details }
  }

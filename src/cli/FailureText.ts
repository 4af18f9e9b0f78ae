/**
 * A failure as people, programs and shells see it: text, JSON document, exit code (spec sections 1 and 1a).
 *
 * This is the one place where a failure becomes words on the command line.
 */
import { exitCodeOf, type Failure, fixOf, type Where } from "../base/Failure.ts"
import type { DocumentOf } from "./Documents.ts"
import { bold, cyan, dim, type Line, red } from "./Markup.ts"

/** `file:line:column (field)`, as much of it as is known. */
export const placeOf = (where: Where): string | undefined => {
  const { file, line, column, field } = where
  if (file === undefined) return field === undefined ? undefined : `field ${field}`
  const position = line === undefined ? "" : column === undefined ? `:${line}` : `:${line}:${column}`
  return `${file}${position}${field === undefined ? "" : ` (${field})`}`
}

/** `server NAME, tool NAME, OPERATION`, as much of it as is known. */
const partyOf = ({ server, tool, operation }: Where): string | undefined => {
  const parts = [
    ...(server === undefined ? [] : [`server ${server}`]),
    ...(tool === undefined ? [] : [`tool ${tool}`]),
    ...(operation === undefined ? [] : [`during ${operation}`])
  ]
  return parts.length === 0 ? undefined : parts.join(", ")
}

const didYouMean = (candidates: ReadonlyArray<string>): string => {
  const quoted = candidates.map((name) => `'${name}'`)
  return `did you mean ${quoted.length === 1 ? quoted[0] : `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`}?`
}

/** The lines of a failure for stderr. */
export const linesOf = (failure: Failure): ReadonlyArray<Line> => {
  const place = failure.where === undefined ? undefined : placeOf(failure.where)
  const party = failure.where === undefined ? undefined : partyOf(failure.where)
  const candidates = failure.candidates ?? []
  // Continued lines are indented: a server's words in an error can never look like a line of sigil's own.
  const [what = "", ...more] = failure.text.split("\n")
  const [fix = "", ...moreFix] = fixOf(failure).split("\n")
  return [
    [red("error:"), ` ${what}`],
    ...more.map((line) => `  ${line}`),
    ...(place === undefined ? [] : [`  at ${place}`]),
    ...(party === undefined ? [] : [`  ${party}`]),
    ...(candidates.length === 0 ? [] : [`  ${didYouMean(candidates)}`]),
    [bold("fix:"), ` ${fix}`],
    ...moreFix.map((line) => `  ${line}`),
    [dim("code:"), " ", cyan(failure.code), dim(` (sigil errors ${failure.code})`)]
  ]
}

/** The inner object of the error document, which `problems` and rows of other documents use too. */
export const errorOf = (failure: Failure): DocumentOf<"error">["error"] => ({
  code: failure.code,
  reason: failure.reason,
  message: failure.text,
  fix: fixOf(failure),
  exit: exitCodeOf(failure),
  where: failure.where ?? {},
  candidates: failure.candidates ?? [],
  details: failure.details ?? {}
})

/** The error document. */
export const documentOf = (failure: Failure): DocumentOf<"error"> => ({
  schema: "sigil.error/1",
  error: errorOf(failure)
})
